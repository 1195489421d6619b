"""The server that the training commands ask: from their options, the environment, the config."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from rlcore import Secret, resolve_client_settings

from rleaas.cli.plain import visible
from rleaas.cli.training.parser import DEFAULT_CONFIG
from rleaas.training.run_file.reading import RunFile, read_file

if TYPE_CHECKING:
    from rleaas import Client


def connect(told: argparse.Namespace, file: RunFile | None) -> Client:
    """Return a client; option, variable, config file, profile and default count in that order.

    Raises:
        ConfigurationError: a setting is not usable.
    """
    from rleaas import Client

    settings = resolve_client_settings(
        api_key=told.api_key, base_url=told.base_url, profile=told.profile
    )

    def open_to_file(name: str) -> bool:
        source = settings.source(name)
        return source == "default" or source.startswith("profile")

    base_url: str | None = told.base_url
    api_key: str | Secret | None = told.api_key
    if file is not None and open_to_file("base_url"):
        base_url = file.base_url
    if file is not None and open_to_file("api_key"):
        api_key = file.api_key
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        client = Client(base_url=base_url, api_key=api_key, profile=told.profile)
    for one in warned:
        warn(str(one.message))
    return client


def file_for_server(told: argparse.Namespace) -> RunFile | None:
    """Return the config file for a command that reads only the server from it, if there is one.

    Raises:
        ConfigurationError: it was named, and cannot be read.
    """
    if told.config is None and not Path(DEFAULT_CONFIG).is_file():
        return None
    file = read_file(told.config or DEFAULT_CONFIG)
    # What is wrong with the trainings in it is not this command's matter.
    for problem in file.errors:
        if problem.path in ("", "api_key", "base_url"):
            warn(f"{file.path}:{problem}; the file is not used")
            return None
    return file


def warn(sentence: str) -> None:
    """Write a warning to standard error."""
    print(f"warning: {visible(' '.join(sentence.split()))}", file=sys.stderr)

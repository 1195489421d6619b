"""Helpers under the names that the published package has in `rleaas.training`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from rlcore import ConfigurationError

from rleaas.cli.failures import CONFIG_FILE
from rleaas.cli.plain import first_lines
from rleaas.cli.training.parser import DEFAULT_CONFIG
from rleaas.cli.training.start import Trains, chosen, start_one
from rleaas.training.run_file.reading import RunFile, read_file, read_text


def load_json(path: str | Path) -> dict[str, object]:
    """Return what a config file holds.

    Raises:
        ConfigurationError: there is no such file, or it is wrong; all errors are named.
    """
    file = Path(path)
    _sound(read_file(file))
    return cast("dict[str, object]", json.loads(file.read_text(encoding="utf-8-sig")))


def resolve_training_entries(config: Mapping[str, object]) -> Sequence[Mapping[str, object]]:
    """Return the entries of a config.

    Raises:
        ConfigurationError: the config is wrong; all errors are named.
    """
    return _sound(read_text(json.dumps(config))).entries


# Any: what a client returns is its own matter.
def start_entry(client: Trains, entry: Mapping[str, object]) -> Any:
    """Start what an entry asks for, and return what the client does.

    Raises:
        ConfigurationError: the entry is wrong; nothing was started.
    """
    file = _sound(read_text(json.dumps({"training": [entry]}), folder=Path.cwd()))
    return start_one(client, file.runs[0])


def cmd_start(args: argparse.Namespace, client: Trains) -> Sequence[Any]:
    """Start what the words select, as `start` does, and return what the client does.

    Raises:
        ConfigurationError: the config or the selection is wrong; nothing was started.
    """
    file = _sound(read_file(getattr(args, "config", None) or DEFAULT_CONFIG))
    training = getattr(args, "training", None)
    index = getattr(args, "index", None)
    every = bool(getattr(args, "all", False))
    if sum((training is not None, index is not None, every)) > 1:
        raise ConfigurationError(
            "--all, --index and --training exclude each other", hint="Use one of them."
        )
    return [start_one(client, run) for run in chosen(file, training, index, every)]


def _sound(file: RunFile) -> RunFile:
    if file.errors:
        raise ConfigurationError(
            "; ".join(first_lines([f"{file.path}:{one}" for one in file.errors], "errors")),
            code=CONFIG_FILE,
        )
    return file

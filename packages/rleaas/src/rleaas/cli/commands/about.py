"""`rleaas ping` and `rleaas version`."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

import typer

from rleaas.cli.command import Asked
from rleaas.cli.console import print_facts, print_json, say
from rleaas.cli.options import AsJson


def ping(asked: Asked) -> None:
    """Ask the server whether it is there, and say which one answered."""
    answer: dict[str, object] = dict(asked.client.ping())
    if asked.as_json:
        print_json(answer)
        return
    print_facts({"server": asked.client.base_url, **answer})


def say_version(asked: bool) -> None:
    """Print the version of rleaas alone, and end."""
    if asked:
        say(f"rleaas {version_of('rleaas')}")
        raise typer.Exit


def version(as_json: AsJson = False) -> None:
    """Print the versions of what is installed here."""
    found: dict[str, object] = {"python": platform.python_version()}
    for package in ("rleaas", "rlmesh", "rlcore"):
        try:
            found[package] = version_of(package)
        except PackageNotFoundError:
            found[package] = None
    if as_json:
        print_json(found)
        return
    print_facts({name: value or "not installed" for name, value in found.items()})

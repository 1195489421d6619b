"""Asking before something is gone for good."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rlcore import ConfigurationError

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def confirm(question: str, *, yes: bool) -> None:
    """Return if the person at the terminal agrees, or agreed beforehand.

    Raises:
        Abort: they do not.
        ConfigurationError: nobody is there to be asked.
    """
    if yes:
        return
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort as error:
        if sys.stdin.isatty():
            raise
        raise ConfigurationError(
            "nobody is there to confirm the deletion", hint="Pass --yes to delete without asking."
        ) from error
    if not agreed:
        raise typer.Abort

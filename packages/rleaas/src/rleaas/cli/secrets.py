"""Secrets that come over standard input, so that they are in no list of processes."""

from __future__ import annotations

import sys

import typer
from rlcore import ConfigurationError


def typed_secret(what: str) -> str:
    """Return a secret that is typed unseen, or is the first line of standard input.

    Raises:
        ConfigurationError: there is none.
    """
    if sys.stdin.isatty():
        typed: str = typer.prompt(what, hide_input=True, err=True)
        return typed.strip()
    text = sys.stdin.readline().strip()
    if not text:
        raise ConfigurationError(
            f"there is no {what} on standard input", hint=f"Write the {what} to standard input."
        )
    return text

"""The only reader of the process's environment variables."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager


def snapshot() -> Mapping[str, str]:
    """Return the environment variables as they are now."""
    # Not dict(os.environ): that fails where another thread takes a variable away meanwhile.
    found = ((name, os.environ.get(name)) for name in os.environ)
    return {name: value for name, value in found if value is not None}


def variable(name: str, environ: Mapping[str, str] | None = None) -> str | None:
    """Return a variable's text; unset, empty and blank all mean None."""
    found = os.environ if environ is None else environ
    return found.get(name, "").strip() or None


def change(name: str, value: str) -> None:
    """Set a variable of this process, for what reads it later."""
    os.environ[name] = value


@contextmanager
def defaulted(name: str, value: str) -> Generator[None]:
    """Set a variable that is unset, for as long as the block runs.

    For a library that reads it while it is imported, and has no other switch.
    """
    if name in os.environ:
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name, None)

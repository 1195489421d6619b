"""The only reader of the process's environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping


def snapshot() -> Mapping[str, str]:
    """Return the environment variables as they are now."""
    return dict(os.environ)


def variable(name: str, environ: Mapping[str, str] | None = None) -> str | None:
    """Return a variable's text; unset, empty and blank all mean None."""
    found = os.environ if environ is None else environ
    return found.get(name, "").strip() or None

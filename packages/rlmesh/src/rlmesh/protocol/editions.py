"""The protocol generation, and the workflow editions within it.

A generation fixes the bytes and must be equal on both sides. An edition fixes behaviour on top of
them: both sides list what they can run, and the client picks one that suits both.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlcore import ConfigurationError, IncompatibleError

GENERATION = "rlmesh-wire-v1"
EDITION = "2026.06"
EDITIONS = (EDITION,)


def declared_edition(text: str | None) -> str | None:
    """Return an edition that a user declared, trimmed; None and blank declare nothing.

    Raises:
        ConfigurationError: this build cannot run it.
    """
    name = (text or "").strip()
    if not runs(name):
        raise ConfigurationError(
            f"workflow edition {text!r} is not one this build runs",
            hint=f"Declare {EDITION!r}, or nothing.",
        )
    return name or None


def runs(name: str) -> bool:
    """Tell whether this build runs an edition or a cohort of one (`2026.06-rc`); empty is ours."""
    base = _base(name)
    return base in ("", *EDITIONS)


def same_generation(theirs: str) -> bool:
    """Tell whether a peer speaks our generation."""
    return theirs.strip() == GENERATION


def agree(*, offered: Sequence[str], ceiling: str | None, declared: str | None) -> str:
    """Return the newest edition that both sides run, at or below what each was written for.

    Args:
        offered: what the server can run.
        ceiling: what the server was written for; None or empty for no preference.
        declared: what this client was written for.

    Raises:
        IncompatibleError: there is none.
    """
    theirs = {name.strip() for name in offered}
    limits = [_base(name) for name in (ceiling, declared) if name and name.strip()]
    common = [
        edition
        for edition in EDITIONS
        if edition in theirs and all(edition <= limit for limit in limits)
    ]
    if not common:
        raise IncompatibleError(
            f"no workflow edition suits both sides: the server runs {sorted(theirs)} and was "
            f"written for {ceiling or 'any'}, this client runs {list(EDITIONS)} and was written "
            f"for {declared or 'any'}",
            hint="Upgrade the older side.",
        )
    return max(common)


def _base(name: str) -> str:
    return name.strip().partition("-")[0]

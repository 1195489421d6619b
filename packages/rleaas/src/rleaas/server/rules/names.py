"""Environment names and references: what may be one, and how one is read."""

import re

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_. -]{0,99}")
_ID = re.compile(r"[0-9]{1,18}")
_PINNED = re.compile(r"(?P<ref>.+)@(?P<version>[0-9]{1,9})")

NAME_RULE = "a name starts with a letter and has up to 100 letters, digits, '_', '-', '.' or spaces"


def name_problem(name: str) -> str | None:
    """Say why the text cannot name an environment; None when it can."""
    if not name:
        return f"the environment name is empty; {NAME_RULE}"
    if name != name.strip():
        return f"the environment name {name!r} begins or ends with a space; {NAME_RULE}"
    if not _NAME.fullmatch(name):
        return f"{name!r} cannot name an environment; {NAME_RULE}"
    return None


def environment_id(reference: str) -> int | None:
    """The numeric id, when the reference is one; names never begin with a digit."""
    return int(reference) if _ID.fullmatch(reference) else None


def split_version(reference: str) -> tuple[str, int | None]:
    """Read `name@3` as the name and the version; a bare name has none."""
    pinned = _PINNED.fullmatch(reference)
    return (pinned["ref"], int(pinned["version"])) if pinned else (reference, None)

"""Environment names and references: what may be one, and how one is read."""

import re
import unicodedata

_ID = re.compile(r"[0-9]{1,18}")
_PINNED = re.compile(r"(?P<ref>.+)@(?P<version>[0-9]{1,9})")
# Each would end or change a path or an address in which somebody wrote the name as it is.
_RESERVED = "#?%@\\"
LONGEST_NAME = 100

NAME_RULE = (
    "a name starts with a letter and has up to 100 printable characters, spaces and '/' among "
    f"them, but none of {' '.join(_RESERVED)}"
)


def canonical_name(text: str) -> str:
    """Return the name in the one form in which equal letters are equal characters."""
    return unicodedata.normalize("NFC", text)


def name_problem(name: str) -> str | None:
    """Say why the text cannot name an environment; None when it can."""
    if not name:
        return f"the environment name is empty; {NAME_RULE}"
    if name != name.strip():
        return f"the environment name {name!r} begins or ends with a space; {NAME_RULE}"
    if not name[0].isalpha() or len(name) > LONGEST_NAME or not _writable(name):
        return f"{name!r} cannot name an environment; {NAME_RULE}"
    if any(part in ("", ".", "..") for part in name.split("/")):
        return f"{name!r} has a part without a name between its slashes; {NAME_RULE}"
    return None


def environment_id(reference: str) -> int | None:
    """The numeric id, when the reference is one; names never begin with a digit."""
    return int(reference) if _ID.fullmatch(reference) else None


def split_version(reference: str) -> tuple[str, int | None]:
    """Read `name@3` as the name and the version; a bare name has none."""
    pinned = _PINNED.fullmatch(reference)
    return (pinned["ref"], int(pinned["version"])) if pinned else (reference, None)


def _writable(name: str) -> bool:
    return name.isprintable() and not any(mark in name for mark in _RESERVED)

"""What commands print where nothing is drawn: lines and JSON, with the standard library alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime


def record_of(found: object) -> object:
    """Return the record of a handle; anything else is itself."""
    return getattr(found, "record", found)


def say(sentence: str) -> None:
    """Print one line of a command's result."""
    print(visible(sentence) if sys.stdout.isatty() else sentence)


def print_json(value: object) -> None:
    """Print a value as indented JSON; shapes of ours and times are turned into plain values."""
    print(json.dumps(value, indent=2, default=plain_value, ensure_ascii=not _takes_unicode()))


def print_json_line(value: object) -> None:
    """Print a value as JSON on one line, at once."""
    print(json.dumps(value, default=plain_value, ensure_ascii=not _takes_unicode()), flush=True)


def write_what_it_can() -> None:
    """Let standard output escape letters that it has no code for, rather than fail at them."""
    # What stands in for it, in tests for instance, need not have that.
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _takes_unicode() -> bool:
    return (sys.stdout.encoding or "utf-8").lower().startswith("utf")


def plain_value(value: object) -> object:
    """Return what JSON has for a shape or a time.

    Raises:
        TypeError: it has nothing for it.
    """
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json")
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def visible(text: str) -> str:
    """Return a text in which control characters are seen instead of obeyed."""
    return "".join(one if one.isprintable() else _escaped(one) for one in text)


MOST = 50
"""How many of many things are shown to people; programs get all of them."""


def listed(names: Sequence[str]) -> str:
    """Return the names, of many the first ones and how many more there are."""
    more = len(names) - MOST
    return ", ".join(names[:MOST]) + (f" and {more} more" if more > 0 else "")


def first_lines(
    lines: Sequence[str], what: str, rest: str = "; `rleaas config check --json` has all"
) -> Iterable[str]:
    """Yield the lines as they can be shown, of many the first ones and how many more there are."""
    yield from (visible(line) for line in lines[:MOST])
    more = len(lines) - MOST
    if more > 0:
        yield f"… and {more} more {what}{rest}"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")

"""Texts of others as they may be printed: no character of them moves a cursor or forges a line."""

from __future__ import annotations

import unicodedata

# Controls, lone surrogates, line and paragraph separators.
_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
# Characters that turn the direction of what follows them.
_TURNS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(value: object) -> str:
    """Return a value's text with its controls escaped, line breaks among them.

    Terminals obey escape sequences, whoever wrote them: what a server, a client or an environment
    said goes through here before it is printed.
    """
    text = str(value)
    return text if text.isprintable() else "".join(map(_shown, text))


def printable_lines(value: object) -> str:
    """Return a value's text with its controls escaped, but for line breaks."""
    return "\n".join(map(printable, str(value).split("\n")))


def _shown(character: str) -> str:
    hidden = character in _TURNS or unicodedata.category(character) in _CATEGORIES
    return ascii(character)[1:-1] if hidden else character

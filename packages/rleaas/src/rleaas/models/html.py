"""Records as a notebook shows them: escaped, and no larger than a screen."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")

LONGEST_TEXT = 200
MOST_ROWS = 50
MOST_COLUMNS = 8


class Listing(list[T]):
    """A list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        return table([(type(one).__name__, _fields_of(one)) for one in self[:MOST_ROWS]], len(self))


def record(title: str, fields: Mapping[str, object]) -> str:
    """Return a record as a table of names and values."""
    rows = "".join(
        f"<tr><th>{html.escape(name)}</th>{_cell(value)}</tr>" for name, value in fields.items()
    )
    return f"<table><caption>{html.escape(title)}</caption>{rows}</table>"


def table(rows: Sequence[tuple[str, Mapping[str, object]]], total: int) -> str:
    """Return records as the rows of a table, which has the plain fields as its columns."""
    names: dict[str, None] = {}
    for _, fields in rows:
        plain = (name for name, value in fields.items() if not isinstance(value, dict | list))
        names |= dict.fromkeys(plain)
    columns = list(names)[:MOST_COLUMNS]
    kinds = " and ".join(sorted({kind for kind, _ in rows})) or "record"
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(_cell(fields.get(name, '')) for name in columns)}</tr>" for _, fields in rows
    )
    more = f", {len(rows)} shown" if len(rows) < total else ""
    caption = html.escape(f"{kinds} ({total}{more})")
    return f"<table><caption>{caption}</caption><tr>{head}</tr>{body}</table>"


def _fields_of(one: object) -> Mapping[str, object]:
    told: Callable[[], Mapping[str, object]] | None = getattr(one, "_told", None)
    return {"": one} if told is None else told()


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    shown = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
    # Isolated, so that no name turns the text around it.
    return f"<td><bdi>{html.escape(shown)}</bdi></td>"

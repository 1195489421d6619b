"""What commands print: tables and sentences for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rleaas.cli.plain import plain_value, visible
from rleaas.cli.plain import print_json as print_json
from rleaas.cli.plain import print_json_line as print_json_line
from rleaas.cli.plain import record_of as record_of
from rleaas.cli.plain import say as say
from rleaas.cli.plain import write_what_it_can as write_what_it_can

WIDE = 200
"""The width of sentences that go into a file or a pipe, where nothing should be folded."""

NARROWEST = 9
"""The width of a column below which a table is no longer read as one."""

STATUS_COLOURS = {
    "ready": "green",
    "completed": "green",
    "active": "green",
    "delivered": "green",
    "running": "cyan",
    "provisioning": "cyan",
    "failed": "red",
    "cancelled": "yellow",
    "disabled": "yellow",
}


class Column:
    """A column of a table, or a line of facts: a title, and what it says of a record."""

    # Any: what a record is, is known where the column is written.
    def __init__(self, title: str, value: str | Callable[[Any], object] | None = None) -> None:
        self.title = title
        self._value = title.replace(" ", "_") if value is None else value

    def value(self, found: object) -> object:
        """Return what it says of a record or of a handle of one."""
        record = record_of(found)
        if not isinstance(self._value, str):
            return self._value(record)
        if isinstance(record, Mapping):
            return cast("Mapping[str, object]", record).get(self._value)
        value: object = getattr(record, self._value)
        return value


def columns(*titles: str) -> list[Column]:
    """Return the columns of the attributes that are called like the titles."""
    return [Column(title) for title in titles]


def stdout() -> Console:
    """Return a console on standard output; colours only where it is a terminal."""
    return _console(stderr=False)


def stderr() -> Console:
    """Return a console on standard error, for what is not the command's result."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else WIDE
    return Console(stderr=stderr, width=width, highlight=False, soft_wrap=not stream.isatty())


def print_records(found: Sequence[object], shown: Sequence[Column], *, empty: str) -> None:
    """Print records under their columns, or the sentence that says that there are none."""
    print_table(
        [column.title for column in shown],
        [[column.value(one) for column in shown] for one in found],
        empty=empty,
    )


def print_table(titles: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Print rows under their titles, or the sentence that says that there are none.

    Into a pipe or a file nothing is folded or cut. On a terminal that is too narrow for so many
    columns, each row becomes a block of lines.
    """
    lines = [[_cell(value) for value in row] for row in rows]
    if not lines:
        say(empty)
        return
    if not sys.stdout.isatty():
        _print_aligned(titles, lines)
        return
    console = stdout()
    if console.width < NARROWEST * len(titles):
        for line in lines:
            _print_block(console, titles, line)
            console.print()
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, overflow="fold")
    for line in lines:
        table.add_row(*line)
    console.print(table)


def print_facts(facts: Mapping[str, object]) -> None:
    """Print one fact per line, leaving out what is not known."""
    known = {name: value for name, value in facts.items() if value not in (None, "", [], {})}
    console = stdout()
    _print_block(console, list(known), [_cell(value) for value in known.values()])


def _print_block(console: Console, titles: Sequence[str], cells: Sequence[Text]) -> None:
    width = max(map(len, titles), default=0)
    for title, cell in zip(titles, cells, strict=True):
        console.print(Text.assemble(f"{title:<{width}}  ", cell), soft_wrap=True)


def _print_aligned(titles: Sequence[str], lines: Sequence[Sequence[Text]]) -> None:
    texts = [list(titles), *([cell.plain for cell in line] for line in lines)]
    widths = [max(cell_len(text) for text in column) for column in zip(*texts, strict=True)]
    for line in texts:
        padded = [
            text + " " * (width - cell_len(text)) for text, width in zip(line, widths, strict=True)
        ]
        print("  ".join(padded).rstrip())


def _cell(value: object) -> Text:
    if value is None:
        return Text("-", style="dim")
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, float):
        return Text(f"{value:.4g}")
    if isinstance(value, datetime):
        return Text(value.astimezone().strftime("%Y-%m-%d %H:%M:%S"))
    if isinstance(value, Mapping):
        return Text(visible(json.dumps(value, default=plain_value, ensure_ascii=False)))
    if isinstance(value, list | tuple):
        return Text(visible(_listed(cast("Sequence[object]", value))))
    text = visible(str(value))
    return Text(text, style=STATUS_COLOURS.get(text, ""))


def _listed(value: Sequence[object]) -> str:
    if all(isinstance(one, str | int) for one in value):
        return ", ".join(map(str, value))
    return json.dumps(value, default=plain_value, ensure_ascii=False)

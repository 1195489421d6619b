"""What commands print: tables and sentences for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDE = 200
"""The width of what goes into a file or a pipe, where nothing should be folded."""

STATUS_COLOURS = {
    "ready": "green",
    "completed": "green",
    "running": "cyan",
    "provisioning": "cyan",
    "failed": "red",
    "cancelled": "yellow",
}


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


def say(sentence: str) -> None:
    """Print one line of a command's result."""
    print(sentence)


def print_json(value: object) -> None:
    """Print a value as indented JSON; shapes of ours and times are turned into plain values."""
    print(json.dumps(value, indent=2, default=_plain, ensure_ascii=False))


def _plain(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json")
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    """Print rows under their columns, or the sentence that says that there are none."""
    lines = [[_cell(value) for value in row] for row in rows]
    if not lines:
        say(empty)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=not sys.stdout.isatty())
    for line in lines:
        table.add_row(*line)
    stdout().print(table)


def print_facts(facts: Mapping[str, object]) -> None:
    """Print one fact per line, leaving out what is not known."""
    known = {name: value for name, value in facts.items() if value not in (None, "", [], {})}
    width = max(map(len, known), default=0)
    console = stdout()
    for name, value in known.items():
        console.print(Text.assemble(f"{name:<{width}}  ", _cell(value)))


def _cell(value: object) -> Text:
    if value is None:
        return Text("-", style="dim")
    if isinstance(value, float):
        return Text(f"{value:.4g}")
    if isinstance(value, datetime):
        return Text(value.astimezone().strftime("%Y-%m-%d %H:%M:%S"))
    if isinstance(value, Mapping | list | tuple):
        return Text(json.dumps(value, default=_plain))
    text = str(value)
    return Text(text, style=STATUS_COLOURS.get(text, ""))

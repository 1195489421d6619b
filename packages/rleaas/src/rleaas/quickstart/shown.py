"""What the user sees while the quickstart works: live on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

LINE_EVERY_SECONDS = 5.0
INDENT = 3


class Bar(Protocol):
    """Something long that is under way."""

    def show(self, done: int, detail: str = "") -> None:
        """Tell how much is done, and how it looks."""
        ...


class Shown:
    """The quickstart's voice.

    Args:
        console: where it speaks.
        clock: seconds, for the plain lines, which come every few of them.
    """

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console
        self._clock = clock
        self._chapter = 0

    def chapter(self, title: str) -> None:
        """Begin the next part."""
        self._chapter += 1
        self.console.print()
        self.console.print(Text(f"{self._chapter}. {title}", style="bold cyan"))

    def tell(self, sentence: str | RenderableType) -> None:
        """Say one thing of the current part, or show it."""
        text = Text(sentence) if isinstance(sentence, str) else sentence
        self.console.print(Padding(text, (0, 0, 0, INDENT), expand=False))

    @contextmanager
    def bar(self, title: str, total: int) -> Generator[Bar]:
        """Show progress until the block ends."""
        if not self.console.is_terminal:
            yield _Lines(self, title, total, self._clock)
            return
        with Progress(
            TextColumn("  "),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[detail]}"),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
        ) as progress:
            yield _Live(progress, progress.add_task(title, total=total, detail=""))


class _Live:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def show(self, done: int, detail: str = "") -> None:
        self._progress.update(self._task, completed=done, detail=detail)


class _Lines:
    def __init__(self, shown: Shown, title: str, total: int, clock: Callable[[], float]) -> None:
        self._shown = shown
        self._title = title
        self._total = total
        self._clock = clock
        self._next = clock() + LINE_EVERY_SECONDS
        self._told = ""

    def show(self, done: int, detail: str = "") -> None:
        now = self._clock()
        line = f"{self._title} {done}/{self._total} {detail}".rstrip()
        if now < self._next or line == self._told:
            return
        self._next = now + LINE_EVERY_SECONDS
        self._told = line
        self._shown.tell(line)

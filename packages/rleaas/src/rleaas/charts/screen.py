"""Where a watched job is shown: below a notebook's cell, or on a terminal."""

# plotext has no types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import html
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Protocol

from rlcore import MissingDependencyError

from rleaas.charts.watched import Watched

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

HEIGHT: Final = 15
WIDEST: Final = 110
CURVE_POINTS: Final = 600
"""More points than any of the screens has columns."""


class Screen(Protocol):
    """Shows a job as it is now, again and again."""

    def show(self, job: Watched) -> None:
        """Show it, in place of what was shown before."""
        ...

    def close(self) -> None:
        """Leave what was shown last."""
        ...

    def say(self, sentence: str) -> None:
        """Write a sentence below it."""
        ...


def screen_for_people(display: Callable[..., Any] | None) -> Screen:
    """Return a notebook's display if there is one, else the terminal.

    Raises:
        MissingDependencyError: what draws on a terminal is not installed.
    """
    return Terminal() if display is None else Notebook(display)


class Terminal:
    """A table and a curve, drawn over and over; without a terminal, only as they are at the end."""

    def __init__(self, console: Console | None = None) -> None:
        missing = [name for name in ("rich", "plotext") if find_spec(name) is None]
        if missing:
            raise MissingDependencyError(
                f"watching a job on a terminal needs {' and '.join(missing)}, not installed here",
                hint="Install the extras: pip install 'rleaas[cli,plot]'",
            )
        from rich.console import Console
        from rich.live import Live

        self._console = Console() if console is None else console
        # Refreshed by hand: no thread of its own draws while an interpreter ends.
        self._live: Live = Live(
            console=self._console, auto_refresh=False, transient=not self._console.is_terminal
        )
        self._last: RenderableType = ""

    def show(self, job: Watched) -> None:
        """Draw the table and the curve."""
        self._last = self._drawn(job)
        if self._console.is_terminal:
            self._live.start()
            self._live.update(self._last, refresh=True)

    def close(self) -> None:
        """Leave the last drawing; where nothing could be drawn over, write it now."""
        if self._console.is_terminal:
            self._live.stop()
        elif self._last:
            self._console.print(self._last)
        self._last = ""

    def say(self, sentence: str) -> None:
        """Write a line."""
        self._console.print(sentence, markup=False, highlight=False)

    def _drawn(self, job: Watched) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        for name, value in job.rows():
            table.add_row(Text(name, style="dim"), Text(_plain(value)))
        width = min(WIDEST, self._console.width)
        bar = ProgressBar(total=1.0, completed=job.fraction, width=width)
        title = Text(_plain(job.title), style="bold")
        return Group(title, bar, table, Text.from_ansi(terminal_curve(job, width)))


def terminal_curve(job: Watched, width: int) -> str:
    """Return the running mean as lines of characters; before two episodes there is none."""
    episodes = job.curve.episodes
    if len(episodes) < 2:
        return ""
    from plotext import figure  # type: ignore[import-untyped]  # it has none

    step = max(1, len(episodes) // CURVE_POINTS)
    mean = job.curve.band(job.curve.window(), step).mean
    figure.clear()
    figure.plot_size(width, HEIGHT)
    figure.theme("colorless")
    figure.canvas("default")
    places = [one.episode for one in episodes][::step]
    figure.draw(figure.signal(places, mean, marker="braille").lines())
    figure.title(f"mean reward of {job.curve.window()} episodes")
    drawn = str(figure.build())
    figure.clear()
    return drawn


class Notebook:
    """A table and a curve below the cell that watches."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None

    def show(self, job: Watched) -> None:
        """Draw the table and the curve, in place of those before."""
        picture = {"text/html": html_of(job), "text/plain": job.title}
        if self._handle is None:
            self._handle = self._display(picture, raw=True, display_id=True)
        else:
            self._handle.update(picture, raw=True)

    def close(self) -> None:
        """Leave the last drawing."""

    def say(self, sentence: str) -> None:
        """Write a line below the cell."""
        self._display({"text/plain": sentence}, raw=True)


def html_of(job: Watched) -> str:
    """Return a job as HTML: a bar, a table, and the curve as SVG, with nothing that runs."""
    rows = "".join(
        f"<tr><th>{html.escape(name)}</th><td><bdi>{html.escape(value)}</bdi></td></tr>"
        for name, value in job.rows()
    )
    return (
        f"<div><strong><bdi>{html.escape(job.title)}</bdi></strong><br>"
        f'<progress value="{job.fraction:.4f}" max="1"></progress>'
        f"<table>{rows}</table>{svg_curve(job)}</div>"
    )


def svg_curve(job: Watched, width: int = 640, height: int = 200) -> str:
    """Return the running mean as a line in a box; before two episodes there is none."""
    episodes = job.curve.episodes
    if len(episodes) < 2:
        return ""
    step = max(1, len(episodes) // CURVE_POINTS)
    mean = job.curve.band(job.curve.window(), step).mean
    low, high = min(mean), max(mean)
    first, last = episodes[0].episode, episodes[-1].episode
    places = " ".join(
        f"{(one.episode - first) / (last - first) * width:.1f},"
        f"{height - (value - low) / ((high - low) or 1.0) * height:.1f}"
        for one, value in zip(episodes[::step], mean, strict=True)
    )
    return (
        f'<svg viewBox="-4 -16 {width + 8} {height + 34}" width="{width}" role="img" '
        f'aria-label="mean reward of {job.curve.window()} episodes">'
        f'<polyline points="{places}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
        f'<text x="0" y="-4" font-size="11">{high:.4g}</text>'
        f'<text x="0" y="{height + 14}" font-size="11">{low:.4g}, episodes {first} to {last}</text>'
        "</svg>"
    )


def _plain(text: str) -> str:
    # What a server says must not steer a terminal.
    encoding = sys.stdout.encoding or "utf-8"
    safe = "".join(one if one.isprintable() else " " for one in text)
    return safe.encode(encoding, "replace").decode(encoding, "replace")

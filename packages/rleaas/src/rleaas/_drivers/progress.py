"""How the progress of one call is shown: on a terminal, in a notebook, or by somebody's own."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable
from typing import Any, Protocol

from rleaas._drivers.terminal import ProgressLine
from rleaas._flow.wire import Show


class Progress(Protocol):
    """Shows how far one call is."""

    def show(self, step: Show) -> None:
        """Show the newest state: its `text`, `elapsed` and `fraction`."""
        ...

    def close(self) -> None:
        """Leave what was shown last."""
        ...


MakeProgress = Callable[[], Progress]


def progress_for_people() -> Progress:
    """Return a bar in the notebook that runs this, else a line for the terminal, if it is one."""
    show = notebook_display()
    return ProgressLine() if show is None else NotebookBar(show)


class NotebookBar:
    """A bar below the cell; it is drawn when there is something to show."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None

    def show(self, step: Show) -> None:
        """Draw the bar, or draw it anew."""
        picture = {"text/html": bar_html(step), "text/plain": step.text}
        if self._handle is None:
            self._handle = self._display(picture, raw=True, display_id=True)
        else:
            self._handle.update(picture, raw=True)

    def close(self) -> None:
        """Leave the bar as it is."""


def bar_html(step: Show) -> str:
    """Return a bar with its text, both as HTML."""
    words = html.escape(f"{step.text} · {step.elapsed}" if step.elapsed else step.text)
    if step.fraction is None:
        return f"<div>{words}</div>"
    return f'<div><progress value="{step.fraction:.4f}" max="1"></progress> {words}</div>'


def notebook_display() -> Callable[..., Any] | None:
    """Return what displays below the cell of a notebook; None where no notebook runs this."""
    # Only what is imported already: a program that is no notebook must not load IPython.
    shell = sys.modules.get("IPython.core.getipython")
    if shell is None or "ipykernel" not in sys.modules or "IPython.display" not in sys.modules:
        return None
    if shell.get_ipython() is None:
        return None
    display: Callable[..., Any] = sys.modules["IPython.display"].display
    return display

"""One line on the terminal that is written over and over."""

from __future__ import annotations

import shutil
import sys

from rleaas._flow.wire import Show

CLEAR = "\r\x1b[2K"
CELLS = 20


class ProgressLine:
    """Shows how far a wait is, on stderr, where a person watches it there.

    Elsewhere only what is forced is shown, as a line of its own each time it changes.
    """

    def __init__(self) -> None:
        self._last = ""
        self._open = False

    def show(self, step: Show) -> None:
        """Replace the line's text."""
        stream = sys.stderr
        if stream is None or stream.closed:  # a windowed program may have none
            return
        encoding = getattr(stream, "encoding", None) or "ascii"
        if stream.isatty():
            text = f"{step.text} · {step.elapsed}" if step.elapsed else step.text
            if step.fraction is not None:
                text = f"{bar(step.fraction)} {text}"
            width = shutil.get_terminal_size().columns - 1
            stream.write(CLEAR + printable(text, encoding)[:width])
            stream.flush()
            self._open = True
        elif step.force and step.text != self._last:
            stream.write(printable(step.text, encoding) + "\n")
            stream.flush()
        self._last = step.text

    def close(self) -> None:
        """Leave the line as it is and put what follows below it."""
        if self._open:
            self._open = False
            sys.stderr.write("\n")
            sys.stderr.flush()


def bar(fraction: float) -> str:
    """Return a bar of characters that every terminal has."""
    done = round(min(1.0, max(0.0, fraction)) * CELLS)
    return f"[{'#' * done}{'-' * (CELLS - done)}]"


def printable(text: str, encoding: str) -> str:
    """Return the text as a terminal can show it: on one line, and steering nothing."""
    plain = "".join(one if one.isprintable() else " " for one in text)
    return plain.encode(encoding, "replace").decode(encoding, "replace")

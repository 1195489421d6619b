"""One line on the terminal that is written over and over."""

from __future__ import annotations

import shutil
import sys

from rleaas._flow.wire import Show

CLEAR = "\r\x1b[2K"


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
        if stream.isatty():
            text = f"{step.text} · {step.elapsed}" if step.elapsed else step.text
            width = shutil.get_terminal_size().columns - 1
            stream.write(CLEAR + text[:width])
            stream.flush()
            self._open = True
        elif step.force and step.text != self._last:
            stream.write(step.text + "\n")
            stream.flush()
        self._last = step.text

    def close(self) -> None:
        """Leave the line as it is and put what follows below it."""
        if self._open:
            self._open = False
            sys.stderr.write("\n")
            sys.stderr.flush()

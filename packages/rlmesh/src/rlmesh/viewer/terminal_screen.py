"""A run as it is shown in the terminal, and what is typed there."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from time import monotonic
from typing import Final

from rlcore.printable import printable

from rlmesh.runs.pictures import Picture
from rlmesh.viewer.cells import (
    Kind,
    blocks,
    fitted,
    iterm2,
    kitty,
    kitty_gone,
    resized,
    terminal_kind,
)
from rlmesh.viewer.keys import ESCAPE, typed
from rlmesh.viewer.screen import Screen
from rlmesh.viewer.terminal import Terminal

_LINES: Final = 3
_WORDS_SECONDS: Final = 0.2
_KEYS: Final = "n skip   space pause   s step   q stop"


class TerminalScreen:
    """Draws a screen on a terminal, and hands on its keys; on a thread of its own.

    Args:
        screen: what is shown, and who is asked for something.
        terminal: where; it is given back at the end.
        fps: how often it is drawn at most.
        kind: how it draws pictures; by default as its environment variables say.
    """

    def __init__(
        self, screen: Screen, terminal: Terminal, *, fps: float, kind: Kind | None = None
    ) -> None:
        self.trouble: str | None = None
        self._screen = screen
        self._terminal = terminal
        self._period = 1 / fps
        self._kind = terminal_kind() if kind is None else kind
        self._size: object = None
        self._lines: list[bytes] = []
        self._words: list[str] = []
        self._drawn = 0
        self._stop = self._interrupted = False
        self._thread = threading.Thread(target=self._live, name="rlmesh-view-terminal", daemon=True)
        self._acts: dict[str, Callable[[], None]] = {
            "skip": screen.skip,
            "step": screen.control.step,
            "pause": self._pause,
            "quit": screen.control.quit,
            ESCAPE: screen.control.quit,
            "interrupt": self._interrupt,
            "right": lambda: screen.turn(1),
            "left": lambda: screen.turn(-1),
        }

    def start(self) -> None:
        """Take the terminal and begin."""
        try:
            self._terminal.take()
        except BaseException:
            self._terminal.give_back()
            raise
        self._thread.start()

    def close(self) -> None:
        """Give the terminal back."""
        self._stop = True
        self._terminal.wake()
        self._thread.join(2)
        self._terminal.give_back()

    def _live(self) -> None:
        try:
            due = monotonic()
            while not self._stop:
                for key in typed(self._terminal.keys(due - monotonic())):
                    self._press(key)
                if monotonic() >= due and not self._stop:
                    self._draw()
                    due = monotonic() + self._period
            if self._kind == "kitty":
                self._terminal.write(kitty_gone())
        except OSError as error:
            if not self._stop:
                self.trouble = f"the run is not shown in the terminal any more: {error}"
        finally:
            self._terminal.give_back()

    def _press(self, key: str) -> None:
        act = self._acts.get(key)
        if act is not None:
            act()
        else:
            self._screen.select(int(key) - 1)

    def _pause(self) -> None:
        control = self._screen.control
        if control.paused:
            control.resume()
        else:
            control.pause()

    def _interrupt(self) -> None:
        # A run that is stuck in a step does not hear the first one.
        if self._interrupted:
            os.kill(os.getpid(), signal.SIGINT)
        self._interrupted = True
        self._screen.control.quit()

    def _draw(self) -> None:
        columns, rows, cell = size = self._terminal.size()
        cleared = b""
        if size != self._size:
            self._size, self._lines, self._words, self._drawn = size, [], [], 0
            cleared = b"\x1b[2J"
        parts = [cleared]
        number, picture = self._screen.look()
        if picture is not None and number != self._drawn and rows > _LINES:
            parts.append(self._picture(picture, columns, rows - _LINES, cell))
            self._drawn = number
        words = self._told(columns)
        for line, word in enumerate(words):
            if self._words[line : line + 1] != [word]:
                top = max(rows - _LINES, 0) + line + 1
                parts.append(f"\x1b[{top};1H{word}\x1b[K".encode())
        self._words = words
        drawn = b"".join(parts)
        if drawn and not self._terminal.write(b"\x1b[?2026h" + drawn + b"\x1b[?2026l"):
            self._size = None  # woken in the middle of it

    def _picture(
        self, picture: Picture, columns: int, rows: int, cell: tuple[int, int] | None
    ) -> bytes:
        height, width = picture.shape[:2]
        wide, high = fitted((width, height), columns, rows, cell)
        if self._kind == "blocks":
            lines = blocks(picture, wide, high)
            before, self._lines = self._lines, lines
            return b"".join(
                f"\x1b[{row + 1};1H".encode() + line + b"\x1b[K"
                for row, line in enumerate(lines)
                if row >= len(before) or before[row] != line
            ) + b"".join(f"\x1b[{row + 1};1H\x1b[K".encode() for row in range(high, len(before)))
        if cell is not None and width > wide * cell[0]:  # no more pixels than are seen
            picture = resized(picture, wide * cell[0], high * cell[1])
        draw = kitty if self._kind == "kitty" else iterm2
        return b"\x1b[1;1H" + draw(picture, wide, high)

    def _told(self, columns: int) -> list[str]:
        hud = self._screen.hud.to_dict()
        control = self._screen.control
        of = f" of {hud['episodes']}" if hud["episodes"] else ""
        mood = "ending   " if control.quit_requested else "paused   " if control.paused else ""
        reward = "-" if hud["reward"] is None else f"{hud['reward']:.2f}"
        seed = "" if hud["seed"] < 0 else f"   seed {hud['seed']}"
        rate = hud["success_rate"]
        success = "" if rate is None else f"   success {rate:.0%}"
        labels = self._screen.labels
        source = ""
        if len(labels) > 1:
            selected = self._screen.selected
            source = f"arrows: {labels[selected]} ({selected + 1} of {len(labels)})   "
        told = (
            f"episode {hud['episode'] + 1}{of}   step {hud['step']}   return {reward}{seed}"
            f"{success}   {hud['outcome']}",
            f"{mood}model {hud['model_ms']:.2f} ms   env {hud['env_ms']:.2f} ms   "
            f"{hud['sps']:.0f} steps/s   {hud['fps']:.0f} frames/s   "
            f"{hud['elapsed_s']:.0f} s",
            source + _KEYS,
        )
        return [printable(line).rstrip()[:columns] for line in told]

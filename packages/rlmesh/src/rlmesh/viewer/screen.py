"""What the run's thread puts up, and the viewers' threads look at."""

from __future__ import annotations

from threading import Condition
from time import monotonic
from typing import Final

from rlmesh.runs.frames import FrameSource
from rlmesh.runs.pictures import Picture
from rlmesh.runs.views import ViewControl
from rlmesh.viewer.hud import Hud

_INTEREST_SECONDS: Final = 2.0


class Screen:
    """The picture that is shown, the sources to choose from, and the counts beside them.

    Args:
        control: how the run is asked for something.
        hud: the counts.
        source: the label of the first source to show, or None.
    """

    def __init__(self, control: ViewControl, hud: Hud, source: str | None) -> None:
        self.control = control
        self.hud = hud
        self._wanted = source
        self._change = Condition()
        self._title = ""
        self._labels: tuple[str, ...] = ()
        self._lanes: tuple[int | None, ...] = ()
        self._selected = 0
        self._picture: Picture | None = None
        self._version = 0
        self._closed = False
        self._looked = -_INTEREST_SECONDS

    @property
    def title(self) -> str:
        """What is stepped."""
        return self._title

    @property
    def labels(self) -> tuple[str, ...]:
        """What the sources are called."""
        return self._labels

    @property
    def selected(self) -> int:
        """Which source is shown."""
        return self._selected

    @property
    def closed(self) -> bool:
        """Whether nothing will change any more."""
        return self._closed

    @property
    def watched(self) -> bool:
        """Whether anybody has looked in the last two seconds."""
        return monotonic() - self._looked < _INTEREST_SECONDS

    def offer(self, title: str, sources: tuple[FrameSource, ...]) -> bool:
        """Say what there is to show; False where the source that was asked for is not among it."""
        labels = tuple(source.label for source in sources)
        with self._change:
            self._title = title
            self._labels = labels
            self._lanes = tuple(source.lane for source in sources)
            found = self._wanted is None or self._wanted in labels
            self._selected = labels.index(self._wanted) if self._wanted and found else 0
            self._change.notify_all()
            return found

    def select(self, index: int) -> bool:
        """Show another source; False where there is no such one."""
        with self._change:
            if not 0 <= index < len(self._labels):
                return False
            self._selected = index
            self._change.notify_all()
        self.control.look()
        return True

    def turn(self, by: int) -> None:
        """Show the next source, or the one before."""
        if self._labels:
            self.select((self._selected + by) % len(self._labels))

    def skip(self) -> None:
        """Ask for the end of the episode that is shown, or of all that are."""
        self.control.skip(self._lanes[self._selected] if self._lanes else None)

    def put(self, picture: Picture) -> None:
        """Show a picture, which nobody changes from now on."""
        with self._change:
            self._picture = picture
            self._version += 1
            self.hud.frame(picture.shape[1], picture.shape[0])
            self._change.notify_all()

    def look(self) -> tuple[int, Picture | None]:
        """Return the number of the picture, from 1, and the picture; 0 and None before one."""
        self._looked = monotonic()
        with self._change:
            return self._version, self._picture

    def await_end(self, seconds: float) -> None:
        """Wait until nothing will change any more, but not longer than so many seconds."""
        with self._change:
            self._change.wait_for(lambda: self._closed, seconds)

    def await_change(self, seen: int, seconds: float) -> int:
        """Wait for a picture after the one with the number `seen`; return the newest's number."""
        self._looked = monotonic()
        with self._change:
            self._change.wait_for(lambda: self._version != seen or self._closed, seconds)
            return self._version

    def close(self) -> None:
        """Nothing will change any more."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def state(self) -> dict[str, object]:
        """Return everything but the picture and the list of episodes, as JSON holds it."""
        return {
            "title": self._title,
            "hud": self.hud.to_dict(),
            "curves": self.hud.curves(),
            "sources": list(self._labels),
            "selected": self._selected,
            "frame": self._version,
            "paused": self.control.paused,
            "stopping": self.control.quit_requested,
        }

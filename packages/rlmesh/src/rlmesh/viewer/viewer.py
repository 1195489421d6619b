"""The viewer as a run has it: captures on the run's thread, and shows on others."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from rlcore import Error

from rlmesh.runs.frames import FrameSource
from rlmesh.runs.hooks import RunContext, StepEvent
from rlmesh.runs.pictures import Picture, tiled
from rlmesh.runs.views import ViewControl, ViewHooks
from rlmesh.viewer.encoding import frame_encoder
from rlmesh.viewer.hud import Hud
from rlmesh.viewer.page_server import PageServer
from rlmesh.viewer.screen import Screen

if TYPE_CHECKING:
    from rlmesh.runs.results import EpisodeResult, RunResult
    from rlmesh.viewer.view import View

_IDLE_SECONDS = 1.0
"""How often a picture is drawn while nobody looks, so that there is one for who comes."""


class Backend(Protocol):
    """A thread that shows a screen."""

    @property
    def trouble(self) -> str | None:
        """What ended it early, or None."""
        ...

    def close(self) -> None:
        """Stop, and give back what it took."""
        ...


class Viewer(ViewHooks):
    """Shows a run in the terminal, in a browser, or both, and hands on what is asked there.

    A picture is captured at most `fps` times a second, on the thread that steps the environment;
    encoding and sending happen elsewhere.

    Args:
        view: how to watch.
        episodes: how many episodes are planned, or None.
    """

    def __init__(self, view: View, *, episodes: int | None = None) -> None:
        self.view = view
        self.control = ViewControl(standing=self._standing)
        self.hud = Hud(episodes)
        self.screen = Screen(self.control, self.hud, view.source)
        self.takes_terminal = view.backend in ("terminal", "both")
        self._period = 1 / view.fps
        self._captured = -_IDLE_SECONDS
        self._sources: tuple[FrameSource, ...] = ()
        self._broken: set[str] = set()
        self._seen: dict[int, object] = {}
        self._backends: list[Backend] = []
        self._address: str | None = None
        self._started = self._closed = False

    def on_run_start(self, context: RunContext) -> None:
        """Open what was asked for, once; later runs of a session are shown in the same place."""
        lanes = context.num_envs
        self.control.watch(lanes)
        self._sources = context.frame_sources()
        self._seen.clear()
        contract = context.contract
        title = "" if contract is None else contract.id
        if not self.screen.offer(title, self._sources):
            known = ", ".join(self.screen.labels) or "none"
            _warn(f"there is no source {self.view.source!r} to look at, only: {known}")
        if not self._sources:
            _warn(
                "there is nothing to look at: the environment draws no arrays (make it with "
                "render_mode='rgb_array') and observes no images"
            )
        self.hud.begin()
        if self._started:
            return
        self._started = True
        if self.view.backend in ("http", "both"):
            self._open_page()
        if self.takes_terminal:
            self._open_terminal()

    def on_reset(
        self, observation: object, *, episode: int, seed: int | None = None, lane: int = 0
    ) -> None:
        """Show where an episode begins."""
        self.control.take_skip(lane)  # what was asked for the last one does not concern this one
        self.hud.reset(episode=episode, seed=seed, lane=lane)
        self._seen[lane] = observation
        self._capture_if_due(lane)

    def on_step(self, event: StepEvent) -> None:
        """Count a step, and show it when a picture is due."""
        self.hud.step(event)
        self._seen[event.lane] = event.next_observation
        self._capture_if_due(event.lane)

    def on_episode_end(self, result: EpisodeResult) -> None:
        """List an episode."""
        self.hud.episode(result)
        self._tell_troubles()

    def on_run_end(self, result: RunResult) -> None:
        """Stop the clock."""
        self.hud.end()

    def close(self) -> None:
        """Stop every backend, and give terminal and port back."""
        if self._closed:
            return
        self._closed = True
        self.screen.close()
        for backend in self._backends:
            backend.close()
        if self._address is not None:
            self.view.page_closed(self._address)
        self._tell_troubles()

    def _capture_if_due(self, lane: int) -> None:
        now = monotonic()
        passed = now - self._captured
        if passed < self._period or (passed < _IDLE_SECONDS and not self.screen.watched):
            return
        source = self._source()
        if source is None or (source.lane is not None and source.lane != lane):
            return
        # Steps that do not fit into the period do not make pictures rarer than they have to be.
        self._captured = now if passed > 2 * self._period else self._captured + self._period
        self._capture(source)

    def _standing(self) -> None:
        source = self._source()
        if source is not None:
            self._capture(source)

    def _source(self) -> FrameSource | None:
        index = self.screen.selected
        return self._sources[index] if index < len(self._sources) else None

    def _capture(self, source: FrameSource) -> None:
        if source.label in self._broken:
            return
        try:
            picture = self._picture(source)
        except Exception as error:  # a run is worth more than a look at it
            self._broken.add(source.label)
            text = " ".join(str(error).split())
            _warn(f"{source.label} is shown no more: {type(error).__name__}: {text}")
            return
        if picture is not None:
            self.hud.focus = source.lane or 0
            self.screen.put(picture)

    def _picture(self, source: FrameSource) -> Picture | None:
        if source.capture is not None:
            return source.capture()
        pick = source.pick
        assert pick is not None  # a source has one of the two
        if source.lane is not None:
            return _picked(pick, self._seen.get(source.lane))
        lanes = max(self._seen, default=-1) + 1
        return tiled([_picked(pick, self._seen.get(lane)) for lane in range(lanes)])

    def _open_page(self) -> None:
        encoder = frame_encoder(self.view.format, self.view.quality)
        try:
            page = PageServer(self.screen, encoder, port=self.view.port)
        except Error as error:
            _warn(f"the run is not shown in a browser: {error}")
            return
        if encoder.advisory is not None:
            _warn(encoder.advisory)
        page.start()
        self._backends.append(page)
        self._address = page.address
        self.view.page_opened(page.address)
        sys.stderr.write(f"watch the run at {page.address}\n")
        sys.stderr.flush()

    def _open_terminal(self) -> None:
        try:
            # Where there are no POSIX terminals, a browser is still served.
            from rlmesh.viewer.terminal import open_terminal
            from rlmesh.viewer.terminal_screen import TerminalScreen

            shown = TerminalScreen(self.screen, open_terminal(), fps=self.view.fps)
            shown.start()
        except (Error, OSError, ImportError) as error:
            _warn(f"the run is not shown in a terminal: {error}")
            return
        self._backends.append(shown)

    def _tell_troubles(self) -> None:
        for backend in [*self._backends]:
            if backend.trouble is not None:
                self._backends.remove(backend)
                backend.close()
                _warn(backend.trouble)


def _picked(pick: Callable[[object], Picture | None], observation: object) -> Picture | None:
    return None if observation is None else pick(observation)


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=2)

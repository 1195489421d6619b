"""What a run and whoever watches it live have to do with each other."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from threading import Condition
from time import monotonic
from typing import cast

from rlmesh.runs.hooks import RunHooks


class ViewControl:
    """What somebody who watches asks of the run: set on the viewer's threads, heard by the run.

    A run looks at `asked` between steps, which costs no more than an attribute, and calls the rest
    only where that is true.

    Args:
        standing: called by `wait` on the run's thread, when the run stands still, and again when
            something else shall be looked at.
    """

    def __init__(self, standing: Callable[[], None] | None = None) -> None:
        self.asked = False
        self._lanes = 1
        self._standing = standing
        self._looked = False
        self._change = Condition()
        self._quit = False
        self._paused = False
        self._steps = 0
        self._skips: set[int] = set()
        self._unheard = False

    @property
    def quit_requested(self) -> bool:
        """Whether the run shall end now, and return what it has."""
        return self._quit

    @property
    def paused(self) -> bool:
        """Whether the run shall stand still, but for single steps."""
        return self._paused

    def watch(self, lanes: int) -> None:
        """Say how many lanes the run has, before it starts."""
        self._lanes = lanes

    def skip(self, lane: int | None = None) -> None:
        """Ask for the end of a lane's episode, or of all that are open: they count as truncated."""
        with self._change:
            every = range(self._lanes)
            self._skips.update(every if lane is None else {lane}.intersection(every))
            self._unheard = bool(self._skips)
            self._changed()

    def quit(self) -> None:
        """Ask for the end of the run; it returns what is finished."""
        with self._change:
            self._quit = True
            self._changed()

    def pause(self) -> None:
        """Ask the run to stand still before its next step."""
        with self._change:
            self._paused = True
            self._changed()

    def resume(self) -> None:
        """Let the run go on."""
        with self._change:
            self._paused = False
            self._steps = 0
            self._changed()

    def step(self) -> None:
        """Let the run take one more step, and stand still again."""
        with self._change:
            self._steps = self._steps + 1 if self._paused else 1
            self._paused = True
            self._changed()

    def look(self) -> None:
        """Ask for another picture, where the run stands still."""
        with self._change:
            self._looked = True
            self._change.notify_all()

    def take_skip(self, lane: int = 0) -> bool:
        """Return whether a lane's episode shall end now; true once for each time that was asked.

        What is asked for one episode does not concern the next: a viewer's `on_reset` forgets it.
        """
        with self._change:
            asked = lane in self._skips
            self._skips.discard(lane)
            self._unheard = False  # a lane that plays no more never takes its own
            self._changed()
            return asked

    def wait(self) -> float:
        """Stand still while paused: until resumed, a single step, a skip, or the end is asked for.

        Returns:
            How many seconds that took, which no time limit of an episode should count. It is
            heard by Ctrl-C.
        """
        if not self._paused:
            return 0.0
        started = monotonic()
        if self._standing is not None:
            self._standing()
        while self._stands():
            if self._standing is not None:
                self._standing()
        return monotonic() - started

    def _stands(self) -> bool:
        """Wait; true where another picture is asked for, false where the run goes on."""
        with self._change:
            while self._paused and not (self._steps or self._quit or self._unheard):
                if self._looked:
                    self._looked = False
                    return True
                self._change.wait()
            self._steps = max(0, self._steps - 1)
            self._changed()
            return False

    def _changed(self) -> None:
        self.asked = self._quit or self._paused or bool(self._skips)
        self._change.notify_all()


class ViewHooks(RunHooks):
    """A viewer as a run has it: hooks like any other, a control to obey, and an end.

    The run calls, on the thread that steps the environment: `on_run_start` when the environment is
    open, `on_episode_start`, `on_reset` with the first observation, `on_step` after each step,
    `on_episode_end`, `on_run_end`, and `close` at last, whatever happened. None of these raises:
    what goes wrong with looking is a `UserWarning`, and the run goes on.

    Attributes:
        control: what is asked of the run.
        takes_terminal: whether it draws on the terminal, so that nothing else should.
    """

    control: ViewControl
    takes_terminal: bool = False

    def on_reset(
        self, observation: object, *, episode: int, seed: int | None = None, lane: int = 0
    ) -> None:
        """An episode was reset; this is its first observation."""

    def close(self) -> None:
        """Stop watching and give everything back; a second call does nothing."""


def open_view(view: object, *, episodes: int | None = None) -> ViewHooks | None:
    """Return the viewer that a `view=` argument asks for, not yet showing anything.

    It starts with `on_run_start`, so nothing has to be undone where a run does not come that far.

    Args:
        view: None or False for none, True for the terminal, `terminal`, `term`, `tty`, an empty
            text, `http`, `http:PORT`, `both`, or a `View`.
        episodes: how many episodes are planned, where that is known.

    Raises:
        ConfigurationError: it is none of these; also a `ValueError` for what is the right type.
    """
    if view is None or view is False:
        return None
    opening = cast(
        "Callable[..., ViewHooks]",
        # The viewer is built on runs, so runs cannot import it; and most runs have none.
        import_module("rlmesh.viewer.opening").open_viewer,
    )
    return opening(view, episodes=episodes)

"""Gathers what the checks judge: lives of an environment, one after another and side by side."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Collection, Generator
from contextlib import contextmanager
from functools import cached_property
from typing import TypeVar

from rlcore import Error

from rlmesh.conformance.elsewhere import Elsewhere, play_elsewhere
from rlmesh.conformance.keeper import Hung, Keeper
from rlmesh.conformance.lanes import Lanes, live_lanes
from rlmesh.conformance.lives import (
    First,
    Life,
    Second,
    Unread,
    frames_of,
    live_first,
    live_second,
)
from rlmesh.conformance.recording import Recorder, Recording
from rlmesh.conformance.stage import Raised, Stage
from rlmesh.conformance.subject import Subject
from rlmesh.conformance.watching import Watcher

T = TypeVar("T")


class Unseen(Exception):
    """A check needs what was not seen; the text says why."""


def need(value: T | None) -> T:
    """Return what was seen.

    Raises:
        Unseen: it was not, because the environment hung before.
    """
    if value is None:
        raise unseen()
    return value


def unseen() -> Unseen:
    """Return what to raise about something that was not seen, because the environment hung."""
    return Unseen("the environment hung before this could be seen; see in_time")


class Evidence:
    """What is seen of a subject, gathered when it is first asked for.

    Lives follow one another, because some servers have room for one client only: the first is
    closed before the second begins.

    Args:
        subject: what is checked.
        seeds: of the plays.
        steps: of each play.
        seconds: how long one call may take.
        watcher: hears how it goes on.
        names: the checks that will be performed; what only others need is not provoked.
        caught: the warnings of the whole check, as they arrive.
    """

    def __init__(
        self,
        subject: Subject,
        *,
        seeds: tuple[int, ...],
        steps: int,
        seconds: float,
        watcher: Watcher,
        names: Collection[str],
        caught: list[warnings.WarningMessage],
    ) -> None:
        self.subject = subject
        self.seeds = seeds
        self.steps = steps
        self.seconds = seconds
        self.caught = caught
        self.hung: Hung | None = None
        self._watcher = watcher
        self._names = names

    @cached_property
    def first(self) -> First:
        """What the first life shows.

        Raises:
            Error: the environment cannot be made, or nothing answers at its address, or its server
                lets nobody in.
        """
        seen = First()
        with self._bounded(), self._unread(seen):
            life = self._begin()
            live_first(life, seen, self.seeds, self.steps)
            life.keeper.dismiss()
        return seen

    @cached_property
    def second(self) -> Second:
        """What the second life shows."""
        first, seen = self.first, Second()
        with self._bounded(), self._unmade(seen), self._provoking():
            life = self._begin()
            live_second(life, seen, first, self.seeds[0], self.steps, self._names)
            life.keeper.dismiss()
        return seen

    @cached_property
    def recording(self) -> Recording:
        """The first recording of the first life.

        Raises:
            Unseen: the environment hung before it was complete.
        """
        return need(self.first.recordings.get(self.seeds[0]))

    @cached_property
    def lanes(self) -> Lanes:
        """What an environment of several lanes shows of them, in a life of its own."""
        _, seen = self.second, Lanes()
        with self._bounded(), self._another(), self._provoking():
            life = self._begin()
            live_lanes(life, seen, self.seeds[0], self.steps)
            life.close()
            life.keeper.dismiss()
        return seen

    def rendering(self, mode: str) -> list[object] | Raised | Error | None:
        """Return the frames of an environment that is made to render in this way."""
        _ = self.second
        frames: list[object] | Raised | Error | None = None
        with self._bounded(), self._provoking():
            try:
                life = self._begin(render_mode=mode)
            except Error as error:
                return error
            frames = life.keeper.ask(lambda: frames_of(life, self.seeds[0]))
            life.close()
            life.keeper.dismiss()
        return frames

    def side_by_side(self) -> list[Recording] | Error | None:
        """Return the recordings of two environments, played at the same time in two threads."""
        _ = self.second
        recordings: list[Recording] | None = None
        with self._bounded():
            try:
                one = self._begin()
            except Error as error:
                return error
            try:
                other = self._begin()
            except Error as error:
                one.close()
                return error
            # Half the patience: whoever waits for one that hangs is not to be taken for it.
            meeting = threading.Barrier(2, timeout=self.seconds / 2)
            seed, steps = self.seeds[0], self.steps
            plays = [life.begin(seed, steps, meeting) for life in (one, other)]
            recordings = [play.result() for play in plays]
            for life in (one, other):
                life.close()
                life.keeper.dismiss()
        return recordings

    def moved(self) -> Recording | None:
        """Return the recording of an environment played in a thread that did not make it."""
        _ = self.second
        recording: Recording | None = None
        with self._bounded(), self._another():
            life = self._begin()
            other = self._keeper()
            stage = Stage(life.stage.env, other.pulse)
            recorder = Recorder(stage, life.face)
            recording = other.ask(lambda: recorder.play(self.seeds[0], self.steps))
            other.dismiss()
            life.close()
            life.keeper.dismiss()
        return recording

    def elsewhere(self) -> Elsewhere:
        """Return what the first play is in another process."""
        patience = 10 * (sum(self.recording.step_seconds) + 1) + self.seconds
        return play_elsewhere(
            self.subject,
            seed=self.seeds[0],
            steps=self.steps,
            seconds=self.seconds,
            patience=patience,
            on_glance=self._watcher.glance,
        )

    def _begin(self, **kwargs: object) -> Life:
        if self.hung is not None:
            raise self.hung
        return Life(self.subject, self._keeper(), **kwargs)

    def _keeper(self) -> Keeper:
        return Keeper(self.seconds, self._watcher)

    @contextmanager
    def _bounded(self) -> Generator[None]:
        try:
            yield
        except Hung as hung:
            self.hung = self.hung or hung

    @contextmanager
    def _unread(self, seen: First) -> Generator[None]:
        try:
            yield
        except Unread as error:
            seen.unread = error

    @contextmanager
    def _another(self) -> Generator[None]:
        try:
            yield
        except Error as error:
            raise Unseen(f"another instance could not be had: {error.message}") from error

    @contextmanager
    def _unmade(self, seen: Second) -> Generator[None]:
        try:
            yield
        except Error as error:
            seen.unmade = error

    @contextmanager
    def _provoking(self) -> Generator[None]:
        """Forget warnings about what only a check would do."""
        before = len(self.caught)
        try:
            yield
        finally:
            del self.caught[before:]

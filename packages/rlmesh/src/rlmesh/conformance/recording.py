"""A play of an environment, recorded: what came back, and what was wrong with it."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, cast

from rlmesh.codec.metadata import encode_meta_lenient
from rlmesh.conformance.answers import Outcome, judged_reset, judged_step
from rlmesh.conformance.face import Face
from rlmesh.conformance.stage import Raised, Stage
from rlmesh.conformance.values import difference, digest, kept
from rlmesh.conformance.verdicts import Place
from rlmesh.spaces.coerce import shown

LATER_EPISODES: Final = 1000  # between the seeds of one play's episodes
REMEMBERED: Final = 3  # observations that are looked at again
OF_AUTORESET: Final = ("final_obs", "final_info")


@dataclass(frozen=True, slots=True)
class Moment:
    """What one reset or step gave, by its content."""

    place: Place
    observation: bytes
    outcome: bytes
    info: bytes
    shown: object
    shown_outcome: str


@dataclass(frozen=True, slots=True)
class Fault:
    """The first thing that was wrong with answers, of its kind."""

    text: str
    place: Place


@dataclass(slots=True)
class Recording:
    """A play: its moments, in order, and what was wrong.

    Attributes:
        moments: what came back.
        faults: the first fault of each kind, by the name of its check.
        raised: what ended the play early.
        cause: the exception that did.
        ends: how many episodes were terminated, and how many truncated.
        longest: the steps of the longest episode that ended.
        first_end: where the first of them ended.
        simplified: the paths in infos that cannot travel as they are.
        step_seconds: how long each step took.
    """

    seed: int
    moments: list[Moment] = field(default_factory=list[Moment])
    faults: dict[str, Fault] = field(default_factory=dict[str, Fault])
    raised: Fault | None = None
    cause: BaseException | None = None
    ends: dict[str, int] = field(default_factory=lambda: {"terminated": 0, "truncated": 0})
    longest: int = 0
    first_end: Place | None = None
    simplified: set[str] = field(default_factory=set[str])
    step_seconds: list[float] = field(default_factory=list[float])

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return len(self.step_seconds)

    @property
    def digest(self) -> str:
        """A digest of all observations, rewards and flags: the trajectory's."""
        hashed = hashlib.sha256()
        for moment in self.moments:
            hashed.update(moment.observation + moment.outcome)
        if self.raised is not None:
            hashed.update(str(self.raised.place).encode())
        return hashed.hexdigest()

    def fault(self, check: str, text: str | None, place: Place) -> None:
        """Remember what was wrong, if it is the first of its kind."""
        if text is not None:
            self.faults.setdefault(check, Fault(text, place))


class Recorder:
    """Plays an environment with seeded samples of its action space, and records what comes back.

    Where the environment does not reset itself, an episode that ends is followed by another: the
    k-th episode has the seed `seed + 1000 k` and actions of a space seeded with k.

    Args:
        stage: the environment.
        face: how it is played.
        attentive: whether earlier observations are looked at again.
        meeting: where plays in other threads are waited for before each step, so that they take
            turns however fast they are.
    """

    def __init__(
        self,
        stage: Stage,
        face: Face,
        *,
        attentive: bool = False,
        meeting: threading.Barrier | None = None,
    ) -> None:
        self._stage = stage
        self._face = face
        self._attentive = attentive
        self._meeting = meeting
        self._earlier: deque[tuple[Place, object, bytes]] = deque(maxlen=REMEMBERED)
        self._place = Place(0, 0, 0)

    def play(self, seed: int, steps: int) -> Recording:
        """Return a recording of so many steps.

        Raises:
            Hung: a client gave up on its server.
        """
        recording = Recording(seed)
        episode = 0
        try:
            while recording.steps < steps:
                start = Place(seed + LATER_EPISODES * episode, episode, 0)
                self._episode(recording, start, steps)
                episode += 1
        except Raised as raised:
            recording.raised = Fault(str(raised), self._place)
            recording.cause = raised.error
        finally:
            if self._meeting is not None:
                self._meeting.abort()
        return recording

    def _episode(self, recording: Recording, start: Place, steps: int) -> None:
        self._place = start
        self._earlier.clear()
        actions = self._stage.call(
            "action_space.sample()", lambda: self._face.actions(start.action_seed)
        )
        answer = self._stage.reset(seed=start.seed)
        self._keep(recording, start, judged_reset(answer))
        length = 0
        while recording.steps < steps:
            length += 1
            self._place = place = Place(start.seed, start.action_seed, length)
            action = self._stage.call("action_space.sample()", lambda: next(actions))
            given = digest(action)
            if self._meeting is not None:
                with suppress(threading.BrokenBarrierError):  # the others have ended, or hang
                    self._meeting.wait()
            began = time.perf_counter()
            answer = self._stage.step(action, str(place))
            recording.step_seconds.append(time.perf_counter() - began)
            outcome = judged_step(answer, self._face.lanes)
            self._keep(recording, place, outcome)
            if digest(action) != given:
                text = f"the action was overwritten: it is {shown(action)} now"
                recording.fault("action_kept", text, place)
            if self._ended(recording, outcome, length) and self._face.restarts:
                return

    def _keep(self, recording: Recording, place: Place, outcome: Outcome) -> None:
        for check, text in outcome.faults.items():
            recording.fault(check, text, place)
        if outcome.malformed:
            return
        recording.fault("observations", self._face.judge(outcome.observation), place)
        self._travels(recording, outcome.info)
        content = digest(outcome.observation)
        if self._attentive:
            self._look_back(recording, place)
            self._earlier.append((place, outcome.observation, content))
        recording.moments.append(
            Moment(
                place,
                content,
                digest(outcome.scored),
                digest(outcome.info),
                kept(outcome.observation),
                outcome.shown,
            )
        )

    def _look_back(self, recording: Recording, place: Place) -> None:
        for when, observation, content in self._earlier:
            if digest(observation) != content:
                what = f"the observation of {when} was changed by {place}"
                recording.fault("observation_kept", what, when)

    def _travels(self, recording: Recording, info: object) -> None:
        if self._face.lanes is not None and isinstance(info, dict):
            entries = cast("dict[str, object]", info)
            info = {k: v for k, v in entries.items() if str(k).lstrip("_") not in OF_AUTORESET}
        _, changed = encode_meta_lenient(info)
        recording.simplified.update(changed)

    def _ended(self, recording: Recording, outcome: Outcome, length: int) -> bool:
        if outcome.malformed:
            return False
        terminated, truncated = outcome.count("terminated"), outcome.count("truncated")
        recording.ends["terminated"] += terminated
        recording.ends["truncated"] += truncated
        ended = bool(terminated or truncated)
        if ended:
            recording.longest = max(recording.longest, length)
            recording.first_end = recording.first_end or self._place
        return ended


@dataclass(frozen=True, slots=True)
class Departure:
    """The first moment at which two plays differ."""

    text: str
    place: Place


def departure(one: Recording, other: Recording) -> Departure | None:
    """Return where two plays first differ, or None."""
    for mine, its in zip(one.moments, other.moments, strict=False):
        if mine.observation != its.observation:
            what = difference(mine.shown, its.shown)
            return Departure(f"the observations differ: {what}", mine.place)
        if mine.outcome != its.outcome:
            what = f"{mine.shown_outcome} and {its.shown_outcome}"
            return Departure(f"the rewards or flags differ: {what}", mine.place)
    fault = one.raised or other.raised
    if fault is not None and (one.raised is None or other.raised is None):
        return Departure(f"only one of them raised: {fault.text}", fault.place)
    return None


def info_departure(one: Recording, other: Recording) -> Departure | None:
    """Return where the infos of two plays first differ, or None."""
    for mine, its in zip(one.moments, other.moments, strict=False):
        if mine.info != its.info:
            return Departure("the infos differ", mine.place)
    return None

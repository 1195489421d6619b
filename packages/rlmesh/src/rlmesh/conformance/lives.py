"""What is seen of an environment in one life, from making it to closing it."""

from __future__ import annotations

import copy
import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from rlcore import EnvironmentException, Error, TransportError

from rlmesh.conformance.answers import Outcome, judged_reset, judged_step
from rlmesh.conformance.containment import AnySpace
from rlmesh.conformance.face import Face, face_of
from rlmesh.conformance.keeper import Keeper, Pending
from rlmesh.conformance.recording import Recorder, Recording
from rlmesh.conformance.stage import Raised, Stage
from rlmesh.conformance.subject import Env, Subject
from rlmesh.conformance.traffic import lost_values
from rlmesh.conformance.values import digest
from rlmesh.conformance.verdicts import Place
from rlmesh.specs import EnvContract, contract_of

AFTER_END: Final = "a step after the end"
ILLEGAL: Final = "a step with an illegal action"

Closings: TypeAlias = list[str | None]
"""What each close raised, or None."""


class Unread(EnvironmentException):
    """What an environment says of itself cannot be read."""

    default_code = "unreadable"


class Life:
    """An environment that was made, in the hands of a keeper of its own."""

    def __init__(self, subject: Subject, keeper: Keeper, **kwargs: object) -> None:
        self.keeper = keeper
        self._subject = subject

        def make() -> tuple[Env, Face]:
            keeper.pulse.beat("making the environment", subject.patience)
            try:
                env = subject.make(**kwargs)
            except Error:
                raise
            except BaseException as error:  # of its attributes; nobody interrupts this thread
                raise Unread(str(Raised("making it", error))) from error
            try:
                what = "reading its spaces and metadata"
                return env, Stage(env, keeper.pulse).call(what, lambda: face_of(env))
            except Raised as raised:
                raise Unread(str(raised)) from raised.error

        env, self.face = keeper.ask(make)
        self.stage = Stage(env, keeper.pulse)

    def play(self, seed: int, steps: int, *, attentive: bool = False) -> Recording:
        """Return a recording of so many steps."""
        recorder = Recorder(self.stage, self.face, attentive=attentive)
        return self.keeper.ask(lambda: recorder.play(seed, steps))

    def begin(self, seed: int, steps: int, meeting: threading.Barrier) -> Pending[Recording]:
        """Begin a recording of so many steps, taking turns with others, and do not wait for it."""
        recorder = Recorder(self.stage, self.face, meeting=meeting)
        return self.keeper.submit(lambda: recorder.play(seed, steps))

    def close(self) -> str | None:
        """Close the environment, unless it is the caller's; return what that raised, or None."""
        if self._subject.borrowed:
            return None
        env = self.stage.env
        try:
            self.keeper.ask(lambda: self.stage.call("close()", lambda: env.close()))
        except Raised as raised:
            return str(raised)
        return None


@dataclass(slots=True)
class First:
    """What the first life shows; what was not reached is None."""

    face: Face | None = None
    unread: Unread | None = None
    contract: EnvContract | Error | None = None
    recordings: dict[int, Recording] = field(default_factory=dict[int, Recording])
    generator_seeds: dict[int, object] = field(default_factory=dict[int, object])
    again: Recording | None = None
    unseeded: list[bytes] | Raised | None = None
    with_options: bytes | Raised | None = None
    lost: list[str] | None = None
    closings: Closings | None = None


@dataclass(slots=True)
class AfterEnd:
    """What came of a step after the end of an episode, and of the next seeded reset."""

    place: Place
    answer: Outcome | Raised
    again: bytes | Raised


@dataclass(slots=True)
class Illegal:
    """What came of an action outside the action space, and of the next seeded reset."""

    action: object
    answer: Outcome | Raised
    again: bytes | Raised


@dataclass(slots=True)
class Second:
    """What the second life shows; what was not reached is None."""

    unmade: Error | None = None
    digest: str | None = None
    recording: Recording | None = None
    after_end: AfterEnd | None = None
    illegal: Illegal | None = None
    frames: list[object] | Raised | None = None


def live_first(life: Life, seen: First, seeds: tuple[int, ...], steps: int) -> None:
    """Fill in what the first life shows, in an order that keeps what comes before a hang.

    Raises:
        TransportError: the server lets nobody in.
    """
    seen.face = life.face
    ask, stage, first = life.keeper.ask, life.stage, seeds[0]
    seen.contract = ask(lambda: _contract(stage))
    for seed in seeds:
        seen.recordings[seed] = recording = life.play(seed, steps, attentive=True)
        if isinstance(recording.cause, TransportError) and not recording.moments:
            raise recording.cause  # the server lets nobody in: there is nothing to check
        seen.generator_seeds[seed] = ask(lambda: _generator_seed(stage))
    seen.again = life.play(first, steps)
    seen.with_options = ask(lambda: _first_observation(stage, first, options={}))
    seen.unseeded = ask(lambda: _unseeded(stage, first))
    contract = seen.contract
    if isinstance(contract, EnvContract) and hasattr(stage.env, "env_contract"):
        seen.lost = ask(lambda: lost_values(life.stage, life.face, contract, first))
    seen.closings = [life.close(), life.close()]


def live_second(
    life: Life, seen: Second, first: First, seed: int, steps: int, names: Collection[str]
) -> None:
    """Fill in what the second life shows, likewise; what may harm the environment comes last."""
    contract = life.keeper.ask(lambda: _contract(life.stage))
    seen.digest = contract.digest if isinstance(contract, EnvContract) else None
    seen.recording = life.play(seed, steps)
    if life.face.render_mode is not None:
        seen.frames = life.keeper.ask(lambda: frames_of(life, seed))
    ends = [recording.first_end for recording in first.recordings.values()]
    place = next((end for end in ends if end is not None), None)
    if place is not None and life.face.lanes is None and "after_end" in names:
        seen.after_end = life.keeper.ask(lambda: _after_end(life, place, seed))
    action = illegal_action(life.face.action_space) if "illegal_action" in names else None
    if action is not None:
        seen.illegal = life.keeper.ask(lambda: _illegal(life, action, seed))
    life.close()


def frames_of(life: Life, seed: int) -> list[object] | Raised:
    """Return what render gives after a reset and after a step."""
    stage = life.stage
    try:
        stage.reset(seed=seed)
        frames: list[object] = [stage.call("render() after reset", lambda: stage.env.render())]
        stage.step(next(life.face.actions(0)), "step 1")
        frames.append(stage.call("render() after step 1", lambda: stage.env.render()))
    except Raised as raised:
        return raised
    return frames


def illegal_action(space: AnySpace) -> object | None:
    """Return an action outside a space, or None where none is known."""
    kinds = {base.__name__ for base in type(space).__mro__}
    if "Discrete" in kinds:
        return int(space.start) + int(space.n)
    if kinds & {"Box", "MultiBinary", "MultiDiscrete"}:
        sample = np.asarray(copy.deepcopy(space).sample())
        return np.zeros((*sample.shape, 3), sample.dtype)
    if "Dict" in kinds:
        return {}
    if kinds & {"Tuple", "Text"}:
        return -1
    return None


def _contract(stage: Stage) -> EnvContract | Error:
    try:
        return stage.call("reading the contract", lambda: contract_of(stage.env))
    except Raised as raised:
        if isinstance(raised.error, Error):
            return raised.error
        return Error(str(raised))


def _generator_seed(stage: Stage) -> object:
    def read() -> object:
        return getattr(getattr(stage.env, "unwrapped", None), "np_random_seed", None)

    try:
        return stage.call("reading np_random_seed", read)
    except Raised:  # it tells no seed, as many do
        return None


def _first_observation(stage: Stage, seed: int, **arguments: object) -> bytes | Raised:
    try:
        return digest(judged_reset(stage.reset(seed=seed, **arguments)).observation)
    except Raised as raised:
        return raised


def _unseeded(stage: Stage, seed: int) -> list[bytes] | Raised:
    """Return the first observations of resets without a seed, after seeded ones: two of each."""
    seen: list[bytes] = []
    try:
        for _ in range(2):
            stage.reset(seed=seed)
            answers = [stage.reset() for _ in range(2)]
            seen += [digest(judged_reset(answer).observation) for answer in answers]
    except Raised as raised:
        return raised
    return seen


def _after_end(life: Life, place: Place, seed: int) -> AfterEnd:
    stage, answer = life.stage, None
    try:
        actions = life.face.actions(place.action_seed)
        stage.reset(seed=place.seed)
        for step in range(place.step):
            stage.step(next(actions), f"step {step + 1}")
        answer = judged_step(stage.step(next(actions), AFTER_END), life.face.lanes)
    except Raised as raised:
        return AfterEnd(place, raised, _first_observation(stage, seed))
    return AfterEnd(place, answer, _first_observation(stage, seed))


def _illegal(life: Life, action: object, seed: int) -> Illegal:
    stage = life.stage
    try:
        stage.reset(seed=seed)
        answer = judged_step(stage.step(action, ILLEGAL), life.face.lanes)
    except Raised as raised:
        return Illegal(action, raised, _first_observation(stage, seed))
    return Illegal(action, answer, _first_observation(stage, seed))

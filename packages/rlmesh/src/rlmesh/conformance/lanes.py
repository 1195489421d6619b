"""What an environment of several lanes shows of them: ends, resets, seeds."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np
from rlcore import MissingDependencyError

from rlmesh.conformance.answers import Outcome, judged_reset, judged_step
from rlmesh.conformance.containment import AnySpace, compile_judge
from rlmesh.conformance.kinds import is_dict
from rlmesh.conformance.lives import Life
from rlmesh.conformance.stage import Raised
from rlmesh.conformance.traffic import SHORT
from rlmesh.conformance.values import digest
from rlmesh.conformance.verdicts import Place
from rlmesh.specs import AutoresetMode

Actions: TypeAlias = list[Any]  # Any: one batched action for each step
Columns: TypeAlias = list[tuple[bytes, ...]]
"""Each lane's observations, up to the first end in any lane."""

FEW_ENDS = 3
OTHER_ACTIONS = 4
BEFORE_PARTIAL = 3
AFTER_PARTIAL = 5


@dataclass(frozen=True, slots=True)
class Row:
    """What one step gave, lane by lane."""

    observations: tuple[bytes, ...]
    rewards: tuple[float, ...]
    ended: tuple[bool, ...]
    finals: Mapping[int, Final]


@dataclass(frozen=True, slots=True)
class Final:
    """What the infos keep of an episode that ended in a lane."""

    observation: bytes | None
    fault: str | None
    has_info: bool


@dataclass(frozen=True, slots=True)
class End:
    """An episode's end in a lane, and the step after it.

    Attributes:
        step: the step that ended it, from 1.
        after: what the next step gave; None where it raised.
        refusal: what the next step raised.
        ignores: whether other actions in the next step made no difference to it.
    """

    lane: int
    step: int
    row: Row
    after: Row | None
    refusal: str | None
    ignores: bool


@dataclass(slots=True)
class Lanes:
    """What was seen; what was not reached is None."""

    raised: str | None = None
    ends: list[End] = field(default_factory=list[End])
    constant: bool = False
    columns: list[Columns] | None = None
    listed: tuple[bytes, ...] | Raised | None = None
    partial: Partial | None = None
    place: Place | None = None


@dataclass(slots=True)
class Partial:
    """A reset of lane 0 alone, a few steps into a play."""

    raised: str | None = None
    before: tuple[bytes, ...] = ()
    first: tuple[bytes, ...] = ()
    after: tuple[bytes, ...] = ()
    undisturbed: list[tuple[bytes, ...]] = field(default_factory=list[tuple[bytes, ...]])
    continued: list[tuple[bytes, ...]] = field(default_factory=list[tuple[bytes, ...]])


class Vector:
    """A vector environment in its keeper's thread, its values taken apart by lane."""

    def __init__(self, life: Life) -> None:
        env = life.stage.env
        self.life = life
        self.lanes = life.face.lanes or 1
        self.single_action: AnySpace = env.single_action_space
        self._judge = compile_judge(env.single_observation_space, "final_obs")
        self._iterate, self._batch = _gymnasium_tools()

    def reset(self, seed: object, **arguments: object) -> tuple[bytes, ...]:
        """Reset and return each lane's observation."""
        answer = judged_reset(self.life.stage.reset(seed=seed, **arguments))
        return self._apart(answer.observation)

    def step(self, action: object, what: str) -> Row:
        """Step and return what came back."""
        outcome = judged_step(self.life.stage.step(action, what), self.lanes)
        wrong = [text for check, text in outcome.faults.items() if check != "info"]
        if wrong:
            raise Raised(what, TypeError(wrong[0]))
        ended = np.asarray(outcome.terminated, bool) | np.asarray(outcome.truncated, bool)
        rewards = np.asarray(cast("Any", outcome.reward), float)  # Any: it was judged elsewhere
        return Row(
            self._apart(outcome.observation),
            tuple(rewards.tolist()),
            tuple(ended.tolist()),
            self._finals(outcome),
        )

    def actions(self, count: int, action_seed: int = 0) -> Actions:
        """Return batched actions, seeded."""
        samples = self.life.face.actions(action_seed)
        return [next(samples) for _ in range(count)]

    def alike(self, count: int) -> Actions:
        """Return batched actions that are the same in all lanes, seeded."""
        return [self._joined([one] * self.lanes) for one in self._singles(count)]

    def replaced(self, action: object, lane: int) -> Iterator[object]:
        """Yield the batched action with other actions in one lane."""
        given = list(self._iterate(self.life.face.action_space, action))
        for other in self._singles(OTHER_ACTIONS * 4):
            if digest(other) != digest(given[lane]):
                yield self._joined([*given[:lane], other, *given[lane + 1 :]])

    def _singles(self, count: int) -> Iterator[object]:
        space = copy.deepcopy(self.single_action)
        space.seed(0)
        return (space.sample() for _ in range(count))

    def _joined(self, values: list[object]) -> object:
        return self._batch(self.single_action, values)

    def _apart(self, observation: object) -> tuple[bytes, ...]:
        space = self.life.face.observation_space
        return tuple(digest(one) for one in self._iterate(space, observation))

    def _finals(self, outcome: Outcome) -> dict[int, Final]:
        infos = outcome.info if is_dict(outcome.info) else {}
        entries = cast("dict[str, Any]", infos)  # Any: whatever the environment put there
        with_observation = _masked(entries, "final_obs", self.lanes)
        with_info = _masked(entries, "final_info", self.lanes)
        finals: dict[int, Final] = {}
        for lane in sorted(with_observation | with_info):
            content, fault = None, None
            if lane in with_observation:
                value = entries["final_obs"][lane]
                content, fault = digest(value), self._judge(value)
            finals[lane] = Final(content, fault, lane in with_info)
        return finals


def live_lanes(life: Life, seen: Lanes, seed: int, steps: int) -> None:
    """Fill in what the lanes show."""
    vector = Vector(life)
    ask = life.keeper.ask
    seen.place = Place(seed, 0, 0)
    try:
        ask(lambda: _find_ends(vector, seen, seed, steps))
        seen.columns = [
            ask(lambda: _columns(vector, seed)),
            ask(lambda: _columns(vector, seed + 1)),
        ]
        seen.listed = ask(lambda: _listed(vector, seed))
        if life.face.mode is AutoresetMode.DISABLED:
            seen.partial = ask(lambda: _partial(vector, seed))
    except Raised as raised:
        seen.raised = str(raised)


def _find_ends(vector: Vector, seen: Lanes, seed: int, steps: int) -> None:
    """Play until a few lanes have ended; then look closely at the steps after that."""
    actions = vector.actions(steps + 1)
    rows = [vector.reset(seed)]
    found: list[tuple[int, int, Row]] = []
    done: set[int] = set()
    for number, action in enumerate(actions[:-1], start=1):
        row = vector.step(action, f"step {number}")
        rows.append(row.observations)
        for lane in (lane for lane, ended in enumerate(row.ended) if ended):
            if lane not in done:
                found.append((number, lane, row))
                done.add(lane)
        # A lane that has ended and does not reset itself must not be stepped on.
        if len(found) >= FEW_ENDS or (found and vector.life.face.restarts):
            break
    seen.constant = all(len(set(column)) == 1 for column in zip(*rows, strict=True))
    for number, lane, row in found:
        after, refusal = _play_on(vector, seed, actions[: number + 1])
        ignores = after is not None and _ignores(vector, seed, actions[: number + 1], lane, after)
        seen.ends.append(End(lane, number, row, after, refusal, ignores))


def _play_on(vector: Vector, seed: int, actions: Actions) -> tuple[Row | None, str | None]:
    """Return what the last of these steps gives, or what it raises."""
    vector.reset(seed)
    for number, action in enumerate(actions[:-1], start=1):
        vector.step(action, f"step {number}")
    try:
        return vector.step(actions[-1], "the step after an end"), None
    except Raised as raised:
        return None, str(raised)


def _ignores(vector: Vector, seed: int, actions: Actions, lane: int, after: Row) -> bool:
    """Return whether the lane's last action makes no difference."""
    tried = 0
    for other in vector.replaced(actions[-1], lane):
        row, _ = _play_on(vector, seed, [*actions[:-1], other])
        if row is None or row.observations[lane] != after.observations[lane]:
            return False
        if row.rewards[lane] != after.rewards[lane]:
            return False
        tried += 1
        if tried == OTHER_ACTIONS:
            break
    return tried > 0


def _columns(vector: Vector, seed: int) -> Columns:
    """Return each lane's observations when all lanes take the same actions."""
    rows = [vector.reset(seed), *_rows(vector, vector.alike(SHORT))]
    return list(zip(*rows, strict=True))


def _listed(vector: Vector, seed: int) -> tuple[bytes, ...] | Raised:
    try:
        return vector.reset([seed + lane for lane in range(vector.lanes)])
    except Raised as raised:
        return raised


def _partial(vector: Vector, seed: int) -> Partial:
    """Reset lane 0 alone, and compare with a play in which nobody did."""
    seen = Partial()
    actions = vector.actions(BEFORE_PARTIAL + AFTER_PARTIAL)
    seen.first = vector.reset(seed)
    rows = _rows(vector, actions)
    vector.reset(seed)
    begun = _rows(vector, actions[:BEFORE_PARTIAL])
    if len(rows) < BEFORE_PARTIAL or len(begun) < BEFORE_PARTIAL:
        seen.raised = "an episode ended within its first steps, before lanes could be reset apart"
        return seen
    seen.before = begun[-1]
    mask = np.zeros(vector.lanes, np.bool_)
    mask[0] = True
    try:
        seen.after = vector.reset(seed, options={"reset_mask": mask})
        seen.continued = _rows(vector, actions[BEFORE_PARTIAL:])
    except Raised as raised:
        seen.raised = str(raised)
    seen.undisturbed = rows[BEFORE_PARTIAL:]
    return seen


def _rows(vector: Vector, actions: Actions) -> list[tuple[bytes, ...]]:
    """Return the observations of these steps, up to the first end."""
    rows: list[tuple[bytes, ...]] = []
    for number, action in enumerate(actions, start=1):
        row = vector.step(action, f"step {number}")
        rows.append(row.observations)
        if any(row.ended):
            break
    return rows


def _masked(infos: Mapping[str, Any], name: str, lanes: int) -> set[int]:  # Any: as above
    """Return the lanes for which the infos have an entry."""
    if name not in infos:
        return set()
    mask = infos.get(f"_{name}")
    if mask is None:
        return {lane for lane in range(lanes) if _has_entry(infos[name], lane)}
    return {int(lane) for lane in np.flatnonzero(np.asarray(mask))}


def _has_entry(values: Any, lane: int) -> bool:  # Any: as above
    try:
        return values[lane] is not None
    except (LookupError, TypeError):
        return False


def _gymnasium_tools() -> tuple[Any, Any]:  # Any: gymnasium leaves its functions' types open
    try:
        from gymnasium.vector.utils import concatenate, create_empty_array, iterate
    except ImportError as error:
        raise MissingDependencyError(
            "checking an environment of several lanes needs gymnasium, which is not installed",
            hint="Install `rlmesh[gymnasium]`.",
        ) from error

    def batch(space: AnySpace, values: Iterable[object]) -> object:
        items = list(values)
        empty: Any = create_empty_array(space, len(items))  # Any: by space
        return concatenate(space, items, empty)

    return iterate, batch

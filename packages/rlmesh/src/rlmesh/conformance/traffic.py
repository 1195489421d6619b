"""Whether values come through the codec of a contract as they are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias, cast

from rlcore import InvalidValueError

from rlmesh.codec import NUMPY, compile_codec
from rlmesh.codec.batch import compile_batch_codec
from rlmesh.conformance.answers import judged_reset, judged_step
from rlmesh.conformance.face import Face
from rlmesh.conformance.kinds import is_array, is_mapping, is_scalar, is_tuple
from rlmesh.conformance.stage import Raised, Stage
from rlmesh.conformance.values import digest
from rlmesh.spaces import Space
from rlmesh.spaces.coerce import shown
from rlmesh.specs import EnvContract

SHORT = 20  # steps, where a few tell as much as many

Through: TypeAlias = Callable[[Any], Any]  # Any: a value of a space, and what becomes of it


def lost_values(stage: Stage, face: Face, contract: EnvContract, seed: int) -> list[str]:
    """Return which values of a few steps do not come through the codec as they are."""
    seen = _through(contract.observation_space, face.lanes)
    given = _through(contract.action_space, face.lanes)
    lost: list[str] = []

    def follow(what: str, value: object, through: Through) -> None:
        try:
            back = through(value)
        except InvalidValueError as error:
            lost.append(f"{what} cannot be sent: {error.message}")
            return
        if digest(_numbers(back)) != digest(_numbers(value)):
            lost.append(f"{what} was {shown(value)} and came back as {shown(back)}")

    with suppress(Raised):  # `plays` tells of it; what was seen before counts
        actions = face.actions(0)
        observation = judged_reset(stage.reset(seed=seed)).observation
        follow("the observation of the reset", observation, seen)
        for step in range(1, SHORT + 1):
            action = next(actions)
            follow(f"the action of step {step}", action, given)
            outcome = judged_step(stage.step(action, f"step {step}"), face.lanes)
            if outcome.malformed:
                break
            follow(f"the observation of step {step}", outcome.observation, seen)
            if face.restarts and (outcome.count("terminated") or outcome.count("truncated")):
                break
    return lost


def _through(space: Space, lanes: int | None) -> Through:
    if lanes is None:
        codec = compile_codec(space, backend=NUMPY)
        return lambda value: codec.decode(codec.encode(value))
    batch = compile_batch_codec(space, backend=NUMPY)
    return lambda value: batch.decode(batch.encode(value, lanes), lanes)


def _numbers(value: object) -> object:
    """Return a value with scalars of NumPy as Python's: the wire keeps numbers, not their types."""
    if is_scalar(value) or (is_array(value) and value.shape == ()):
        return cast("object", value.item())
    if is_mapping(value):
        return {key: _numbers(child) for key, child in value.items()}
    if is_tuple(value):
        return [_numbers(child) for child in value]
    return value

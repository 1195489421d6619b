"""What an environment's reset and step returned, checked, for a served and a local one alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from rlmesh.backends.host import host
from rlmesh.protocol.faults import text_of
from rlmesh.spaces.coerce import shown
from rlmesh.values import Array


class Given:
    """What an environment's step gave, checked."""

    __slots__ = ("info", "observation", "reward", "terminated", "truncated")

    def __init__(
        self,
        observation: object,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: Mapping[str, object],
    ) -> None:
        self.observation = observation
        self.reward = reward
        self.terminated = terminated
        self.truncated = truncated
        self.info = info


def checked_outcome(answer: Any) -> Given:  # Any: what the user's environment returned
    """Return what a step gave; the older four values, with one `done`, count as well.

    Raises:
        TypeError: it is not what a step returns.
        ValueError: the reward is not a finite number.
    """
    try:
        given = _newer(answer) if len(answer) == 5 else _older(answer)
    except Exception as error:  # what was returned may raise anything when it is looked at
        raise TypeError(
            f"step returned {shown(answer)}, "
            f"not (observation, reward, terminated, truncated, info): {text_of(error)}"
        ) from error
    if not math.isfinite(given.reward):
        raise ValueError(
            f"step returned a reward that is no finite number: reward is {given.reward}"
        )
    return given


def checked_reset(answer: object) -> tuple[object, Mapping[str, object]]:
    """Return the observation and the info that a reset gave.

    What is no pair with an info is the older form: the observation alone.
    """
    alone = answer
    parts = cast("tuple[object, ...]", answer if isinstance(answer, tuple) else ())
    if len(parts) == 2:
        observation, info = parts
        if info is None or isinstance(info, Mapping):
            return observation, _info(cast("object", info))
    return alone, {}


def _newer(answer: Any) -> Given:  # Any: what the user's environment returned
    observation, reward, terminated, truncated, info = answer
    return Given(
        observation,
        # Of each step: a call costs more than the look that spares it.
        reward if type(reward) is float else _number(reward),
        _flag(terminated, "terminated"),
        _flag(truncated, "truncated"),
        _info(info),
    )


def _older(answer: Any) -> Given:  # Any: what the user's environment returned
    observation, reward, done, info = answer
    known = _info(info)
    ended = _flag(done, "done")
    truncated = ended and bool(known.get("TimeLimit.truncated", False))
    return Given(observation, _number(reward), ended and not truncated, truncated, known)


def _number(value: Any) -> float:  # Any: whatever has a float in it, which float() finds out
    if isinstance(value, float | int):
        return float(value)
    if isinstance(value, str | bytes | bytearray):
        raise TypeError(f"the reward is the text {shown(value)}")
    found = host(value)
    if isinstance(found, np.ndarray):
        return float(cast("Array", found).item())  # refuses more than one number
    return float(value)


def _flag(value: object, name: str) -> bool:
    if value is True or value is False:
        return value
    if isinstance(value, np.bool_):
        return bool(cast("object", value))
    found = host(value)
    if isinstance(found, np.ndarray):
        array = cast("Array", found)
        if array.dtype.kind == "b" and array.size == 1:
            return bool(array.item())
    raise TypeError(f"{name} must be a bool, not {type(value).__name__}")


def _info(value: object) -> Mapping[str, object]:
    if value is None:
        return {}
    if type(value) is dict or isinstance(value, Mapping):  # asking an abstract class takes longer
        return cast("Mapping[str, object]", value)
    raise TypeError(f"info must be a dict, not {type(value).__name__}")

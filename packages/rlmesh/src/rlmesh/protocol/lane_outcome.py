"""What an environment that steps many lanes at once returned, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rlmesh.backends.host import host
from rlmesh.protocol.faults import text_of
from rlmesh.spaces.coerce import shown
from rlmesh.values import Array


class GivenLanes:
    """What a step of all lanes gave, checked: arrays with an entry for each lane."""

    __slots__ = ("info", "observation", "rewards", "terminated", "truncated")

    def __init__(
        self,
        observation: object,
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        info: Mapping[str, object],
    ) -> None:
        self.observation = observation
        self.rewards = rewards
        self.terminated = terminated
        self.truncated = truncated
        self.info = info


def checked_lanes(answer: Any, lanes: int) -> GivenLanes:  # Any: what the environment returned
    """Return what a step of so many lanes gave.

    Raises:
        TypeError: it is not what such a step returns.
        ValueError: a reward is not a finite number.
    """
    try:
        observation, rewards, terminated, truncated, info = answer
        given = GivenLanes(
            observation,
            _numbers(rewards, lanes),
            _flags(terminated, "terminated", lanes),
            _flags(truncated, "truncated", lanes),
            _info(info),
        )
    except Exception as error:  # what was returned may raise anything when it is looked at
        raise TypeError(
            f"step returned {shown(answer)}, not (observations, rewards, terminated, truncated, "
            f"infos) of {lanes} lanes: {text_of(error)}"
        ) from error
    total = sum(given.rewards.tolist())
    # Their sum is one number to look at; where it is odd, each of them is looked at.
    if total - total != 0.0 and not np.isfinite(given.rewards).all():
        lane = int(np.flatnonzero(~np.isfinite(given.rewards))[0])
        raise ValueError(
            "step returned a reward that is no finite number: "
            f"reward is {given.rewards[lane]} in lane {lane}"
        )
    return given


def _numbers(values: object, lanes: int) -> NDArray[np.float64]:
    own = type(values) is np.ndarray
    given: Array = np.asarray(values if own else host(values))
    # An array of objects may hold numbers; texts would be read as such.
    if given.dtype.kind not in "biufO":
        raise TypeError(f"rewards are {given.dtype}, not numbers")
    array: NDArray[np.float64] = given.astype(np.float64, copy=False)
    if array.shape != (lanes,):
        raise TypeError(f"rewards has the shape {array.shape}, not {(lanes,)}")
    return array


def _flags(values: object, name: str, lanes: int) -> NDArray[np.bool_]:
    array: Array = np.asarray(values if type(values) is np.ndarray else host(values))
    if array.dtype.kind != "b" or array.shape != (lanes,):
        raise TypeError(f"{name} is {array.dtype} of shape {array.shape}, not bool of {(lanes,)}")
    return array


def _info(value: object) -> Mapping[str, object]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return cast("Mapping[str, object]", value)
    raise TypeError(f"infos must be a dict, not {type(value).__name__}")

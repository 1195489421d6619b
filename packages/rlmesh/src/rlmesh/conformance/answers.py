"""What reset and step returned, taken apart and judged by the letter of the interface."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import numpy as np

from rlmesh.conformance.kinds import (
    is_array,
    is_dict,
    is_flag,
    is_number,
    is_scalar,
    is_tuple,
)
from rlmesh.spaces.coerce import shown

_FlagJudge: TypeAlias = Callable[[str, object], str | None]
STEP_FORM = "(observation, reward, terminated, truncated, info)"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One answer of an environment, and what is wrong with it, by the name of the check.

    Attributes:
        malformed: whether it could not be taken apart at all.
    """

    observation: object
    info: object
    reward: object = None
    terminated: object = False
    truncated: object = False
    faults: Mapping[str, str] = field(default_factory=dict[str, str])
    malformed: bool = False

    @property
    def scored(self) -> tuple[object, object, object]:
        """Reward and flags, whose types do not count: the same number is the same reward."""
        return _plain(self.reward), _plain(self.terminated), _plain(self.truncated)

    @property
    def shown(self) -> str:
        """Reward and flags as a message has them."""
        return shown(self.scored)

    def count(self, flag: str) -> int:
        """Return how many lanes have raised a flag."""
        return int(np.count_nonzero(np.asarray(getattr(self, flag))))


def judged_reset(answer: object) -> Outcome:
    """Return what a reset gave; the observation alone is wrong, and counts as one."""
    if not is_tuple(answer) or len(answer) != 2:
        wrong = {"answers": f"reset returned {shown(answer)}, not (observation, info)"}
        return Outcome(answer, {}, faults=wrong)
    observation, info = answer
    return Outcome(observation, info, faults=_found(info=_info_fault("reset", info)))


def judged_step(answer: object, lanes: int | None) -> Outcome:
    """Return what a step gave."""
    parts = answer if is_tuple(answer) else ()
    if len(parts) != 5:
        what = f"step returned {shown(answer)}, not {STEP_FORM}"
        return Outcome(None, {}, faults={"answers": what}, malformed=True)
    observation, reward, terminated, truncated, info = parts
    judge: _FlagJudge = _flag_fault if lanes is None else _flags_fault_of(lanes)
    wrong = _found(
        reward=_reward_fault(reward) if lanes is None else _rewards_fault(reward, lanes),
        flags=judge("terminated", terminated) or judge("truncated", truncated),
        info=_info_fault("step", info),
    )
    return Outcome(observation, info, reward, terminated, truncated, wrong)


def _found(**faults: str | None) -> dict[str, str]:
    return {check: text for check, text in faults.items() if text is not None}


def _plain(value: object) -> object:
    if is_array(value) or is_scalar(value):
        plain: object = value.tolist()
        return plain
    return value


def _reward_fault(reward: object) -> str | None:
    if not is_number(reward):
        return f"the reward is the {type(reward).__name__} {shown(reward)}, not a number"
    if not math.isfinite(reward):
        return f"the reward is {reward}, which is not finite"
    return None


def _rewards_fault(rewards: object, lanes: int) -> str | None:
    if not is_array(rewards):
        return f"the rewards are {shown(rewards)}, not an array"
    if rewards.shape != (lanes,) or rewards.dtype.kind not in "fiu":
        return f"the rewards are {rewards.dtype} of shape {rewards.shape}, not {lanes} numbers"
    if not np.isfinite(rewards).all():
        return f"the rewards are {shown(rewards.tolist())}, which are not all finite"
    return None


def _flag_fault(name: str, flag: object) -> str | None:
    if is_flag(flag):
        return None
    return f"{name} is the {type(flag).__name__} {shown(flag)}, not a bool"


def _flags_fault_of(lanes: int) -> _FlagJudge:
    def fault(name: str, flags: object) -> str | None:
        if not is_array(flags):
            return f"{name} is {shown(flags)}, not an array"
        if flags.shape == (lanes,) and flags.dtype.kind == "b":
            return None
        return f"{name} is {flags.dtype} of shape {flags.shape}, not {lanes} bools"

    return fault


def _info_fault(operation: str, info: object) -> str | None:
    if not is_dict(info):
        return f"the info of {operation} is the {type(info).__name__} {shown(info)}, not a dict"
    odd = [key for key in cast("dict[object, object]", info) if not isinstance(key, str)]
    return f"the info of {operation} has the key {shown(odd[0])}, which is no str" if odd else None

"""What a request says about lanes: which of them, with which seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from rlmesh.protocol.faults import FaultCode, refusal
from rlmesh.protocol.messages import Request
from rlmesh.server.stage import Failed, misused
from rlmesh.values import Array

INT64: Final = range(-(2**63), 2**63)
RESET_MASK: Final = "reset_mask"
"""gymnasium's reset option: a flag for each lane, whether it is to be reset."""

Options = Mapping[str, Any]  # Any: whatever the caller says


def chosen_lanes(request: Request, count: int) -> Sequence[int]:
    """Return the lanes that a reset or a step is about, in the order in which it names them.

    Raises:
        Failed: it names a lane twice, or one that there is not; or ids that are not one for each.
    """
    lanes = list(request.lanes)
    if not lanes:
        return range(count)
    if len(set(lanes)) != len(lanes):
        raise misused(f"lanes {lanes} were asked for: one of them twice")
    if not all(0 <= lane < count for lane in lanes):
        raise misused(f"lanes {lanes} were asked for; this server has lanes 0 to {count - 1}")
    ids = len(request.episode_ids)
    if ids not in (0, len(lanes)):
        raise misused(f"the request has {ids} episode ids for {len(lanes)} lanes")
    return lanes


def masked_lanes(request: Request, count: int) -> tuple[Options | None, list[int] | None]:
    """Return a reset's options without a mask in them, and the lanes of the mask.

    Raises:
        Failed: the mask is no flag for each lane, has no lane, or stands beside named lanes.
    """
    options = request.options
    if options is None or RESET_MASK not in options:
        return options, None
    mask: Array = np.asarray(options[RESET_MASK])
    if request.lanes:
        raise misused(f"the reset names lanes and has the option {RESET_MASK!r}: use one of them")
    if mask.dtype.kind != "b" or mask.shape != (count,):
        raise misused(f"the option {RESET_MASK!r} must be {count} booleans, one for each lane")
    if not mask.any():
        raise misused(f"the option {RESET_MASK!r} has no lane in it")
    rest = {key: value for key, value in options.items() if key != RESET_MASK}
    return rest, np.flatnonzero(mask).tolist()


def seeds_of(request: Request, lanes: Sequence[int], count: int) -> list[int | None]:
    """Return a seed or None for each lane that there is.

    A single seed `s` is `s + i` for lane `i`, as in gymnasium.

    Raises:
        Failed: there are neither so many seeds as lanes, nor one.
    """
    seeds: list[int | None] = [None] * count
    given = request.seeds
    if not given:
        return seeds
    if request.lanes:
        if len(given) != len(lanes):
            raise misused(f"the reset has {len(given)} seeds for {len(lanes)} lanes")
        for lane, seed in zip(lanes, given, strict=True):
            seeds[lane] = seed
        return seeds
    if len(given) not in (1, count):
        raise misused(
            f"the reset has {len(given)} seeds for {count} lanes; give one for each, or one for all"
        )
    each = given if len(given) == count else _counted_up(given[0], count)
    for lane in lanes:
        seeds[lane] = each[lane]
    return seeds


def _counted_up(first: int | None, count: int) -> Sequence[int | None]:
    if first is None:
        return [None] * count
    if first + count - 1 not in INT64:
        raise misused(f"the seed {first}, counted up over {count} lanes, exceeds 64 bits")
    return range(first, first + count)


def one_lane(request: Request, count: int) -> int:
    """Return the lane that a render is about; lane 0 where none is named.

    Raises:
        Failed: it names several, or one that there is not.
    """
    lanes = list(request.lanes)
    if len(lanes) > 1:
        raise Failed(refusal(FaultCode.UNSUPPORTED, "one lane can be rendered at a time"))
    lane = lanes[0] if lanes else 0
    if not 0 <= lane < count:
        raise misused(f"lane {lane} was asked for; this server has lanes 0 to {count - 1}")
    return lane

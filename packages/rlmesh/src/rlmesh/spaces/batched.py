"""The space of many lanes' values together, as gymnasium's `batch_space` makes it of its own."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from rlmesh.spaces.box import Box
from rlmesh.spaces.containers import Dict, Tuple
from rlmesh.spaces.discrete import Discrete
from rlmesh.spaces.multi import MultiBinary, MultiDiscrete
from rlmesh.spaces.space import Space


@singledispatch
def batched(space: Space, lanes: int) -> Space:
    """Return the space of the batched values of so many lanes.

    Boxes and Multi* spaces get a dimension in front, Discrete spaces become MultiDiscrete ones,
    dictionaries and tuples hold batches; values without a fixed size become a tuple of one each.
    """
    return Tuple([space] * lanes)


@batched.register
def _(space: Box, lanes: int) -> Space:
    low, high = (np.repeat(bound[np.newaxis], lanes, axis=0) for bound in (space.low, space.high))
    return Box(low, high, (lanes, *space.shape), space.dtype)


@batched.register
def _(space: Discrete, lanes: int) -> Space:
    return MultiDiscrete([space.n] * lanes, space.dtype, start=[space.start] * lanes)


@batched.register
def _(space: MultiBinary, lanes: int) -> Space:
    return MultiBinary((lanes, *space.shape))


@batched.register
def _(space: MultiDiscrete, lanes: int) -> Space:
    nvec, start = (np.repeat(part[np.newaxis], lanes, axis=0) for part in (space.nvec, space.start))
    return MultiDiscrete(nvec, space.dtype, start=start)


@batched.register
def _(space: Dict, lanes: int) -> Space:
    return Dict([(key, batched(child, lanes)) for key, child in space.items()], keep_order=True)


@batched.register
def _(space: Tuple, lanes: int) -> Space:
    return Tuple([batched(child, lanes) for child in space])

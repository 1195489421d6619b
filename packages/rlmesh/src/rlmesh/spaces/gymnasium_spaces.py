"""Gymnasium's spaces to ours and back. Gymnasium is imported when somebody converts, not before."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from rlcore import MissingDependencyError

from rlmesh.spaces.box import Box
from rlmesh.spaces.coerce import shown
from rlmesh.spaces.containers import Dict, Tuple
from rlmesh.spaces.discrete import Discrete
from rlmesh.spaces.graph import Graph
from rlmesh.spaces.multi import MultiBinary, MultiDiscrete
from rlmesh.spaces.one_of import OneOf
from rlmesh.spaces.sequence import Sequence
from rlmesh.spaces.space import Space, UnsupportedSpaceError
from rlmesh.spaces.text import Text

if TYPE_CHECKING:
    from gymnasium.spaces import Space as GymnasiumSpace

LONGEST_TEXT: Final = 1024
"""How long texts of a space may be that does not say it."""


def from_gymnasium_space(space: object) -> Space:
    """Return what a gymnasium space describes as a space of ours; one of ours is returned as it is.

    Dictionaries keep gymnasium's order of keys. A space that somebody else defined counts as the
    gymnasium one that it derives from; one of texts (its `dtype` is `str`, as of minigrid's
    missions) as a Text space of any 1 to `LONGEST_TEXT` characters.

    Raises:
        UnsupportedSpaceError: it is no space, or of a kind that the protocol has no words for.
    """
    if isinstance(space, Space):
        return space
    try:
        from gymnasium import spaces as gym
    except ImportError as error:
        raise _missing() from error
    children: Any = getattr(space, "spaces", None)  # Any: gymnasium leaves the children's type open
    match space:
        case gym.Box():
            return Box(space.low, space.high, space.shape, space.dtype)
        case gym.Discrete():
            return Discrete(int(space.n), int(space.start), space.dtype)
        case gym.MultiBinary():
            return MultiBinary(space.shape, "int8")
        case gym.MultiDiscrete():
            return MultiDiscrete(space.nvec, space.dtype, space.start)
        case gym.Text():
            return Text(space.max_length, space.min_length, "".join(space.character_set))
        case gym.Dict():
            ours = [(key, from_gymnasium_space(child)) for key, child in children.items()]
            return Dict(ours, keep_order=True)
        case gym.Tuple():
            return Tuple([from_gymnasium_space(child) for child in children])
        case _:
            return _from_nested(space)


def _from_nested(space: object) -> Space:
    from gymnasium import spaces as gym

    children: Any = getattr(space, "spaces", None)  # Any: gymnasium leaves the children's type open
    match space:
        case gym.Sequence():
            return Sequence(from_gymnasium_space(space.feature_space), space.stack)
        case gym.Graph():
            edges: Any = space.edge_space  # Any: as above
            return Graph(
                from_gymnasium_space(space.node_space),
                None if edges is None else from_gymnasium_space(edges),
            )
        case gym.OneOf():
            return OneOf([from_gymnasium_space(child) for child in children])
        case gym.Space() if space.dtype == np.dtype(str):
            return Text(LONGEST_TEXT)
        case _:
            raise UnsupportedSpaceError(
                f"{type(space).__name__} is not a space that can be served: {shown(space)}",
                hint="Describe it with gymnasium's own kinds of spaces.",
            )


def to_gymnasium_space(space: Space) -> GymnasiumSpace[Any]:  # Any: gymnasium's own element type
    """Return the gymnasium space of the same values.

    A Text space of any character becomes one of Python's printable characters, since gymnasium
    has no word for any.

    Raises:
        MissingDependencyError: gymnasium is not installed.
        UnsupportedSpaceError: gymnasium cannot describe it.
    """
    try:
        from gymnasium import spaces as gym
    except ImportError as error:
        raise _missing() from error
    match space:
        case Box():
            dtype: Any = np.dtype(space.dtype).type  # Any: gymnasium's signature names fewer types
            return gym.Box(space.low.copy(), space.high.copy(), tuple(space.shape), dtype)
        case Discrete():
            dtype = np.dtype(space.dtype).type
            return gym.Discrete(space.n, start=space.start, dtype=dtype)
        case MultiBinary():
            return gym.MultiBinary(space.shape if len(space.shape) != 1 else space.shape[0])
        case MultiDiscrete():
            dtype = np.dtype(space.dtype).type
            return gym.MultiDiscrete(space.nvec.copy(), dtype, start=space.start.copy())
        case Text():
            return gym.Text(
                max_length=space.max_length,
                min_length=space.min_length,
                charset=space.charset or string.printable,
            )
        case Dict():
            # Of a list, gymnasium keeps the order.
            return gym.Dict([(key, to_gymnasium_space(child)) for key, child in space.items()])
        case Tuple():
            return gym.Tuple([to_gymnasium_space(child) for child in space])
        case _:
            return _to_nested(space)


def _to_nested(space: Space) -> GymnasiumSpace[Any]:  # Any: as above
    from gymnasium import spaces as gym

    match space:
        case Sequence():
            return gym.Sequence(to_gymnasium_space(space.feature_space), stack=space.stack)
        case Graph():
            edge_space = space.edge_space
            edges = None if edge_space is None else to_gymnasium_space(edge_space)
            return gym.Graph(to_gymnasium_space(space.node_space), edges)
        case OneOf():
            return gym.OneOf([to_gymnasium_space(child) for child in space])
        case _:
            raise UnsupportedSpaceError(f"gymnasium has no words for {space!r}")


def _missing() -> MissingDependencyError:
    return MissingDependencyError(
        "converting a gymnasium space needs gymnasium, which is not installed",
        hint="Install `rlmesh[gymnasium]`.",
    )

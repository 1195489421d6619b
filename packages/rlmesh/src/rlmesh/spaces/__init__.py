"""Spaces: what observations and actions can be."""

from rlmesh.spaces.box import Box
from rlmesh.spaces.containers import Dict, Tuple
from rlmesh.spaces.discrete import Discrete
from rlmesh.spaces.gymnasium_spaces import from_gymnasium_space, to_gymnasium_space
from rlmesh.spaces.multi import MultiBinary, MultiDiscrete
from rlmesh.spaces.space import Space, SpaceSpec, UnsupportedSpaceError, space_from_spec
from rlmesh.spaces.text import Text

__all__ = [
    "Box",
    "Dict",
    "Discrete",
    "MultiBinary",
    "MultiDiscrete",
    "Space",
    "SpaceSpec",
    "Text",
    "Tuple",
    "UnsupportedSpaceError",
    "from_gymnasium_space",
    "space_from_spec",
    "to_gymnasium_space",
]

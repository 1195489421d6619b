"""Spaces: what observations and actions can be."""

from rlmesh.spaces.box import Box
from rlmesh.spaces.containers import Dict, Tuple
from rlmesh.spaces.discrete import Discrete
from rlmesh.spaces.graph import Graph, GraphInstance
from rlmesh.spaces.gymnasium_spaces import from_gymnasium_space, to_gymnasium_space
from rlmesh.spaces.more import needs_more_spaces
from rlmesh.spaces.multi import MultiBinary, MultiDiscrete
from rlmesh.spaces.one_of import OneOf
from rlmesh.spaces.sequence import Sequence
from rlmesh.spaces.space import Space, SpaceSpec, UnsupportedSpaceError, space_from_spec
from rlmesh.spaces.text import Text

__all__ = [
    "Box",
    "Dict",
    "Discrete",
    "Graph",
    "GraphInstance",
    "MultiBinary",
    "MultiDiscrete",
    "OneOf",
    "Sequence",
    "Space",
    "SpaceSpec",
    "Text",
    "Tuple",
    "UnsupportedSpaceError",
    "from_gymnasium_space",
    "needs_more_spaces",
    "space_from_spec",
    "to_gymnasium_space",
]

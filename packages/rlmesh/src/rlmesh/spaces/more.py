"""The spaces beyond the protocol's core: which they are, and who needs them."""

from __future__ import annotations

from rlmesh.spaces.containers import Dict, Tuple
from rlmesh.spaces.graph import Graph
from rlmesh.spaces.one_of import OneOf
from rlmesh.spaces.sequence import Sequence
from rlmesh.spaces.space import Space


def needs_more_spaces(space: Space) -> bool:
    """Tell whether a space is, or holds, a Sequence, Graph or OneOf space."""
    match space:
        case Sequence() | Graph() | OneOf():
            return True
        case Dict():
            return any(map(needs_more_spaces, space.values()))
        case Tuple():
            return any(map(needs_more_spaces, space))
        case _:
            return False

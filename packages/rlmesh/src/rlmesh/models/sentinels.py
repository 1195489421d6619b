"""Two marks that stand where a model, or the spec of one, is expected."""

from enum import Enum
from typing import Final, Literal


class Sentinel(Enum):
    """A mark with an identity and a readable name; pickles to itself."""

    RANDOM_SAMPLE = "RANDOM_SAMPLE"
    NO_ADAPTER = "NO_ADAPTER"

    def __repr__(self) -> str:
        return f"rlmesh.{self.name}"


RandomSample = Literal[Sentinel.RANDOM_SAMPLE]
NoAdapter = Literal[Sentinel.NO_ADAPTER]

RANDOM_SAMPLE: Final = Sentinel.RANDOM_SAMPLE
"""As a model: sample the action space, from a seed derived from the episode's."""

NO_ADAPTER: Final = Sentinel.NO_ADAPTER
"""As a model's spec: it takes the environment's observations and actions as they are."""

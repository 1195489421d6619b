"""What clients ask of a served model, and what they are answered, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from rlmesh.protocol.model_faults import ModelFault
from rlmesh.values import Buffer

Leaves: TypeAlias = Sequence[Buffer]

# What published servers say that they can do.
CONCURRENT_PREDICT: Final = "rlmesh.model.concurrent_predict.v1"
# Ours: several rows are several episodes, whatever the model can do at once.
ROWS: Final = "rlmesh.model.rows.v1"
# Ours: a route may be told what to do, instead of what the environment says.
INSTRUCTION: Final = "rlmesh.model.instruction.v1"
# Ours, in what a server says about itself.
MODEL_NAME: Final = "rlmesh.model.name"
MODEL_DIGEST: Final = "rlmesh.model.digest"
# What the model is made of: a digest, and after a space what cannot be compared.
MODEL_CONTENT: Final = "rlmesh.model.content"
MODEL_FRAMEWORK: Final = "rlmesh.model.framework"
MODEL_CORNERS: Final = "rlmesh.model.corners"
MODEL_CHUNK: Final = "rlmesh.model.native_chunk"

MODEL_COMPONENT: Final = "rlmesh-model"
LONGEST_HORIZON: Final = 1024


@dataclass(frozen=True, slots=True)
class Name:
    """Whose route a request is about, and the client's own name of the request."""

    session_id: str
    env_id: str
    request_id: str


@dataclass(frozen=True, slots=True)
class Row:
    """Whose observation one row is: the episode, and the seed it was reset with."""

    episode_id: str
    seed: int | None


@dataclass(frozen=True, slots=True)
class Ask:
    """One observation of some rows that wants actions."""

    name: Name | None
    leaves: Leaves | None
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Timing:
    """Nanoseconds: of the whole, and of its parts where they were measured."""

    total: int
    decode: int | None = None
    user: int | None = None
    encode: int | None = None
    queue: int | None = None
    in_flight: int | None = None
    held_episodes: int | None = None


@dataclass(frozen=True, slots=True)
class Actions:
    """The answer to an `Ask`: actions over time, the lanes inside each."""

    name: Name
    frames: Sequence[Leaves]


@dataclass(frozen=True, slots=True)
class Resolved:
    """The answer to a resolve: how many actions the model makes at a time, if it says so."""

    native_chunk: int | None
    history_keys: tuple[str, ...] = field(default=())


Result: TypeAlias = Actions | ModelFault

"""What the two sides of a session say to each other, whatever carries it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from rlmesh.protocol.episodes import Episode
from rlmesh.protocol.faults import Fault

Buffer: TypeAlias = bytes | memoryview
Leaves: TypeAlias = Sequence[Buffer]
Rendering: TypeAlias = bytes | str | list[bytes] | list[str] | None
"""A frame as a PNG file, a text, or several of either."""
Kind = Literal["reset", "step", "render", "close", "configure", ""]


@dataclass(slots=True)
class Request:
    """What a client asks; the fields that its kind does not have are empty.

    Attributes:
        kind: which operation, empty when it is none that is known.
        request_id: what the answer has to repeat.
        lanes: the lanes that are meant; empty: all.
        timeout_ms: how long it may take in milliseconds; 0: no limit.
        action: a step's action, None when there is none.
        episode_ids: the callers' names for the episodes, one for each lane.
        seeds: a reset's seeds; None stands for a lane without one.
        options: a reset's options, None when there are none.
        edition: a configure's workflow edition.
    """

    kind: Kind
    request_id: str
    lanes: Sequence[int] = ()
    timeout_ms: int = 0
    action: Leaves | None = None
    episode_ids: Sequence[str] = ()
    seeds: Sequence[int | None] = ()
    options: dict[str, object] | None = None
    edition: str = ""


@dataclass(slots=True)
class Timing:
    """How long the parts of a request took, in nanoseconds."""

    total: int = 0
    user: int | None = None


@dataclass(slots=True)
class CompletedEpisode:
    """An episode that ended, and the info it ended with; None when a reset cut it off."""

    episode: Episode
    final_info: Mapping[str, object] | None = None


@dataclass(slots=True)
class StepAnswer:
    """What the environments gave for a step.

    Attributes:
        leaves: the observation, lanes side by side.
        rewards: one for each lane that was stepped.
        terminated: one byte for each lane, 0 or 1.
        truncated: one byte for each lane, 0 or 1.
        info: the info, None when the environment gave None.
        lanes: the lanes as they were asked for.
        completed: episodes that have not been reported before.
        timing: what it took.
        tensors: whether the client reads arrays in infos as they are.
    """

    leaves: Leaves
    rewards: Sequence[float]
    terminated: bytes
    truncated: bytes
    info: Mapping[str, object] | None
    timing: Timing
    lanes: Sequence[int] = ()
    completed: Sequence[CompletedEpisode] = ()
    tensors: bool = False


@dataclass(slots=True)
class ResetAnswer:
    """What the environments gave for a reset; `tensors` as in `StepAnswer`."""

    leaves: Leaves
    info: Mapping[str, object] | None
    timing: Timing
    tensors: bool = False


@dataclass(slots=True)
class RenderAnswer:
    """What the environment drew.

    Attributes:
        drawn: None when there is nothing, or nothing that can travel.
        timing: what it took.
        odd: what it was that cannot travel, for people.
    """

    drawn: Rendering
    timing: Timing
    odd: str = ""


@dataclass(slots=True)
class Configured:
    """The workflow edition is agreed."""

    timing: Timing


@dataclass(slots=True)
class Closed:
    """The session is over; with the episodes that nothing reported before."""

    episodes: Sequence[Episode]
    timing: Timing


@dataclass(slots=True)
class Refused:
    """The request failed; with the episodes that ended by it."""

    fault: Fault
    timing: Timing
    interrupted: Sequence[Episode] = ()


Answer: TypeAlias = StepAnswer | ResetAnswer | RenderAnswer | Configured | Closed | Refused


@dataclass(slots=True)
class ResetReply:
    """What a client reads of a reset."""

    leaves: Leaves
    info: dict[str, object]


@dataclass(slots=True)
class StepReply:
    """What a client reads of a step.

    Attributes:
        leaves: the observation, lanes side by side.
        rewards: one for each lane that was stepped.
        terminated: one byte for each lane; any but 0 means true.
        truncated: one byte for each lane; any but 0 means true.
        info: the info.
        completed: the ids of the episodes that ended since the last answer.
        served_ns: how long the server had the step, in nanoseconds; 0 where it does not tell.
        user_ns: how much of that was spent in the environment, likewise.
    """

    leaves: Leaves
    rewards: Sequence[float]
    terminated: bytes
    truncated: bytes
    info: dict[str, object]
    completed: Sequence[str] = field(default=())
    served_ns: int = 0
    user_ns: int = 0


class FaultReceived(Exception):
    """The reply is a fault; the caller turns it into its own error."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault

"""What an actor tells the process that started it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlcore import Error


@dataclass(frozen=True, slots=True)
class Opened:
    """The actor has so many sessions, fewer than asked for where the environment has no room.

    One that got none leaves.
    """

    sessions: int


@dataclass(frozen=True, slots=True)
class EpisodeOver:
    """An episode ended.

    Attributes:
        reward: its return.
        length: its steps.
        info: that of its last step, as far as it is counted.
        steps: all that the actor has taken by then.
    """

    reward: float
    length: int
    info: Mapping[str, object]
    steps: int


@dataclass(frozen=True, slots=True)
class Learned:
    """Means over the updates since the last such message."""

    updates: int
    numbers: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Failed:
    """The actor cannot go on.

    Attributes:
        error: what was raised, where it is an error of ours: of its own class, with its facts.
        text: the class and the message of what was raised.
        traceback: where it was raised, in the actor.
    """

    error: Error | None
    text: str
    traceback: str


@dataclass(frozen=True, slots=True)
class Diverged:
    """The loss or the weights that the actor saw are no numbers."""


Message = Opened | EpisodeOver | Learned | Failed | Diverged

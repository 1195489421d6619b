"""What a session was doing, so that a restarted job can do it again from its seed."""

# gymnasium leaves its type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium import spaces


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """An unfinished episode.

    Attributes:
        episode: how many episodes the session has begun.
        seed: that of the last one.
        actions: those taken since its reset, as JSON.
        observation: a digest of the last observation.
        wrapped: what the environment's own wrappers keep: the tier, the curriculum.
    """

    episode: int
    seed: int
    actions: tuple[object, ...]
    observation: str
    wrapped: Mapping[str, object] | None = None

    def to_json(self) -> dict[str, object]:
        """The state as an object of JSON."""
        return {**asdict(self), "actions": list(self.actions)}

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> SessionState:
        """Read it back; anything malformed raises KeyError, TypeError or ValueError."""
        return cls(
            episode=int(cast("int", data["episode"])),
            seed=int(cast("int", data["seed"])),
            actions=tuple(cast("Sequence[object]", data["actions"])),
            observation=str(data["observation"]),
            wrapped=cast("Mapping[str, object] | None", data.get("wrapped")),
        )


@dataclass(frozen=True, slots=True)
class SessionMark:
    """A place in an episode, taken before every rollout and seldom written down.

    It shares the session's growing list of actions, of which the first `count` were taken.
    """

    episode: int
    seed: int
    actions: Sequence[Any]  # Any: of whatever space
    count: int
    observation: Any  # of whatever space
    wrapped: Mapping[str, object] | None = None

    def state(self) -> SessionState:
        """The unfinished episode, in a form that can be written down."""
        return SessionState(
            episode=self.episode,
            seed=self.seed,
            actions=tuple([action_to_json(one) for one in self.actions[: self.count]]),
            observation=digest(self.observation),
            wrapped=self.wrapped,
        )


def action_to_json(action: Any) -> object:  # of whatever space
    """An environment's action in JSON; 32-bit numbers survive it exactly."""
    if isinstance(action, Mapping):
        parts = cast("Mapping[str, Any]", action)
        return {key: action_to_json(part) for key, part in parts.items()}
    if isinstance(action, str):
        return action
    return np.asarray(action).tolist()


def action_from_json(space: gymnasium.Space[Any], action: object) -> Any:  # of that space
    """The action again, as the space writes it."""
    if isinstance(space, spaces.Dict):
        parts = cast("Mapping[str, object]", action)
        return {key: action_from_json(part, parts[key]) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Text):
        return str(action)
    if isinstance(space, spaces.Discrete):
        return space.dtype.type(action)
    return np.asarray(action, dtype=space.dtype).reshape(space.shape or ())


def digest(observation: Any) -> str:  # of whatever space
    """A digest that tells two observations apart."""
    seen = hashlib.sha256()
    _feed(seen, observation)
    return seen.hexdigest()


def _feed(seen: Any, value: Any) -> None:  # hashlib's type has no public name
    if isinstance(value, Mapping):
        for key, part in sorted(cast("Mapping[str, Any]", value).items()):
            seen.update(repr(key).encode())
            _feed(seen, part)
    elif isinstance(value, tuple | list):
        for part in cast("Sequence[Any]", value):
            _feed(seen, part)
    elif isinstance(value, str):
        seen.update(repr(value).encode())
    else:
        array = np.asarray(value)
        seen.update(f"{array.dtype.str}{array.shape}".encode())
        seen.update(np.ascontiguousarray(array).tobytes())

"""What an environment promises to whoever drives it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, cast

from rlcore import ConfigurationError, contract_digest

from rlmesh.codec.metadata import decode_meta, encode_meta, encode_meta_lenient
from rlmesh.spaces import Space, SpaceSpec, from_gymnasium_space

__all__ = ["AutoresetMode", "EnvContract", "SpaceSpec", "contract_of"]

UNKNOWN_ID: Final = "UnknownEnv-v1"


class AutoresetMode(StrEnum):
    """What an environment does at the end of an episode."""

    DISABLED = "disabled"
    NEXT_STEP = "next_step"
    SAME_STEP = "same_step"

    @property
    def gymnasium_name(self) -> str:
        """The value of gymnasium's own enum, such as `NextStep`."""
        return self.value.title().replace("_", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvContract:
    """An environment's id, spaces and habits: what its digest is about.

    A contract is the same on both sides of the wire: metadata is kept in the form in which it
    travels, so tuples are lists.

    Attributes:
        id: the environment's own id, such as `CartPole-v1`.
        observation_space: of one lane.
        action_space: of one lane.
        metadata: the author's, or None.
        num_envs: how many lanes there are.
        render_mode: what `render` gives, or None.
        autoreset_mode: what happens at the end of an episode.

    Raises:
        InvalidMetadataError: the metadata holds what cannot travel.
    """

    id: str
    observation_space: Space
    action_space: Space
    metadata: Mapping[str, Any] | None = field(default=None, hash=False)  # Any: the author's own
    num_envs: int = 1
    render_mode: str | None = None
    autoreset_mode: AutoresetMode = AutoresetMode.DISABLED

    def __post_init__(self) -> None:
        if self.metadata is not None:
            object.__setattr__(self, "metadata", decode_meta(encode_meta(self.metadata)))
        object.__setattr__(self, "num_envs", self.num_envs or 1)
        object.__setattr__(self, "render_mode", self.render_mode or None)

    @property
    def env(self) -> EnvContract:
        """The contract itself."""
        return self

    @property
    def spec(self) -> EnvContract:
        """The contract itself."""
        return self

    @property
    def digest(self) -> str:
        """`sha256:` and the hexadecimal digest of everything the contract says."""
        return contract_digest(self.to_dict())

    def to_dict(self) -> dict[str, Any]:  # Any: JSON
        """Return the contract as JSON holds it.

        Numbers that JSON has no form for are the texts `inf`, `-inf` and `nan`; bytes are
        `{"__bytes__": hex}`.
        """
        content = {
            "id": self.id,
            "observation_space": self.observation_space.to_dict(),
            "action_space": self.action_space.to_dict(),
            "metadata": self.metadata,
            "num_envs": self.num_envs,
            "render_mode": self.render_mode,
            "autoreset_mode": self.autoreset_mode.value,
        }
        return cast("dict[str, Any]", _json(content))

    def __repr__(self) -> str:
        return f"EnvContract(id={self.id!r}, num_envs={self.num_envs})"


def contract_of(env: object) -> EnvContract:
    """Return the contract of a Gymnasium-style environment, or of a handle to a remote one.

    Metadata that cannot travel as it is travels as text, with a warning that names it.

    Raises:
        ConfigurationError: it has no spaces, or is a single environment that resets itself within a
            step, so that nobody could see how its episodes end.
        UnsupportedSpaceError: a space is of a kind that cannot be served.
    """
    known = getattr(env, "env_contract", None)
    if isinstance(known, EnvContract):
        return known
    metadata = _metadata_of(env)
    return EnvContract(
        id=str(getattr(getattr(env, "spec", None), "id", None) or UNKNOWN_ID),
        observation_space=_space_of(env, "observation_space"),
        action_space=_space_of(env, "action_space"),
        metadata=metadata,
        num_envs=int(getattr(env, "num_envs", 1)),
        render_mode=getattr(env, "render_mode", None),
        autoreset_mode=_autoreset_mode(
            metadata or {}, many=hasattr(env, "single_observation_space")
        ),
    )


def _space_of(env: object, name: str) -> Space:
    space = getattr(env, f"single_{name}", None)
    if space is None:  # an empty space counts as false
        space = getattr(env, name, None)
    if space is None:
        raise ConfigurationError(
            f"{type(env).__name__} has no `{name}`, so it is no environment that can be served",
            hint="Give a Gymnasium-style environment: reset, step, and both spaces.",
        )
    return from_gymnasium_space(space)


def _metadata_of(env: object) -> dict[str, Any] | None:  # Any: the author's own
    metadata = getattr(env, "metadata", None)
    if metadata is None:
        return None
    message, changed = encode_meta_lenient(metadata)
    if changed:
        warnings.warn(
            f"the metadata of {type(env).__name__} cannot travel as it is and is sent as text: "
            f"{', '.join(changed)}",
            stacklevel=3,
        )
    return decode_meta(message)


def _autoreset_mode(metadata: Mapping[str, object], *, many: bool) -> AutoresetMode:
    if "autoreset_mode" not in metadata:
        return AutoresetMode.DISABLED
    mode = metadata["autoreset_mode"]
    match str(mode).replace("_", "").lower():
        case "disabled":
            return AutoresetMode.DISABLED
        case "nextstep":
            return AutoresetMode.NEXT_STEP
        case "samestep" if many:
            return AutoresetMode.SAME_STEP
        case _:
            raise ConfigurationError(
                f"the metadata names the autoreset mode {mode!r}, which cannot be served",
                hint=f"Declare next-step{' or same-step' if many else ''} autoreset, or none.",
            )


def _json(value: object) -> object:
    match value:
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            return {"__bytes__": value.hex()}
        case Mapping():
            entries = cast("Mapping[str, object]", value)
            return {key: _json(child) for key, child in entries.items()}
        case list():
            return [_json(child) for child in cast("list[object]", value)]
        case _:
            return value

"""What an environment says of itself: lanes, spaces, autoreset mode."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from rlmesh.conformance.containment import AnySpace, Judge, compile_judge
from rlmesh.conformance.kinds import is_mapping
from rlmesh.conformance.subject import Env
from rlmesh.specs import AutoresetMode

_MODES = {mode.value.replace("_", ""): mode for mode in AutoresetMode}


@dataclass(frozen=True, slots=True)
class Face:
    """How an environment is played and judged.

    Attributes:
        lanes: how many environments it steps at once; None for a single one.
        observation_space: what observations are; batched where there are lanes.
        action_space: what actions are, likewise.
        mode: the declared autoreset mode; None where nothing legible is declared.
        declared: the declaration as it is in the metadata; None where there is none.
        metadata: the environment's own.
        render_mode: how it renders.
        judge: what is wrong with an observation.
        unsteady: two readings of the action space, where they are not one object.
    """

    lanes: int | None
    observation_space: AnySpace
    action_space: AnySpace
    mode: AutoresetMode | None
    declared: object
    metadata: object
    render_mode: object
    judge: Judge
    unsteady: tuple[AnySpace, AnySpace] | None

    @property
    def restarts(self) -> bool:
        """Whether the caller resets at an end, because the environment does not itself."""
        return self.mode in (None, AutoresetMode.DISABLED)

    @property
    def said(self) -> Mapping[str, object]:
        """The metadata, where it is a dict."""
        return self.metadata if is_mapping(self.metadata) else {}

    def actions(self, action_seed: int) -> Iterator[Any]:  # Any: of the action space
        """Yield samples of the action space, seeded; the environment's own space is not touched."""
        space = copy.deepcopy(self.action_space)
        space.seed(action_seed)
        while True:
            yield space.sample()


def face_of(env: Env) -> Face:
    """Return how an environment is played.

    Raises:
        Exception: whatever its attributes raise.
    """
    lanes = getattr(env, "num_envs", None)
    several = hasattr(env, "single_observation_space") or (isinstance(lanes, int) and lanes > 1)
    contract = getattr(env, "env_contract", None)
    # A client shows what can be had from it; what the server says is in the contract.
    metadata: object = getattr(contract, "metadata", None)
    if contract is None:
        metadata = getattr(env, "metadata", None)
    declared = metadata.get("autoreset_mode") if is_mapping(metadata) else None
    mode = mode_of(declared)
    if contract is not None and mode is None and several:
        mode = AutoresetMode(contract.autoreset_mode)
        declared = mode.value
    action_space, again = env.action_space, env.action_space
    return Face(
        lanes=int(cast("int", lanes)) if several else None,
        observation_space=env.observation_space,
        action_space=action_space,
        mode=mode if several or declared is not None else AutoresetMode.DISABLED,
        declared=declared,
        metadata={} if contract is not None and metadata is None else metadata,
        render_mode=getattr(env, "render_mode", None),
        judge=compile_judge(env.observation_space),
        unsteady=None if again is action_space else (action_space, again),
    )


def mode_of(declared: object) -> AutoresetMode | None:
    """Return the autoreset mode that metadata names: gymnasium's member, its value, or its name."""
    if declared is None:
        return None
    text = str(getattr(declared, "value", declared))
    return _MODES.get(text.replace("_", "").replace("-", "").lower())

"""A local vector environment behind the face of a remote one: same checks, same errors."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
from rlcore import (
    EnvironmentIdentity,
    InvalidActionError,
    InvalidObservationError,
    InvalidValueError,
    UnsupportedError,
)

from rlmesh.codec import NUMPY, compile_batch_codec
from rlmesh.protocol.lane_outcome import checked_lanes
from rlmesh.protocol.outcome import checked_reset
from rlmesh.runs.driven import LaneSteps
from rlmesh.runs.failing import Failing
from rlmesh.runs.local_content import name_of_env
from rlmesh.server.vectors import resets_by_mask
from rlmesh.specs import contract_of

RESET_MASK: Final = "reset_mask"


class LocalLanes(Failing):
    """Calls a vector environment in this process; it is one as gymnasium has them.

    Raises:
        ConfigurationError: it does not say what its lanes are.
        UnsupportedSpaceError: a space is of a kind that cannot be described here.
    """

    framework: Final = "numpy"

    def __init__(self, env: Any) -> None:  # Any: whatever steps many lanes
        super().__init__(env)
        contract = contract_of(env)
        self.env_contract = contract
        self.identity = EnvironmentIdentity(name_of_env(env, contract.id), None, contract.digest)
        self.num_envs = contract.num_envs
        self._actions = compile_batch_codec(contract.action_space, backend=NUMPY, strict_nan=True)
        self._observations = compile_batch_codec(contract.observation_space, backend=NUMPY)

    def reset(
        self,
        *,
        seed: Sequence[int | None] | int | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:  # Any: the batched observations
        """Start an episode in each lane, or in those of the option `reset_mask`.

        Raises:
            UnsupportedError: it cannot reset some lanes only.
            EnvironmentException: it raised, or answered with something else.
        """
        if options is not None and RESET_MASK in options and not resets_by_mask(self.env):
            raise UnsupportedError(f"{self.name!r} cannot reset some of its lanes only")
        given = seed if seed is None or isinstance(seed, int) else list(seed)
        self._seed, self._steps = given, 0
        arguments: dict[str, Any] = {} if options is None else {"options": dict(options)}
        if seed is not None:
            arguments["seed"] = given
        try:
            answer = self.env.reset(**arguments)
        except (Exception, SystemExit) as error:
            self._failed("reset", error)
        observations, info = checked_reset(answer)
        return self._own("reset", observations), dict(info)

    def step(self, actions: object) -> LaneSteps:
        """Take a step in each lane.

        Raises:
            InvalidActionError: there is not an action of the space for each lane; nothing was
                stepped.
            EnvironmentException: it raised, or answered with something else.
        """
        lanes = self.num_envs
        try:
            fitting = self._actions.decode(self._actions.encode(actions, lanes), lanes)
        except InvalidActionError:
            raise
        except InvalidValueError as error:
            raise InvalidActionError(error.message, path=error.path, hint=error.hint) from error
        self._steps += 1
        try:
            answer = self.env.step(fitting)
        except (Exception, SystemExit) as error:
            self._failed("step", error)
        try:
            given = checked_lanes(answer, lanes)
        except (TypeError, ValueError) as error:
            self._malformed("step", error)
        observations = self._own("step", given.observation)
        info = cast("Mapping[str, Any]", given.info)  # Any: whatever the environment says
        # Its own arrays are written over by its next step.
        rewards, terminated, truncated = (
            np.array(part) for part in (given.rewards, given.terminated, given.truncated)
        )
        return observations, rewards, terminated, truncated, dict(info)

    def _own(self, operation: str, observations: object) -> Any:  # Any: a batched tree
        lanes, codec = self.num_envs, self._observations
        try:
            # Large leaves are views of the environment's memory until they are decoded.
            return codec.decode(codec.encode(observations, lanes), lanes)
        except InvalidValueError as error:
            self._malformed(operation, InvalidObservationError(error.message, path=error.path))

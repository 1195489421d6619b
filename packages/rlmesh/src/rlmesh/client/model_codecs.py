"""How one environment's values travel to a served model and back, and what is said of odd ones."""

from __future__ import annotations

from typing import Any

from rlcore import InvalidActionError, InvalidObservationError, InvalidValueError

from rlmesh.backends.frameworks import FrameworkName, backend_of
from rlmesh.codec import compile_batch_codec, compile_codec
from rlmesh.protocol.model_requests import Leaves
from rlmesh.specs import EnvContract

# Any, in this room: values of whichever space and framework.


class ModelCodecs:
    """Writes observations of an environment, of one lane or many, and reads actions.

    Args:
        contract: what the environment is.
        framework: whose values actions become.
        model: what the model is called in errors.
    """

    def __init__(self, contract: EnvContract, framework: FrameworkName, model: str) -> None:
        backend = backend_of(framework)
        seen, done = contract.observation_space, contract.action_space
        self.contract = contract
        self._model = model
        self._observation = compile_codec(seen, backend=backend)
        self._observations = compile_batch_codec(seen, backend=backend)
        self._action = compile_codec(done, backend=backend, strict_nan=True)
        self._actions = compile_batch_codec(done, backend=backend, strict_nan=True)

    def encode(self, observation: object) -> Leaves:
        """Return one observation as it travels.

        Raises:
            InvalidObservationError: it is none of the space.
        """
        try:
            return self._observation.encode(observation)
        except InvalidValueError as error:
            raise self._no_observation(error) from error

    def encode_many(self, observations: object, lanes: int) -> Leaves:
        """Return a batched observation, or a list of some, as they travel; raises as `encode`."""
        try:
            return self._observations.encode(observations, lanes)
        except InvalidValueError as error:
            raise self._no_observation(error) from error

    def split(self, observations: object, lanes: int) -> list[Any]:
        """Return each lane's part of a batched observation; raises as `encode`."""
        try:
            return self._observations.split(observations, lanes)
        except InvalidValueError as error:
            raise self._no_observation(error) from error

    def decode(self, leaves: Leaves) -> Any:
        """Return one action.

        Raises:
            InvalidActionError: it is none of the space.
        """
        try:
            return self._action.decode(leaves)
        except InvalidValueError as error:
            raise self._no_action(error) from error

    def decode_many(self, leaves: Leaves, lanes: int) -> Any:
        """Return a batched action; raises as `decode`."""
        try:
            return self._actions.decode(leaves, lanes)
        except InvalidValueError as error:
            raise self._no_action(error) from error

    def split_actions(self, actions: object, lanes: int) -> list[Any]:
        """Return each lane's action of a batched one."""
        return self._actions.split(actions, lanes)

    def join_actions(self, actions: list[Any]) -> Any:
        """Return the lanes' actions as a batched one."""
        return self._actions.join(actions)

    def _no_observation(self, error: InvalidValueError) -> InvalidObservationError:
        return InvalidObservationError(
            f"what {self.contract.id!r} observed for the model {self._model!r} is none of its "
            f"observation space: {error.message}",
            path=error.path,
        )

    def _no_action(self, error: InvalidValueError) -> InvalidActionError:
        return InvalidActionError(
            f"what the model {self._model!r} answered is no action of {self.contract.id!r}: "
            f"{error.message}",
            path=error.path,
        )

"""A local environment object behind the face of a remote one: same checks, same errors."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from rlcore import (
    EnvironmentIdentity,
    Error,
    InvalidActionError,
    InvalidObservationError,
    InvalidValueError,
)

from rlmesh.authoring.marks import framework_of
from rlmesh.codec import NUMPY, compile_codec
from rlmesh.protocol.outcome import checked_outcome, checked_reset
from rlmesh.runs.driven import Step
from rlmesh.runs.failing import Failing
from rlmesh.runs.local_content import name_of_env
from rlmesh.server.framework import action_backend
from rlmesh.spaces import from_gymnasium_space
from rlmesh.specs import contract_of


class LocalEnv(Failing):
    """Calls the environment in this process.

    `advisories` says what cannot be known because a space has no description here; such an
    environment still runs, its actions and observations unchecked and its identity open.
    """

    def __init__(self, env: Any) -> None:  # Any: whatever has reset and step
        super().__init__(env)
        self.action_space: object = getattr(env, "action_space", None)
        self.identity: EnvironmentIdentity | None = None
        self.advisories: tuple[str, ...] = ()
        self._fit: Callable[[object], object] = _as_it_is
        self._observed: Callable[[object], object] = _as_it_is
        self._describe()

    @property
    def metadata(self) -> Mapping[str, object]:
        """The environment's own metadata."""
        found: object = getattr(self.env, "metadata", None)
        return cast("Mapping[str, object]", found) if isinstance(found, Mapping) else {}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:  # Any: an observation
        """Start an episode.

        Raises:
            EnvironmentException: the environment raised, or answered with something else.
        """
        self._seed, self._steps = seed, 0
        try:
            # An environment that takes no options is never handed any.
            more: dict[str, Any] = {} if options is None else {"options": options}
            answer = self.env.reset(seed=seed, **more)
        except (Exception, SystemExit) as error:
            self._failed("reset", error)
        observation, info = checked_reset(answer)
        return self._observation("reset", observation), dict(info)

    def step(self, action: object) -> Step:
        """Take a step.

        Raises:
            InvalidActionError: the action has not the form of the action space, or is a number that
                a discrete space does not have; nothing was stepped. The bounds of a Box and the
                length and characters of a Text are the environment's to enforce.
            EnvironmentException: the environment raised, or answered with something else.
        """
        fitting = self._fit(action)
        self._steps += 1
        try:
            answer = self.env.step(fitting)
        except (Exception, SystemExit) as error:
            self._failed("step", error)
        try:
            given = checked_outcome(answer)
        except (TypeError, ValueError) as error:
            self._malformed("step", error)
        observation = self._observation("step", given.observation)
        return observation, given.reward, given.terminated, given.truncated, dict(given.info)

    def _describe(self) -> None:
        try:
            contract = contract_of(self.env)
            # Whose arrays it takes, where the factory that made it said so.
            codec = compile_codec(
                from_gymnasium_space(self.action_space),
                backend=action_backend(framework_of(self.env), None),
                strict_nan=True,
            )
            seen = compile_codec(contract.observation_space, backend=NUMPY)
        except (Error, TypeError, ValueError, AttributeError) as error:
            self.advisories = (
                f"{type(self.env).__name__} has no contract, so this record has no identity: "
                f"{error}",
            )
            return
        self.env_contract = contract
        self.identity = EnvironmentIdentity(
            name_of_env(self.env, contract.id), None, contract.digest
        )

        def fit(action: object) -> object:
            try:
                return codec.decode(codec.encode(action))
            except InvalidActionError:
                raise
            except InvalidValueError as error:
                raise InvalidActionError(error.message, path=error.path, hint=error.hint) from error

        self._fit = fit
        self._observed = lambda observation: seen.decode(seen.encode(observation))

    def _observation(self, operation: str, observation: object) -> object:
        try:
            return self._observed(observation)
        except InvalidValueError as error:
            self._malformed(operation, InvalidObservationError(error.message, path=error.path))


def _as_it_is(action: object) -> object:
    return action

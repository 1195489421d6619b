"""Several environments as one thing that is served: lists, and environments that step many."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, SupportsIndex, TypeAlias, cast

import numpy as np
from rlcore import ConfigurationError, UnsupportedError

from rlmesh.codec import NUMPY, compile_batch_codec
from rlmesh.protocol.lane_infos import FINAL_INFO, FINAL_OBS, lane_of
from rlmesh.protocol.lane_outcome import checked_lanes
from rlmesh.protocol.outcome import checked_reset
from rlmesh.specs import AutoresetMode, EnvContract, contract_of

Env = Any  # whatever has reset and step
Sort: TypeAlias = Literal["one", "lanes", "vector"]
AUTORESET_KEY: Final = "autoreset_mode"
_METHODS: Final = ("observation_space", "action_space", "reset", "step", "close")


class NotAnEnvironment(ConfigurationError, TypeError):
    """What was given to serve is neither an environment nor a factory of them."""

    default_code = "not_an_environment"


class LaneSet:
    """Environments with one contract, each of which is a lane.

    Args:
        envs: the environments, each of a single lane.
        autoreset_mode: what is done at the end of an episode; the server resets the lane.

    Attributes:
        envs: the environments.
        contract: of one lane, with their number.
        resets_itself: whether the environments do themselves what the contract's mode says.

    Raises:
        NotAnEnvironment: one of them is none, or has many lanes itself.
        ConfigurationError: there are none, or their contracts differ.
    """

    def __init__(
        self, envs: Sequence[Env], autoreset_mode: AutoresetMode = AutoresetMode.DISABLED
    ) -> None:
        if not envs:
            raise ConfigurationError(
                "an empty list of environments cannot be served", hint="Give one at least."
            )
        if len({id(env) for env in envs}) < len(envs):
            raise ConfigurationError(
                "a list has the same environment in several lanes",
                hint="Make one for each lane.",
            )
        contracts = [_contract_of_lane(env, lane) for lane, env in enumerate(envs)]
        own = contracts[0]
        for lane, contract in enumerate(contracts):
            if contract.digest != own.digest:
                raise ConfigurationError(
                    f"the environments of a list differ: {contract.id!r} in lane {lane} has "
                    f"another contract than {own.id!r} in lane 0",
                    hint="Lanes have the same spaces, metadata and render mode.",
                )
        self.envs: Final = list(envs)
        self.resets_itself: Final = own.autoreset_mode is not AutoresetMode.DISABLED
        if self.resets_itself and autoreset_mode not in (
            AutoresetMode.DISABLED,
            own.autoreset_mode,
        ):
            raise ConfigurationError(
                f"{own.id!r} resets itself ({own.autoreset_mode}), and {autoreset_mode} was wanted",
                hint="Leave autoreset_mode out, or take the wrapper off that resets it.",
            )
        mode = own.autoreset_mode if self.resets_itself else autoreset_mode
        metadata = own.metadata
        if mode is not AutoresetMode.DISABLED:
            metadata = {**(metadata or {}), AUTORESET_KEY: mode.gymnasium_name}
        self.contract: Final = replace(
            own, num_envs=len(self.envs), autoreset_mode=mode, metadata=metadata
        )

    def close(self) -> None:
        """Close every environment.

        Raises:
            Exception: what the first that could not be closed raised, after all were tried.
        """
        failures: list[Exception] = []
        for env in self.envs:
            try:
                env.close()
            except Exception as error:  # the others are closed all the same
                failures.append(error)
        if failures:
            raise failures[0]

    def __repr__(self) -> str:
        return f"LaneSet({self.contract.id!r}, {len(self.envs)})"


class Unbatched:
    """The one lane of an environment that could step many, as a single environment.

    In same-step mode the last observation of an episode is returned as such, and the one that the
    environment has gone on to is what the next reset without a seed returns.
    """

    def __init__(self, env: Env) -> None:
        self._env = env
        contract = contract_of(env)
        self.observation_space = contract.observation_space
        self.action_space = contract.action_space
        self.metadata = {
            key: value
            for key, value in getattr(env, "metadata", {}).items()
            if key != AUTORESET_KEY
        }
        self.render_mode = contract.render_mode
        self.spec = getattr(env, "spec", None)
        self._id = contract.id
        self._actions = compile_batch_codec(self.action_space, backend=NUMPY)
        self._observations = compile_batch_codec(self.observation_space, backend=NUMPY)
        self._next: tuple[object, Mapping[str, object]] | None = None
        self._same_step = contract.autoreset_mode is AutoresetMode.SAME_STEP

    def reset(self, **arguments: object) -> tuple[object, Mapping[str, object]]:
        """Start an episode."""
        ready, self._next = self._next, None
        if ready is not None and not arguments:
            return ready
        observations, info = checked_reset(self._env.reset(**arguments))
        return self._only(observations), lane_of(info, 0, 1)

    def step(self, action: object) -> tuple[object, float, bool, bool, Mapping[str, object]]:
        """Take a step."""
        given = checked_lanes(self._env.step(self._actions.join([action])), 1)
        observation, info = self._only(given.observation), lane_of(given.info, 0, 1)
        over = bool(given.terminated[0] or given.truncated[0])
        if over and self._same_step and FINAL_OBS in info:
            last, told = info.pop(FINAL_OBS), info.pop(FINAL_INFO, {})
            self._next = observation, info
            observation, info = last, cast("dict[str, Any]", told)
        return (
            observation,
            float(given.rewards[0]),
            bool(given.terminated[0]),
            bool(given.truncated[0]),
            info,
        )

    def render(self) -> object:
        """Draw the lane."""
        if self.render_mode is None:
            return None
        frames: object = self._env.render()
        if isinstance(frames, tuple | list | np.ndarray):
            drawn = cast("Sequence[object]", frames)
            return drawn[0] if len(drawn) == 1 else drawn
        return frames

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    def __repr__(self) -> str:
        return f"Unbatched({self._env!r})"

    def _only(self, observations: object) -> object:
        return self._observations.split(observations, 1)[0]


def as_served(source: object) -> Env:
    """Return what is driven for what a server was given: a list of environments becomes lanes.

    Raises:
        NotAnEnvironment: it is no environment.
        ConfigurationError: a list is empty, or its environments differ.
        UnsupportedError: it steps several environments at once in a way of its own.
    """
    if isinstance(source, LaneSet):
        return source
    if isinstance(source, list | tuple):
        envs = cast("Sequence[Env]", source)
        lanes = LaneSet(envs)
        return lanes.envs[0] if len(envs) == 1 else lanes
    _require_methods(source)
    if not is_vector(source):
        return source
    count = _count_of(source)
    if count < 1:
        raise NotAnEnvironment(f"{source!r} has {count} environments in it")
    return Unbatched(source) if count == 1 else source


def is_vector(env: object) -> bool:
    """Return whether an environment steps many lanes at once.

    Raises:
        UnsupportedError: it does, and does not say what the spaces of one lane are.
    """
    if hasattr(env, "single_observation_space"):
        return True
    if _count_of(env) == 1:
        return False
    raise UnsupportedError(
        f"{env!r} steps several environments at once and has no single_observation_space",
        hint="Give it gymnasium's single_observation_space and single_action_space.",
    )


def served_contract(env: Env) -> EnvContract:
    """Return the contract of what `as_served` returned."""
    return env.contract if isinstance(env, LaneSet) else contract_of(env)


def sort_of(env: Env) -> Sort:
    """Return how what `as_served` returned is driven."""
    if isinstance(env, LaneSet):
        return "lanes"
    return "vector" if hasattr(env, "single_observation_space") else "one"


def says_it_is_disabled(env: Env) -> bool:
    """Return whether a vector environment says that finished lanes have to be reset by a mask."""
    metadata: Mapping[str, object] = getattr(env, "metadata", None) or {}
    if AUTORESET_KEY not in metadata:
        return False
    return contract_of(env).autoreset_mode is AutoresetMode.DISABLED


def resets_by_mask(env: Env) -> bool:
    """Return whether a vector environment understands gymnasium's option `reset_mask`."""
    vector = sys.modules.get("gymnasium.vector")
    if vector is None or not isinstance(env, vector.VectorEnv):
        return False
    inner: object = getattr(env, "unwrapped", env)
    return isinstance(inner, vector.SyncVectorEnv | vector.AsyncVectorEnv) or says_it_is_disabled(
        env
    )


def _count_of(env: object) -> int:
    count: object = getattr(env, "num_envs", 1)
    if isinstance(count, bool) or not isinstance(count, SupportsIndex):
        raise NotAnEnvironment(
            f"{env!r} is not an environment: its num_envs is {count!r}",
            hint="It is how many environments a step steps, a whole number.",
        )
    return int(count)


def _require_methods(env: object) -> None:
    names = [name for name in _METHODS if getattr(env, name, None) is None]
    single = [name for name in names if getattr(env, f"single_{name}", None) is None]
    if single:
        raise NotAnEnvironment(
            f"{env!r} is not an environment: it has no {', '.join(single)}",
            hint="Serve a gymnasium environment, an object like one, or a factory of them.",
        )


def _contract_of_lane(env: Env, lane: int) -> EnvContract:
    try:
        _require_methods(env)
        many = is_vector(env)
    except (NotAnEnvironment, UnsupportedError) as error:
        raise NotAnEnvironment(f"in lane {lane}, {error.message}", hint=error.hint) from error
    if many:
        raise NotAnEnvironment(
            f"in lane {lane}, {env!r} steps several environments at once",
            hint="Serve it by itself, or give a list of single environments.",
        )
    return contract_of(env)

"""Rollout workers: Ray actors that hold the sessions of a training and step them side by side.

They dial the same endpoint as everybody else; the policy stays with the trainer.
"""

# ray leaves most of its types open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import gymnasium
import ray
from gymnasium.envs.registration import EnvSpec
from ray.exceptions import GetTimeoutError, RayActorError
from rlcore import CallTimeout, ConfigurationError, Error, MissingDependencyError, SessionClosed

# Observations, actions, infos and spaces are whatever the environment says.
Value = Any
MakeSession = Callable[[int], "gymnasium.Env[Any, Any]"]

START_SECONDS = 120.0
RESTART_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Description:
    """What a session says about its environment before its first episode."""

    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    spec: EnvSpec | None
    metadata: dict[str, Any]


class SessionHolder:
    """The actor: opens sessions and steps them, in a process somewhere in the cluster.

    Errors of ours are answers, so that they arrive as what they are; others are Ray's to tell.
    """

    def __init__(self, make: MakeSession) -> None:
        self._make = make
        self._open: dict[int, gymnasium.Env[Any, Any]] = {}

    def open(self, session: int) -> Description | Error:
        """Open a session, in place of one of that number."""
        self.close(session)
        try:
            env = self._open[session] = self._make(session)
        except Error as error:
            return error
        return Description(
            env.observation_space, env.action_space, _public(env.spec), dict(env.metadata)
        )

    def reset(
        self, session: int, seed: int | None, options: dict[str, Any] | None
    ) -> tuple[Value, dict[str, Any]] | Error:
        """Begin an episode."""
        try:
            return self._open[session].reset(seed=seed, options=options)
        except Error as error:
            return error

    def step(
        self, session: int, action: Value
    ) -> tuple[Value, Any, bool, bool, dict[str, Any]] | Error:
        """Step."""
        try:
            return self._open[session].step(action)
        except Error as error:
            return error

    def close(self, session: int) -> None:
        """Close the session, if it is open."""
        env = self._open.pop(session, None)
        if env is not None:
            env.close()

    def node(self) -> str:
        """The node that the actor runs on."""
        return str(ray.get_runtime_context().get_node_id())


class RolloutWorkers:
    """As many actors as asked for, spread over the cluster; a factory of sessions in them.

    Session n lives in actor n modulo their number. An actor that died with its node is started
    again, elsewhere, by the next session that is opened in it.

    Args:
        count: how many actors.
        make: opens a session; it must be picklable.
        cpus: what each actor takes of the cluster's processors.
        step_seconds: how long an actor may take to answer.

    Raises:
        ConfigurationError: the cluster has no room for them.
        MissingDependencyError: this process is not part of a Ray cluster.
    """

    def __init__(
        self, count: int, make: MakeSession, *, cpus: float = 1.0, step_seconds: float = 60.0
    ) -> None:
        if not ray.is_initialized():
            try:
                ray.init(
                    address="auto",
                    log_to_driver=False,
                    logging_level=logging.WARNING,
                    configure_logging=False,
                )
            except ConnectionError as error:
                raise MissingDependencyError(
                    "rollout workers need a Ray cluster, and this process is not in one",
                    hint="Start the server with --executor ray, or leave rollout_workers out",
                ) from error
        self._make = make
        self._cpus = cpus
        self.step_seconds = step_seconds
        self._actors: list[Any] = [self._start() for _ in range(count)]
        self._await_start(self._actors)

    def __call__(self, session: int) -> ActorSession:
        """A session in its actor.

        Raises:
            rlcore.Error: it cannot be opened.
        """
        place = session % len(self._actors)
        try:
            described = self.call(place, "open", session, seconds=START_SECONDS)
        except SessionClosed:
            described = self._reopened(place, session)
        return ActorSession(self, place, session, cast("Description", described))

    def _reopened(self, place: int, session: int) -> Value:
        until = time.monotonic() + START_SECONDS
        while True:
            self._actors[place] = self._start()
            try:
                self._await_start([self._actors[place]])
                return self.call(place, "open", session, seconds=START_SECONDS)
            except SessionClosed:
                # Until the cluster has noticed that a node is gone, it may choose that one again.
                if time.monotonic() > until:
                    raise
                time.sleep(RESTART_SECONDS)

    def nodes(self) -> list[str]:
        """The nodes that the actors run on, in their order."""
        return [str(self.call(place, "node")) for place in range(len(self._actors))]

    def send(self, place: int, method: str, *arguments: Value) -> Value:
        """Ask an actor something, and return the question; `receive` waits for the answer."""
        return getattr(self._actors[place], method).remote(*arguments)

    def receive(self, question: Value, method: str, seconds: float | None = None) -> Value:
        """The answer to a question.

        Raises:
            SessionClosed: the actor is gone.
            CallTimeout: it takes too long.
            rlcore.Error: the session said so.
        """
        limit = self.step_seconds if seconds is None else seconds
        try:
            # The session bounds its own calls; the actor's answer comes a little later.
            answer: Value = ray.get(question, timeout=limit + 5.0)
        except RayActorError as error:
            raise _is_gone(error) from error
        except GetTimeoutError as error:
            raise CallTimeout(
                f"the rollout worker did not answer {method!r} within {limit:g} s",
                operation=method,
                seconds=limit,
                layer="rollout worker",
            ) from error
        if isinstance(answer, Error):
            raise answer
        return answer

    def call(
        self, place: int, method: str, *arguments: Value, seconds: float | None = None
    ) -> Value:
        """Ask an actor something and wait for the answer; see `receive`."""
        return self.receive(self.send(place, method, *arguments), method, seconds)

    @property
    def is_open(self) -> bool:
        """Whether the actors are there."""
        return bool(self._actors)

    def close(self) -> None:
        """End all actors."""
        for actor in self._actors:
            ray.kill(actor)
        self._actors.clear()

    def _start(self) -> Any:
        remote = ray.remote(SessionHolder)
        return remote.options(num_cpus=self._cpus, scheduling_strategy="SPREAD").remote(self._make)

    def _await_start(self, actors: list[Any]) -> None:
        try:
            ray.get([actor.node.remote() for actor in actors], timeout=START_SECONDS)
        except RayActorError as error:
            raise _is_gone(error) from error
        except GetTimeoutError as error:
            free = cast("Any", ray).available_resources().get("CPU", 0)
            count = len(actors)
            for actor in actors:
                ray.kill(actor)
            raise ConfigurationError(
                f"the Ray cluster has no room for {count} rollout workers of "
                f"{self._cpus:g} processors: {free:g} are free",
                code="no_room_for_rollout_workers",
                hint="Lower rollout_workers, or their cpus, or add nodes",
            ) from error


class ActorSession(gymnasium.Env[Any, Any]):
    """A session in an actor, as an environment."""

    def __init__(
        self, workers: RolloutWorkers, place: int, session: int, described: Description
    ) -> None:
        self._workers = workers
        self._place = place
        self._session = session
        self._begun: Value = None
        self.observation_space = described.observation_space
        self.action_space = described.action_space
        self.metadata = described.metadata
        self.spec = described.spec

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Value, dict[str, Any]]:
        """Begin an episode."""
        self._begun = None
        return cast(
            "tuple[Value, dict[str, Any]]",
            self._workers.call(self._place, "reset", self._session, seed, options),
        )

    def begin_step(self, action: Value) -> None:
        """Send the action; the next `step`, with the same action, only waits for what it did."""
        self._begun = self._workers.send(self._place, "step", self._session, action)

    def step(self, action: Value) -> tuple[Value, Any, bool, bool, dict[str, Any]]:
        """Step."""
        begun, self._begun = self._begun, None
        if begun is None:
            begun = self._workers.send(self._place, "step", self._session, action)
        return cast(
            "tuple[Value, Any, bool, bool, dict[str, Any]]",
            self._workers.receive(begun, "step"),
        )

    def close(self) -> None:
        """Close the session."""
        if self._workers.is_open:
            self._workers.send(self._place, "close", self._session)


def _is_gone(error: RayActorError) -> SessionClosed:
    return SessionClosed(
        f"the rollout worker is gone: {str(error).strip().splitlines()[-1]}",
        hint="Its node was lost, or it had no memory left; see the cluster's dashboard",
    )


def _public(spec: EnvSpec | None) -> EnvSpec | None:
    # How to make the session again holds its credentials, which do not leave their process.
    if spec is None:
        return None
    return EnvSpec(
        spec.id,
        reward_threshold=spec.reward_threshold,
        nondeterministic=spec.nondeterministic,
        max_episode_steps=spec.max_episode_steps,
    )

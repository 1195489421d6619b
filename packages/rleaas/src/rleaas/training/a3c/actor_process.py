"""The process of one actor-learner."""

# gymnasium leaves its type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
from rlcore import Error, SessionBusy
from torch import Tensor

from rleaas.training.a3c.learner import Learner, Segment
from rleaas.training.a3c.messages import Diverged, EpisodeOver, Failed, Learned, Message, Opened
from rleaas.training.a3c.settings import Settings
from rleaas.training.a3c.shared_weights import SharedWeights
from rleaas.training.actor.checkpoints import build_network
from rleaas.training.guarded import GuardedEnv, episode_seed, open_sessions
from rleaas.training.ledger import SUCCESS_KEYS
from rleaas.training.lockstep import begin_all, step_all
from rleaas.training.trainer import ExpectsSessions, SessionFactory

TELL_SECONDS = 0.5
ROOM_SECONDS = 2.0
_COUNTED = (
    *SUCCESS_KEYS,
    "tier",
    "scenario_id",
    "verifier_scores",
    "verifier_penalty",
    "composite_verifier_score",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Numbers in shared memory: each actor writes its own place only, so that no lock is needed."""

    steps: Tensor
    episodes: Tensor
    stop: Tensor

    @classmethod
    def of(cls, workers: int) -> Counters:
        """Zeros."""
        made = [torch.zeros(size, dtype=torch.int64) for size in (workers, workers, 1)]
        for one in made:
            shared: Any = one  # torch leaves it untyped
            shared.share_memory_()
        return cls(steps=made[0], episodes=made[1], stop=made[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """All that one actor is started with.

    Attributes:
        number: its place among the actors, from 0.
        sessions: how many it opens.
        make_env: opens them.
        environment: the environment's name, for messages.
        max_steps: the longest episode.
        run_seed: that of the training.
        attempt_seed: that of this actor's draws.
        begun: the number of the first episode of each of its sessions, for their seeds.
        played: that which a reward function is told of the first one.
        budget: how many episodes the training has in all.
        done: how many of them were over before this attempt.
        settings: how it learns.
        weights: what it learns for.
        counters: where it counts.
    """

    number: int
    sessions: int
    make_env: SessionFactory
    environment: str
    max_steps: int
    run_seed: int
    attempt_seed: int
    begun: int
    played: int
    budget: int
    done: int
    settings: Settings
    weights: SharedWeights
    counters: Counters


def run_actor(role: Role, connection: Connection) -> None:
    """Play and learn until told to stop; what goes wrong is told, not raised."""
    # A terminal's Ctrl-C and a polite end of the process group are for the parent to obey.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _end_with_parent()
    torch.set_num_threads(1)
    try:
        Actor(role, connection.send).run()
    except FloatingPointError:
        _tell(connection, Diverged())
    except Exception as error:
        _tell(connection, _failure(error))
    connection.close()


class Actor:
    """Plays segments in its sessions and learns from each."""

    def __init__(self, role: Role, tell: Any) -> None:  # whatever carries a message
        self._role = role
        self._tell = tell
        self._numbers: dict[str, float] = {}
        self._updates = 0
        self._told = time.monotonic()

    def run(self) -> None:
        """Play and learn until the counters say to stop.

        Raises:
            FloatingPointError: the loss or the weights are no numbers.
            rlcore.Error: the environment failed or was lost.
        """
        sessions = self._open()
        with contextlib.ExitStack() as stack:
            for session in sessions:
                stack.callback(session.close)
            self._tell(Opened(len(sessions)))
            if sessions:
                self._play(sessions)

    def _open(self) -> list[GuardedEnv]:
        role = self._role
        deadline = time.monotonic() + ROOM_SECONDS
        first = role.number * role.sessions
        while True:
            try:
                opened = open_sessions(
                    lambda session: role.make_env(first + session),
                    role.sessions,
                    required=False,
                    name=role.environment,
                    max_steps=role.max_steps,
                    seed=role.run_seed,
                )
            except SessionBusy:
                # The session in which the parent saw the spaces may not be free again yet.
                if time.monotonic() >= deadline or self._stopped():
                    return []
                time.sleep(0.1)
            else:
                if isinstance(role.make_env, ExpectsSessions):
                    role.make_env.expect(len(opened), first=first)
                return opened

    def _play(self, sessions: list[GuardedEnv]) -> None:
        role = self._role
        first = sessions[0]
        network = build_network(
            first.observation_space,
            first.action_space,
            role.settings.net_arch,
            critic=True,
            seed=role.run_seed,
        )
        learner = Learner(network, role.weights, role.settings, role.attempt_seed)
        begun = [role.begun] * len(sessions)
        for session in sessions:
            session.renumber(role.played)
        observations = [
            self._start(session, index, begun) for index, session in enumerate(sessions)
        ]
        while not self._stopped():
            segment = Segment(len(sessions))
            while len(segment) < role.settings.t_max and not self._stopped():
                observations = self._step(sessions, learner, segment, observations, begun)
            if len(segment):
                self._learn(learner, segment, observations)

    def _step(
        self,
        sessions: list[GuardedEnv],
        learner: Learner,
        segment: Segment,
        observations: list[Any],
        begun: list[int],
    ) -> list[Any]:
        drawn, given = learner.act(observations)
        self._role.counters.steps[self._role.number] += len(sessions)
        begin_all(sessions, given)
        following: list[Any] = []
        rewards: list[float] = []
        ends: list[bool] = []
        for row, outcome in enumerate(step_all(sessions, given)):
            after, reward, terminated, truncated, info = outcome
            over = terminated or truncated
            if over and not terminated:
                # The episode was cut short: what would have followed is worth something.
                value = float(learner.values([after])[0])
                reward += self._role.settings.gamma * value
            if over:
                self._count(info)
                after = self._start(sessions[row], row, begun)
            following.append(after)
            rewards.append(reward)
            ends.append(over)
        segment.add(observations, drawn, rewards, ends)
        return following

    def _start(self, session: GuardedEnv, row: int, begun: list[int]) -> Any:
        role = self._role
        place = role.number * role.sessions + row
        observation, _ = session.reset(seed=episode_seed(role.run_seed, place, begun[row]))
        begun[row] += 1
        return observation

    def _count(self, info: Mapping[str, Any]) -> None:
        if "episode" not in info:
            return  # it was lost on the way, and counts nowhere
        number, counters, episode = self._role.number, self._role.counters, info["episode"]
        counters.episodes[number] += 1
        counted = {key: info[key] for key in _COUNTED if key in info}
        steps = int(counters.steps[number])
        self._tell(EpisodeOver(episode["r"], episode["l"], counted, steps))

    def _learn(self, learner: Learner, segment: Segment, after: list[Any]) -> None:
        settings = self._role.settings
        rate = settings.learning_rate * (self._share_left() if settings.linear else 1.0)
        for name, value in learner.learn(segment, after, rate).items():
            self._numbers[name] = self._numbers.get(name, 0.0) + value
        self._updates += 1
        if time.monotonic() - self._told >= TELL_SECONDS:
            means = {name: total / self._updates for name, total in self._numbers.items()}
            self._tell(Learned(self._updates, {**means, "learning_rate": rate}))
            self._numbers.clear()
            self._updates = 0
            self._told = time.monotonic()

    def _share_left(self) -> float:
        over = self._role.done + int(self._role.counters.episodes.sum())
        return max(0.0, 1.0 - over / self._role.budget)

    def _stopped(self) -> bool:
        return bool(self._role.counters.stop[0])


def _failure(error: Exception) -> Failed:
    story = "".join(traceback.format_exception(error))
    ours = error if isinstance(error, Error) else None
    return Failed(ours, f"{type(error).__name__}: {error}", story)


def _tell(connection: Connection, message: Message) -> None:
    # A parent that is gone hears nothing, and the process ends all the same.
    with contextlib.suppress(OSError):
        connection.send(message)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    sentinel = parent.sentinel

    def watch() -> None:
        wait([sentinel])
        # Nobody is left to learn for; an environment that hangs must not keep the process.
        os._exit(1)

    threading.Thread(target=watch, name="rleaas-parent", daemon=True).start()

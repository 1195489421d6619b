"""Groups of episodes: several from each start, played by sessions side by side."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor

from rleaas.training.actor.network import ActorNetwork
from rleaas.training.actor.tiers import Tiers
from rleaas.training.episode_env import TIER
from rleaas.training.guarded import GuardedEnv, episode_seed
from rleaas.training.lockstep import Turns, begin_all, step_all

# Observations are whatever the environment's spaces say.
Value = Any

Look = Callable[[int, Sequence[Mapping[str, Any]]], bool]
"""Told how many steps were just taken, over all sessions, and the infos of the last steps of the
episodes that ended with them; says whether to play on."""


@dataclass(slots=True)
class Episode:
    """One episode of a group as it was played."""

    group: int
    seed: int
    observations: list[Value] = field(default_factory=list[Value])
    actions: list[Tensor] = field(default_factory=list[Tensor])
    rewards: list[float] = field(default_factory=list[float])


_Seat: TypeAlias = tuple[GuardedEnv, Episode, Value]


@dataclass(frozen=True, slots=True)
class _Turn:
    """What a crew of sessions was told to do."""

    crew: list[_Seat]
    drawn: Tensor
    given: np.ndarray[Any, Any]


class Player:
    """Plays whole groups with the policy as it is; half of the sessions are a batch."""

    def __init__(
        self,
        sessions: Sequence[GuardedEnv],
        network: ActorNetwork,
        generator: torch.Generator,
        tiers: Tiers,
        *,
        seed: int,
    ) -> None:
        self._sessions = sessions
        self._network = network
        self._generator = generator
        self._tiers = tiers
        self._seed = seed
        self._turns = Turns()

    def play(
        self, first_group: int, sizes: Sequence[int], look: Look
    ) -> list[list[Episode]] | None:
        """The episodes of groups of these sizes, or None when `look` said to stop.

        All episodes of a group start from the same seed, at the tier that the curriculum is at when
        the first of them starts. An episode that the environment lost is played again.
        """
        groups = [
            [Episode(index, episode_seed(self._seed, first_group + index, 0)) for _ in range(size)]
            for index, size in enumerate(sizes)
        ]
        waiting = deque(episode for group in groups for episode in group)
        tiers: dict[int, int | None] = {}
        begun = [
            self._start(session, waiting.popleft(), tiers)
            for session, _ in zip(self._sessions, tuple(waiting), strict=False)
        ]
        # While the environments of one crew work, the policy decides for the other; those that one
        # message steps, where that is quicker.
        self._turns.pause()
        crews = [crew for crew in (begun[::2], begun[1::2]) if crew]
        turns = deque(self._send(crew) for crew in crews)
        while turns:
            turn = turns.popleft()
            going_on: list[_Seat] = []
            over: list[Mapping[str, Any]] = []
            outcomes = step_all([session for session, _, _ in turn.crew], turn.given)
            for row, (seat, outcome) in enumerate(zip(turn.crew, outcomes, strict=True)):
                session, episode, observation = seat
                after, reward, terminated, truncated, info = outcome
                episode.observations.append(observation)
                episode.actions.append(turn.drawn[row])
                episode.rewards.append(reward)
                if not (terminated or truncated):
                    going_on.append((session, episode, after))
                    continue
                if "episode" in info:
                    over.append(info)
                else:
                    _forget(episode)
                    waiting.append(episode)
                if waiting:
                    going_on.append(self._start(session, waiting.popleft(), tiers))
            if not look(len(turn.crew), over):
                return None
            if going_on:
                turns.append(self._send(going_on))
        return groups

    def _start(
        self, session: GuardedEnv, episode: Episode, tiers: dict[int, int | None]
    ) -> tuple[GuardedEnv, Episode, Value]:
        if episode.group not in tiers:
            tiers[episode.group] = self._tiers.now
        tier = tiers[episode.group]
        options = None if tier is None else {TIER: tier}
        observation, _ = session.reset(seed=episode.seed, options=options)
        return session, episode, observation

    def _send(self, crew: list[_Seat]) -> _Turn:
        drawn, given = self._act([observation for _, _, observation in crew])
        sessions = [session for session, _, _ in crew]
        begin_all(sessions, given, at_once=self._turns.at_once(len(crew)))
        return _Turn(crew, drawn, given)

    def _act(self, observations: list[Value]) -> tuple[Tensor, np.ndarray[Any, Any]]:
        network = self._network
        with torch.no_grad():
            outputs = network(network.observations.stack(observations))
            drawn = network.draw(outputs, self._generator)
            return drawn, cast("np.ndarray[Any, Any]", network.actions.to_learner(drawn).numpy())


def _forget(episode: Episode) -> None:
    episode.observations.clear()
    episode.actions.clear()
    episode.rewards.clear()

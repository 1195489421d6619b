"""What an exact resume of a training by stable-baselines3 needs beside the policy."""

# stable-baselines3 and gymnasium leave their type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from stable_baselines3.common.buffers import ReplayBuffer

from rleaas.training.checkpoint_file import has_member, read_tensors
from rleaas.training.guarded import GuardedEnv
from rleaas.training.ledger import EpisodeLedger
from rleaas.training.sb3.models import WatchedModel
from rleaas.training.sb3.replay import Place, place_of, replay_from_parts, replay_to_parts
from rleaas.training.sb3.updates import Updates
from rleaas.training.session_state import SessionMark, SessionState
from rleaas.training.trainer import Progress

_OPTIMIZERS = ("policy.optimizer", "actor.optimizer", "critic.optimizer", "ent_coef_optimizer")
_COUNTERS = ("num_timesteps", "_episode_num", "_n_updates", "_n_calls", "exploration_rate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A training between two updates: all that changes while its sessions are stepped.

    It is taken before every rollout and has to be cheap; the networks and optimisers, which only
    updates change, are read when it is written.
    """

    counters: Mapping[str, Any]
    progress: Progress
    ledger: Mapping[str, object]
    updates: Mapping[str, object]
    sessions: tuple[SessionMark, ...]
    episode_starts: Any  # an array of flags
    torch_state: torch.Tensor
    numpy_state: Mapping[str, Any]
    python_state: Any  # as random.getstate gives it
    space_state: Mapping[str, Any]
    replay: Place | None
    target: Mapping[str, torch.Tensor] | None

    @classmethod
    def of(
        cls,
        model: WatchedModel,
        ledger: EpisodeLedger,
        updates: Updates,
        sessions: list[GuardedEnv],
    ) -> Moment:
        """This moment; nothing may be under way."""
        return cls(
            counters={name: getattr(model, name) for name in _COUNTERS if hasattr(model, name)},
            progress=ledger.progress(),
            ledger=ledger.state(),
            updates=updates.state(),
            sessions=tuple([session.mark() for session in sessions]),
            episode_starts=cast("Any", model)._last_episode_starts,
            torch_state=torch.get_rng_state(),
            numpy_state=np.random.get_state(legacy=False),
            python_state=random.getstate(),
            space_state=model.action_space.np_random.bit_generator.state,
            replay=None if (buffer := _buffer(model)) is None else place_of(buffer),
            target=_moving_target(model),
        )

    def parts(self, model: WatchedModel, replay_bytes: int) -> dict[str, object]:
        """The moment with the networks' optimisers, for a state file.

        No update may have happened since.
        """
        buffer = _buffer(model)
        log_ent_coef = getattr(model, "log_ent_coef", None)
        return {
            "counters": self.counters,
            "ledger": self.ledger,
            "updates": self.updates,
            "sessions": [mark.state().to_json() for mark in self.sessions],
            "episode_starts": self.episode_starts,
            "random": {
                "torch": self.torch_state,
                "numpy": self.numpy_state,
                "python": self.python_state,
                "space": self.space_state,
            },
            "optimizers": {
                name: optimizer.state_dict() for name, optimizer in _optimizers(model).items()
            },
            "log_ent_coef": log_ent_coef,
            "target": self.target,
            "replay": None
            if buffer is None or self.replay is None
            else replay_to_parts(buffer, self.replay, replay_bytes),
        }


def restore_learning(model: WatchedModel, parts: Mapping[str, Any]) -> bool:
    """Give a fresh model the optimisers; False where the other one had another kind of them.

    Raises:
        KeyError, TypeError, ValueError, RuntimeError: the parts are not those of such a model.
    """
    kept = cast("Mapping[str, Any]", parts["optimizers"])
    optimizers = _optimizers(model)
    for name, optimizer in optimizers.items():
        if name in kept:
            optimizer.load_state_dict(kept[name])
    log_ent_coef = getattr(model, "log_ent_coef", None)
    if log_ent_coef is not None and parts["log_ent_coef"] is not None:
        with torch.no_grad():
            log_ent_coef.copy_(parts["log_ent_coef"])
    return set(kept) == set(optimizers)


def restore_optimizers(model: WatchedModel, policy: Path) -> None:
    """Give a fresh model the optimisers in a policy's file, which stable-baselines3 put there.

    Raises:
        ConfigurationError, KeyError, ValueError: they are not those of such a model.
    """
    for name, optimizer in _optimizers(model).items():
        if has_member(policy, f"{name}.pth"):
            optimizer.load_state_dict(read_tensors(policy, f"{name}.pth"))


def restore_replay(model: WatchedModel, parts: Mapping[str, Any]) -> bool:
    """Fill a fresh model's replay buffer, where it has one; whether it is as it was.

    Raises:
        KeyError, TypeError, ValueError: the parts are not those of such a model.
    """
    buffer = _buffer(model)
    return buffer is None or replay_from_parts(buffer, parts["replay"])


def restore_moment(
    model: WatchedModel, ledger: EpisodeLedger, updates: Updates, parts: Mapping[str, Any]
) -> None:
    """Give a model of the same job its counters, the ledger and the unfinished averages.

    Raises:
        KeyError, TypeError, ValueError, RuntimeError: the parts are not those of such a model.
    """
    for name, value in cast("Mapping[str, Any]", parts["counters"]).items():
        if name not in _COUNTERS:
            raise ValueError(f"a counter {name!r}")
        setattr(model, name, value)
    ledger.restore(parts["ledger"])
    updates.restore(parts["updates"], model.num_timesteps)
    target = cast("Mapping[str, torch.Tensor] | None", parts["target"])
    if target is not None:
        cast("Any", model).q_net_target.load_state_dict(target)
    inner = cast("Any", model)
    inner._last_episode_starts = parts["episode_starts"]
    inner._current_progress_remaining = ledger.remaining


def restore_random(model: WatchedModel, parts: Mapping[str, Any]) -> None:
    """Set all random generators; the last thing before training goes on.

    Raises:
        KeyError, TypeError, ValueError, RuntimeError: the parts are not those of a training.
    """
    states = cast("Mapping[str, Any]", parts["random"])
    torch.set_rng_state(states["torch"])
    np.random.set_state(states["numpy"])
    random.setstate(states["python"])
    model.action_space.np_random.bit_generator.state = states["space"]


def restore_sessions(
    sessions: list[GuardedEnv], parts: Mapping[str, Any]
) -> tuple[list[Any], list[int]]:
    """Play the unfinished episodes again.

    Returns the observations to go on from, and which sessions ended up elsewhere than before and
    got their next episode instead.

    Raises:
        KeyError, TypeError, ValueError: the parts are not those of such sessions.
        rlcore.RLMeshException: the environment failed or was lost.
    """
    kept = cast("list[Mapping[str, object]]", parts["sessions"])
    if len(kept) != len(sessions):
        raise ValueError(f"{len(kept)} sessions were stepped, now there are {len(sessions)}")
    observations: list[Any] = []
    fresh: list[int] = []
    for index, (session, state) in enumerate(zip(sessions, kept, strict=True)):
        observation, same = session.restore(SessionState.from_json(state))
        observations.append(observation)
        if not same:
            fresh.append(index)
    return observations, fresh


def _buffer(model: WatchedModel) -> ReplayBuffer | None:
    return cast("ReplayBuffer | None", getattr(model, "replay_buffer", None))


def _moving_target(model: WatchedModel) -> Mapping[str, torch.Tensor] | None:
    """DQN's target network, where it changes a little in the middle of rollouts."""
    target = getattr(model, "q_net_target", None)
    if target is None or cast("Any", model).tau >= 1.0:
        return None
    return {name: one.clone() for name, one in target.state_dict().items()}


def _optimizers(model: WatchedModel) -> dict[str, torch.optim.Optimizer]:
    found: dict[str, torch.optim.Optimizer] = {}
    for path in _OPTIMIZERS:
        value: Any = model
        for name in path.split("."):
            value = getattr(value, name, None)
        if isinstance(value, torch.optim.Optimizer):
            found[path] = value
    return found

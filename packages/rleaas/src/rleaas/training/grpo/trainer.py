"""Group-relative policy optimisation on the sessions of an environment."""

# gymnasium leaves its type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, cast

import torch
from rlcore import ConfigurationError, Error, TrainingJobFailed

from rleaas.training.actor.checkpoints import (
    Card,
    Checkpoints,
    Moment,
    build_network,
    resumed_from,
)
from rleaas.training.actor.policy import load_policy_weights, net_arch_of, policy_weights
from rleaas.training.actor.tiers import Tiers
from rleaas.training.farewell import farewell
from rleaas.training.grpo.groups import Player
from rleaas.training.grpo.settings import SESSIONS, Settings
from rleaas.training.grpo.update import Diverged, Updater
from rleaas.training.guarded import GuardedEnv, label_of, open_sessions
from rleaas.training.learner_spaces import check_learnable
from rleaas.training.ledger import ledger_of
from rleaas.training.limits import Limits
from rleaas.training.state_file import read_state
from rleaas.training.trainer import (
    StopReason,
    TrainingResults,
    TrainingSink,
    TrainingTask,
)


class GRPOTrainer:
    """Trains by GRPO on the CPU, one torch thread.

    The algorithm is that of DeepSeekMath (Shao et al. 2024, arXiv 2402.03300) with an environment's
    episode for a completion and its start seed for a prompt: no value function; an episode is
    compared with the others of its group. Dr. GRPO (Liu et al. 2025, arXiv 2503.20783) is
    `std_normalization=false` with `length_normalization="constant"`.

    The policy moves between groups only. A checkpoint is that of the moment before the groups that
    are being played, and a restarted job plays those again from their start.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock

    def train(self, task: TrainingTask, sink: TrainingSink) -> TrainingResults:
        """Train until a budget, the target or a stop request ends it; see `Trainer.train`.

        Raises:
            ConfigurationError: spaces, settings or the checkpoint to resume from do not fit.
            TrainingJobFailed: a quota is used up or the training diverged.
            rlcore.RLMeshException: the environment failed or was lost.
        """
        torch.set_num_threads(1)
        with _sessions(task) as sessions:
            first = sessions[0]
            check_learnable(first.given_observations, first.given_actions, task.config.algorithm)
            return _Run(task, sink, sessions, self._clock).train()


class _Run:
    """One training from its first step to its last checkpoint."""

    def __init__(
        self,
        task: TrainingTask,
        sink: TrainingSink,
        sessions: Sequence[GuardedEnv],
        clock: Callable[[], float],
    ) -> None:
        first = sessions[0]
        resumed = resumed_from(task, first.given_observations, first.given_actions)
        config = task.config
        self._task = task
        self._sink = sink
        self._clock = clock
        self._settings = Settings.settle(config, net_arch_of(resumed) if resumed else None)
        self._network = build_network(
            first.observation_space,
            first.action_space,
            self._settings.net_arch,
            critic=False,
            seed=task.seed,
        )
        if task.resume is not None:
            load_policy_weights(self._network, task.resume.policy)
        self._generator = torch.Generator().manual_seed(task.seed)
        self._sessions = sessions
        self._tiers = Tiers(task.make_env)
        self._player = Player(sessions, self._network, self._generator, self._tiers, seed=task.seed)
        self._updater = Updater(
            self._network, self._settings, self._generator, max_steps=config.max_steps
        )
        self._ledger = ledger_of(config, clock, reward_threshold=first.reward_threshold)
        self._limits = Limits(task, self._ledger, sink)
        self._checkpoints = Checkpoints(
            task,
            sink,
            Card(
                family="grpo",
                hyperparameters=self._settings.to_dict(),
                net_arch=self._settings.net_arch,
                observation_space=first.given_observations,
                action_space=first.given_actions,
            ),
        )
        self._groups = 0
        self._stopped_by: StopReason | None = None
        if task.resume is not None:
            self._go_on()
        self._moment = self._now()
        settings = self._settings
        sink.log(
            f"GRPO with {list(settings.net_arch)} on {task.environment}: {len(sessions)} sessions, "
            f"{settings.groups_per_update} groups of {settings.group_size} episodes per update, "
            f"seed {task.seed}"
        )

    def train(self) -> TrainingResults:
        self._ledger.start()
        try:
            while self._stopped_by is None and not self._ledger.spent:
                self._round()
        except KeyboardInterrupt:
            # A step that hangs never asks whether to stop; the moment before is whole all the same.
            self._stopped_by = StopReason.CANCELLED
        except (Diverged, FloatingPointError) as error:
            raise TrainingJobFailed(
                self._task.job_id,
                "the training diverged: the policy's loss or weights are not finite after "
                f"{self._ledger.timestep} steps",
                code="training_diverged",
                hint="Lower learning_rate",
            ) from error
        except Error as error:
            if self._ledger.timestep:
                self._checkpoints.save("last", self._moment)
            error.add_note(f"after {self._ledger.progress().episode} episodes of training")
            raise
        stopped = self._stopped_by or StopReason.EPISODE_BUDGET
        progress = self._ledger.progress()
        if stopped is StopReason.CANCELLED:
            self._checkpoints.save("last", self._moment)
        else:
            self._checkpoints.save("final", self._moment, progress)
        self._sink.log(farewell(stopped, progress))
        return TrainingResults(
            stopped_by=stopped,
            progress=progress,
            best_reward=self._ledger.best_reward,
            target_reward=self._task.config.target_reward,
            seed=self._task.seed,
            updates=self._ledger.rollouts,
        )

    def _round(self) -> None:
        """Play the groups of one update, and update."""
        began, steps = self._clock(), self._ledger.timestep
        left = self._task.config.num_episodes - self._ledger.progress().episode
        sizes = _sizes(left, self._settings.group_size, self._settings.groups_per_update)
        groups = self._player.play(self._groups, sizes, self._look)
        if groups is None:
            return
        played = self._clock()
        seen = self._updater.update(groups, self._ledger.remaining)
        self._groups += len(groups)
        self._ledger.rollouts += 1
        self._moment = self._now()
        ended = self._clock()
        taken = self._ledger.timestep - steps
        seen["steps_per_second"] = taken / max(ended - began, 1e-9)
        seen["update_seconds"] = ended - played
        self._sink.update_finished(self._moment.progress, seen)
        if not self._ledger.spent and self._checkpoints.is_due(self._moment.progress.episode):
            self._checkpoints.save("checkpoint", self._moment)

    def _look(self, steps: int, over: Sequence[Mapping[str, Any]]) -> bool:
        self._ledger.timestep += steps
        for info in over:
            episode = info["episode"]
            self._sink.episode_finished(self._ledger.add(episode["r"], episode["l"], info))
            if self._ledger.target_reached:
                self._stopped_by = StopReason.TARGET_REWARD
                return False
        self._stopped_by = self._limits.reached()
        return self._stopped_by is None

    def _now(self) -> Moment:
        weights = {name: one.clone() for name, one in policy_weights(self._network).items()}
        return Moment(
            progress=self._ledger.progress(),
            updates=self._ledger.rollouts,
            weights=weights,
            state={
                **self._updater.state(),
                "generator": self._generator.get_state(),
                "ledger": self._ledger.state(),
                "groups": self._groups,
                "curriculum": self._tiers.state(),
                "episodes": [session.next_episode for session in self._sessions],
            },
        )

    def _go_on(self) -> None:
        resume = self._task.resume
        if resume is None:
            return
        self._sink.log(f"resumed from {resume.policy.name}")
        if resume.state is None:
            return
        state = read_state(resume.state)
        try:
            self._updater.restore(state, reference=resume.same_job)
            if resume.same_job:
                self._generator.set_state(state["generator"])
                self._ledger.restore(cast("Mapping[str, object]", state["ledger"]))
                self._groups = int(state["groups"])
                self._tiers.restore(state["curriculum"])
                # With fewer sessions than before the others' numbers are of no use.
                for session, number in zip(self._sessions, state["episodes"], strict=False):
                    session.renumber(int(number))
                self._checkpoints.go_on(
                    self._ledger.progress(), self._ledger.rollouts, state["best"]
                )
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise ConfigurationError(
                f"the state beside checkpoint {resume.policy.name!r} does not fit: {error}",
                code="checkpoint_incompatible",
                hint="Resume from another checkpoint, or without its state",
            ) from error


def _sizes(left: int, size: int, groups: int) -> list[int]:
    """The sizes of the next groups: full ones, the last cut off where the budget ends."""
    sizes: list[int] = []
    while left > 0 and len(sizes) < groups:
        sizes.append(min(size, left))
        left -= sizes[-1]
    return sizes


@contextlib.contextmanager
def _sessions(task: TrainingTask) -> Generator[list[GuardedEnv]]:
    asked = task.config.num_envs
    # More sessions than episodes would step for nothing.
    count = min(asked or SESSIONS, task.config.num_episodes)
    sessions = open_sessions(
        task.make_env,
        count,
        required=asked is not None,
        name=label_of(task.environment),
        max_steps=task.config.max_steps,
        seed=task.seed,
    )
    with contextlib.ExitStack() as stack:
        for session in sessions:
            stack.callback(session.close)
        yield sessions

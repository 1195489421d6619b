"""Asynchronous advantage actor-critic: processes that learn one policy at the same time."""

# gymnasium and torch leave some of their types open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import torch
from rlcore import ConfigurationError, Error, SessionBusy, TrainingJobFailed

from rleaas.training.a3c.actor_process import Counters, Role
from rleaas.training.a3c.crew import ActorLost, Crew, actor_context
from rleaas.training.a3c.messages import (
    Diverged,
    EpisodeOver,
    Failed,
    Learned,
    Message,
    Opened,
)
from rleaas.training.a3c.settings import Settings, Team
from rleaas.training.a3c.shared_weights import SharedWeights
from rleaas.training.actor.checkpoints import (
    Card,
    Checkpoints,
    Moment,
    build_network,
    resumed_from,
)
from rleaas.training.actor.flat_weights import FlatWeights
from rleaas.training.actor.policy import load_policy_weights, net_arch_of, policy_weights
from rleaas.training.actor.tiers import Tiers
from rleaas.training.farewell import farewell
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

HEAR_SECONDS = 0.1


class A3CTrainer:
    """Trains by A3C (Mnih et al. 2016, arXiv 1602.01783) on the CPU.

    Every actor is a process with sessions of its own, which plays up to `t_max` steps with a copy
    of the weights and then steps the shared ones, whatever the others are doing. So the same
    request gives another curve every time, unless there is but one actor. A restarted job goes on
    with the weights, the optimiser's statistics and the counters; its episodes begin anew.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock

    def train(self, task: TrainingTask, sink: TrainingSink) -> TrainingResults:
        """Train until a budget, the target or a stop request ends it; see `Trainer.train`.

        Raises:
            ConfigurationError: spaces, settings or the checkpoint to resume from do not fit.
            TrainingJobFailed: a quota is used up, the training diverged, or an actor was killed or
                raised what is no error of ours.
            rlcore.RLMeshException: the environment failed or was lost, in whatever process.
        """
        torch.set_num_threads(1)
        team = Team.settle(task.config)
        (first,) = open_sessions(
            task.make_env,
            1,
            required=False,
            name=label_of(task.environment),
            max_steps=task.config.max_steps,
            seed=task.seed,
        )
        with contextlib.closing(first):
            check_learnable(first.given_observations, first.given_actions, task.config.algorithm)
            run = _Run(task, sink, first, team, self._clock)
        return run.train()


class _Run:
    """One training from its first step to its last checkpoint."""

    def __init__(
        self,
        task: TrainingTask,
        sink: TrainingSink,
        first: GuardedEnv,
        team: Team,
        clock: Callable[[], float],
    ) -> None:
        resumed = resumed_from(task, first.given_observations, first.given_actions)
        config = task.config
        self._task = task
        self._sink = sink
        self._team = team
        self._settings = Settings.settle(config, net_arch_of(resumed) if resumed else None)
        self._network = build_network(
            first.observation_space,
            first.action_space,
            self._settings.net_arch,
            critic=True,
            seed=task.seed,
        )
        self._ledger = ledger_of(config, clock, reward_threshold=first.reward_threshold)
        self._limits = Limits(task, self._ledger, sink)
        self._checkpoints = Checkpoints(
            task,
            sink,
            Card(
                family="a3c",
                hyperparameters={**self._settings.to_dict(), "n_workers": team.workers},
                net_arch=self._settings.net_arch,
                observation_space=first.given_observations,
                action_space=first.given_actions,
            ),
        )
        self._tiers = Tiers(task.make_env)
        state = self._load()
        lock = None
        if self._settings.lock_updates:
            lock = actor_context().Lock()
        self._weights = SharedWeights(
            self._network,
            optimizer=self._settings.optimizer,
            epsilon=self._settings.epsilon,
            lock=lock,
        )
        self._restore(state)
        self._mirror = FlatWeights(self._network)
        self._counters = Counters.of(team.workers)
        self._before = self._ledger.timestep
        self._heard = [0] * team.workers
        self._without_room = 0
        self._stopped_by: StopReason | None = None
        self._last_told = clock(), 0
        self._clock = clock

    def train(self) -> TrainingResults:
        self._ledger.start()
        try:
            if not self._ledger.spent:
                self._work()
        except KeyboardInterrupt:
            # Whatever this process waited for, the shared weights are whole.
            self._stopped_by = StopReason.CANCELLED
        except _NotFinite as error:
            raise TrainingJobFailed(
                self._task.job_id,
                "the training diverged: the policy's loss or weights are not finite after "
                f"{self._steps()} steps",
                code="training_diverged",
                hint="Lower learning_rate",
            ) from error
        except Error as error:
            if self._steps() and self._weights.is_finite():
                self._save("last")
            error.add_note(f"after {self._ledger.progress().episode} episodes of training")
            raise
        stopped = self._stopped_by or StopReason.EPISODE_BUDGET
        self._ledger.timestep = self._before + self._steps()
        progress = self._ledger.progress()
        self._save("last" if stopped is StopReason.CANCELLED else "final")
        self._sink.log(farewell(stopped, progress))
        return TrainingResults(
            stopped_by=stopped,
            progress=progress,
            best_reward=self._ledger.best_reward,
            target_reward=self._task.config.target_reward,
            seed=self._task.seed,
            updates=self._weights.updates,
        )

    def _work(self) -> None:
        team = self._team
        self._sink.log(
            f"A3C with {list(self._settings.net_arch)} on {self._task.environment}: "
            f"{team.workers} actors of {team.sessions} sessions, {self._settings.t_max} steps "
            f"between updates, seed {self._task.seed}"
        )
        self._tiers.share()
        crew = Crew([self._role(number) for number in range(team.workers)])
        try:
            while not self._is_over():
                for number, message in crew.hear(HEAR_SECONDS):
                    self._take(crew, number, message)
                    if self._is_over():
                        return
                self._ledger.timestep = self._before + self._steps()
                self._stopped_by = self._limits.reached()
        except ActorLost as error:
            code = error.code or 0
            how = f"exit code {code}" if code >= 0 else f"signal {-code}"
            raise TrainingJobFailed(
                self._task.job_id,
                f"actor {error.number} of {team.workers} ended by {how}, before it was told to",
                code="actor_lost",
                hint="Start again from the last checkpoint; if it was killed for memory, lower "
                "n_workers",
            ) from error
        finally:
            crew.dismiss()

    def _is_over(self) -> bool:
        return self._stopped_by is not None

    def _take(self, crew: Crew, number: int, message: Message) -> None:
        match message:
            case EpisodeOver():
                self._heard[number] = message.steps
                self._ledger.timestep = self._before + sum(self._heard)
                self._book(message)
            case Learned():
                self._tell(message)
            case Opened():
                self._admit(crew, number, message.sessions)
            case Failed():
                raise self._failure(number, message)
            case Diverged():
                raise _NotFinite

    def _book(self, episode: EpisodeOver) -> None:
        progress = self._ledger.add(episode.reward, episode.length, episode.info)
        self._sink.episode_finished(progress)
        if self._ledger.spent:
            self._stopped_by = StopReason.EPISODE_BUDGET
        elif self._ledger.target_reached:
            self._stopped_by = StopReason.TARGET_REWARD
        elif self._checkpoints.is_due(progress.episode):
            self._save("checkpoint")

    def _tell(self, learned: Learned) -> None:
        if not self._weights.is_finite():
            raise _NotFinite
        now, steps = self._clock(), self._steps()
        then, before = self._last_told
        self._last_told = now, steps
        numbers = dict(learned.numbers)
        numbers["steps_per_second"] = (steps - before) / max(now - then, 1e-9)
        numbers["updates"] = float(self._weights.updates)
        self._ledger.timestep = self._before + steps
        self._sink.update_finished(self._ledger.progress(), numbers)

    def _admit(self, crew: Crew, number: int, sessions: int) -> None:
        team, name = self._team, label_of(self._task.environment)
        if sessions == team.sessions:
            return
        if team.required:
            raise ConfigurationError(
                f"environment {name!r} has room for {sessions} of the {team.sessions} sessions of "
                f"actor {number}; {team.workers} actors need {team.workers * team.sessions}",
                hint="Lower n_workers or num_envs, or leave them out",
            )
        self._sink.log(f"actor {number} has {sessions} of {team.sessions} sessions: no more room")
        if sessions == 0:
            crew.excuse(number)
            self._without_room += 1
        if self._without_room == team.workers:
            raise SessionBusy(f"environment {name!r} has no room for a session")

    def _failure(self, number: int, failed: Failed) -> Error:
        for line in failed.traceback.rstrip().splitlines():
            self._sink.log(f"actor {number}: {line}")
        error = failed.error
        if error is None:
            error = TrainingJobFailed(
                self._task.job_id,
                f"actor {number} failed: {failed.text}",
                code="actor_failed",
                hint="The job's log has its traceback",
            )
        error.add_note(f"in actor {number}")
        # What is written into the job's record is where it failed, not where that was heard.
        cast("Any", error).remote_traceback = failed.traceback
        return error

    def _save(self, label: str) -> None:
        if not self._weights.is_finite():
            raise _NotFinite
        self._weights.fetch(self._mirror)
        progress = self._ledger.progress()
        critic = self._network.critic
        weights = policy_weights(self._network)
        moment = Moment(
            progress=progress,
            updates=self._weights.updates,
            weights={name: one.clone() for name, one in weights.items()},
            state={
                "critic": None if critic is None else dict(critic.state_dict()),
                "optimizer": self._weights.state(),
                "ledger": self._ledger.state(),
                "curriculum": self._tiers.state(),
            },
        )
        self._checkpoints.save(label, moment)

    def _role(self, number: int) -> Role:
        task, done = self._task, self._ledger.progress().episode
        attempt = np.random.SeedSequence((task.seed, number, done, 1)).generate_state(1)
        return Role(
            number=number,
            sessions=self._team.sessions,
            make_env=task.make_env,
            environment=label_of(task.environment),
            max_steps=task.config.max_steps,
            run_seed=task.seed,
            attempt_seed=int(attempt[0]),
            # No session has begun more than the whole job: no start seed comes twice.
            begun=done,
            # About how many each of its sessions has played.
            played=done // (self._team.workers * self._team.sessions),
            budget=task.config.num_episodes,
            done=done,
            settings=self._settings,
            weights=self._weights,
            counters=self._counters,
        )

    def _steps(self) -> int:
        return int(self._counters.steps.sum())

    def _load(self) -> Mapping[str, object]:
        """Read the weights to go on from, and the state beside them."""
        resume = self._task.resume
        if resume is None:
            return {}
        load_policy_weights(self._network, resume.policy)
        self._sink.log(f"resumed from {resume.policy.name}")
        if resume.state is None:
            return {}
        state = cast("Mapping[str, object]", read_state(resume.state))
        with self._fitting():
            critic: Any = self._network.critic
            critic.load_state_dict(state["critic"])
        return state

    def _restore(self, state: Mapping[str, object]) -> None:
        resume = self._task.resume
        if not state or resume is None:
            return
        with self._fitting():
            self._weights.restore(cast("Mapping[str, torch.Tensor]", state["optimizer"]))
            if resume.same_job:
                self._ledger.restore(cast("Mapping[str, object]", state["ledger"]))
                self._tiers.restore(state["curriculum"])
                best = cast("float | None", state["best"])
                self._checkpoints.go_on(self._ledger.progress(), self._weights.updates, best)

    @contextlib.contextmanager
    def _fitting(self) -> Any:  # a generator
        try:
            yield
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise ConfigurationError(
                f"the state beside the checkpoint does not fit: {error}",
                code="checkpoint_incompatible",
                hint="Resume from another checkpoint, or with the settings that it was made with",
            ) from error


class _NotFinite(Exception):
    """The loss or the weights are not finite; never leaves this room."""

"""One training by stable-baselines3, from its first step to its last checkpoint."""

# stable-baselines3 and gymnasium leave their type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from rlcore import ConfigurationError, Error, TrainingJobFailed
from stable_baselines3.common.logger import Logger

from rleaas.training.checkpoint_file import (
    Manifest,
    package_versions,
    read_weights,
    write_policy,
)
from rleaas.training.farewell import farewell
from rleaas.training.guarded import GuardedEnv
from rleaas.training.ledger import EpisodeLedger
from rleaas.training.sb3.callback import JobCallback
from rleaas.training.sb3.models import Diverged
from rleaas.training.sb3.sessions import SessionVecEnv
from rleaas.training.sb3.settings import Settings
from rleaas.training.sb3.state import (
    Moment,
    restore_learning,
    restore_moment,
    restore_optimizers,
    restore_random,
    restore_replay,
    restore_sessions,
)
from rleaas.training.sb3.updates import Updates
from rleaas.training.space_json import space_to_json
from rleaas.training.state_file import read_state, write_state
from rleaas.training.trainer import (
    Progress,
    Resume,
    StopReason,
    TrainingResults,
    TrainingSink,
    TrainingTask,
)

CHECKPOINT_INTERVAL = 100
"""Episodes between two checkpoints where the request does not say."""
PEAKS = 5
"""A new best may be saved so many times in an interval; its fifth is ten episodes at least."""
LEAST_EPISODES = 20
"""The running mean of so many is what the first peak rises above."""
QUICK_SECONDS = 0.05
SHORT_ROUNDS = 16
"""Where a rollout has no more rounds of all sessions, and takes no longer with its update, an order
to stop waits for its end."""


class Run:
    """One training. It is the watch of its model: checkpoints are saved between two updates."""

    def __init__(
        self,
        task: TrainingTask,
        sink: TrainingSink,
        settings: Settings,
        ledger: EpisodeLedger,
        sessions: list[GuardedEnv],
    ) -> None:
        self._task = task
        self._sink = sink
        self._settings = settings
        self._ledger = ledger
        self._sessions = sessions
        self._first = sessions[0]
        self._vector = SessionVecEnv(sessions)
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                self._model = settings.build(self._vector)
        except (AssertionError, ValueError, TypeError) as error:
            raise ConfigurationError(
                f"stable-baselines3 refuses these settings: {error}",
                hint="Correct the config; the message names the setting",
            ) from error
        for warning in said:
            sink.log(f"stable-baselines3: {warning.message}")
        self._model.watch = self
        self._model.set_logger(Logger(None, []))
        self._updates = Updates(self._tell)
        self._saved_at: tuple[int, int] | None = None
        self._spaced_from = 0
        interval = task.config.checkpoint_interval or CHECKPOINT_INTERVAL
        self._spacing = max(10, interval // PEAKS)
        self._best: float | None = None
        self._first_mean: float | None = None
        self._moment: Moment | None = None
        self._is_short = settings.rounds <= SHORT_ROUNDS
        self._rollout_began = -QUICK_SECONDS
        self._callback = JobCallback(ledger, sink, task, checkpoint_interval=interval)
        self._goes_on = task.resume is not None and self._restore(task.resume)
        sink.log(f"{task.config.algorithm} on {task.environment}: {settings.described()}")

    def train(self) -> TrainingResults:
        """Train until something ends it; see `Trainer.train`."""
        try:
            return self._train()
        except Diverged as error:
            raise TrainingJobFailed(
                self._task.job_id,
                f"the training diverged: {error} after {self._ledger.timestep} steps",
                code="training_diverged",
                hint="Lower learning_rate",
            ) from error

    def _train(self) -> TrainingResults:
        config = self._task.config
        callback = self._callback
        self._ledger.start()
        endless = config.num_episodes * config.max_steps + 2**31
        try:
            self._model.learn(
                endless,
                callback=callback,
                log_interval=cast("int", None),  # what is recorded is told by `after_update`
                reset_num_timesteps=not self._goes_on,
            )
        except KeyboardInterrupt:
            # A step that hangs never asks whether to stop; the weights are whole all the same.
            callback.stopped_by = StopReason.CANCELLED
            if self._moment is None and self._saved_at is not None:
                # What goes on later goes on from a checkpoint that has its moment.
                return self._results()
        except Error as error:
            if self._ledger.timestep:
                self._moment = self._moment or self._now()
                self._save("last")
            error.add_note(f"after {self._ledger.progress().episode} episodes of training")
            raise
        if callback.stopped_by is StopReason.CANCELLED:
            self._save("last")
        else:
            self._moment = self._moment or self._now()
            self._save("final")
        return self._results()

    def before_rollout(self) -> bool:
        """Save a checkpoint if one is due; whether to go on.

        A long rollout may be broken off: its moment is taken now, to go back to. The end of a short
        one is waited for, as its moment would cost as much as many of its steps.
        """
        now = time.perf_counter()
        self._callback.waits = self._is_short and now - self._rollout_began < QUICK_SECONDS
        self._rollout_began = now
        self._moment = None
        is_due = self._callback.is_due or self._is_peak()
        goes_on = not (self._callback.waits and self._callback.reached())
        if is_due or not goes_on or not self._callback.waits:
            self._moment = self._now()
        if is_due:
            self._callback.is_due = False
            self._save("checkpoint")
        return goes_on

    def before_update(self) -> None:
        """From here to the next rollout there is nothing that could be gone back to."""
        self._moment = None

    def after_update(self, numbers: Mapping[str, Any]) -> None:
        """Tell of the update."""
        self._ledger.rollouts += 1
        self._updates.add(numbers, self._model.num_timesteps)

    def remaining(self) -> float:
        """The share of the budget of episodes that is left."""
        return self._ledger.remaining

    def _now(self) -> Moment:
        return Moment.of(self._model, self._ledger, self._updates, self._sessions)

    def _results(self) -> TrainingResults:
        stopped = self._callback.stopped_by or StopReason.EPISODE_BUDGET
        progress = self._ledger.progress()
        self._sink.log(farewell(stopped, progress))
        return TrainingResults(
            stopped_by=stopped,
            progress=progress,
            best_reward=self._ledger.best_reward,
            target_reward=self._task.config.target_reward,
            seed=self._settings.seed,
            updates=self._ledger.rollouts,
        )

    def _tell(self, numbers: Mapping[str, float]) -> None:
        self._sink.update_finished(self._ledger.progress(), numbers)

    def _is_peak(self) -> bool:
        """Whether the running mean has risen to its best, and the last checkpoint is some time ago.

        That of the first episodes is no peak, but what the first one has to rise above.
        """
        episode, average = self._ledger.episode, self._ledger.avg_reward
        if average is None or episode < LEAST_EPISODES:
            return False
        if self._first_mean is None:
            self._first_mean = average
        if episode - self._spaced_from < self._spacing:
            return False
        highest = self._first_mean if self._best is None else self._best
        return average > highest

    def _save(self, label: str) -> None:
        """Write a checkpoint.

        What goes on later goes on from the moment before the rollout, whose episodes are then
        played again; so `last` is a checkpoint of that moment. Nothing goes on after `final`.

        Raises:
            Diverged: the weights are not finite; nothing is written.
        """
        moment = self._moment
        progress = self._ledger.progress()
        if label == "last" and moment is not None:
            progress = moment.progress
        at = (progress.episode, self._ledger.rollouts)
        if at == self._saved_at:
            return
        self._model.require_finite()
        average = progress.avg_reward
        if average is not None and (self._best is None or average > self._best):
            self._best = average
            label = "best" if label == "checkpoint" else label
        directory = self._task.directory
        path = directory / f"episode-{progress.episode}.zip"
        write_policy(
            path,
            self._manifest(progress),
            self._model.policy.state_dict(),
            library=self._model.save,
        )
        state: Path | None = None
        if moment is not None:
            state = directory / f"episode-{progress.episode}.state.zip"
            parts = moment.parts(self._model, self._settings.replay_bytes)
            write_state(state, {**parts, "best": self._best})
        self._saved_at = at
        self._spaced_from = progress.episode
        self._sink.checkpoint_saved(path, label, progress, state)

    def _manifest(self, progress: Progress) -> Manifest:
        identity = self._task.environment
        settings = self._settings
        metrics = {
            "avg_reward": progress.avg_reward,
            "success_rate": progress.success_rate,
            "best_reward": self._ledger.best_reward,
            "wall_seconds": progress.wall_seconds,
        }
        return Manifest(
            algorithm=settings.algorithm,
            job_id=self._task.job_id,
            environment_name=identity.name,
            environment_version=identity.version,
            contract_digest=identity.contract_digest,
            episode=progress.episode,
            timestep=progress.timestep,
            seed=settings.seed,
            family="sb3",
            policy=settings.policy,
            policy_kwargs=settings.network_arguments(),
            hyperparameters=settings.to_json(),
            metrics={name: one for name, one in metrics.items() if one is not None},
            seeds={"run": settings.seed},
            observation_space=space_to_json(self._first.given_observations),
            action_space=space_to_json(self._first.given_actions),
            policy_observation_space=space_to_json(self._model.observation_space),
            packages=package_versions(),
        )

    def _restore(self, resume: Resume) -> bool:
        """Take over what a checkpoint holds; whether the job goes on from its own moment."""
        name = resume.policy.name
        try:
            self._model.policy.load_state_dict(cast("Any", read_weights(resume.policy)))
            parts = None if resume.state is None else read_state(resume.state)
            if parts is None:
                restore_optimizers(self._model, resume.policy)
                self._sink.log(f"started from the weights of {name}; there is no state beside it")
                return False
            same = restore_learning(self._model, parts)
            if not resume.same_job:
                self._start_from(name, parts)
                return False
            if not (restore_replay(self._model, parts) and same):
                self._sink.log("the replay buffer was not kept whole: the curve will differ")
            restore_moment(self._model, self._ledger, self._updates, parts)
            self._best = parts["best"]
            self._spaced_from = self._ledger.progress().episode
            self._take_up_sessions(parts)
            restore_random(self._model, parts)
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            if isinstance(error, Error):
                raise
            raise ConfigurationError(
                f"checkpoint {name!r} does not fit the policy: {error}",
                code="checkpoint_incompatible",
                hint="Resume with the settings that it was trained with",
            ) from error
        self._sink.log(f"resumed from {name} at episode {self._ledger.progress().episode}")
        return True

    def _start_from(self, name: str, parts: Mapping[str, Any]) -> None:
        told = "its optimiser"
        try:
            restore_replay(self._model, parts)
            told += " and what it remembered" if self._settings.replays else ""
        except ValueError as error:
            self._sink.log(f"what {name} remembered is left out: {error}")
        self._sink.log(f"started from {name} with {told}")

    def _take_up_sessions(self, parts: Mapping[str, Any]) -> None:
        observations, fresh = restore_sessions(self._sessions, parts)
        self._vector.go_on_from(observations)
        model = cast("Any", self._model)
        model._last_obs = model.env.reset()
        if fresh:
            self._sink.log(
                f"the environment is not deterministic: {len(fresh)} unfinished episodes ended up "
                "elsewhere when they were played again; new ones are begun instead"
            )
            if model._last_episode_starts is not None:
                model._last_episode_starts[fresh] = True

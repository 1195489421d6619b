"""PPO by stable-baselines3, with a budget of episodes instead of steps."""

# stable-baselines3 and gymnasium leave their type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false

from __future__ import annotations

import contextlib
import secrets
import time
import warnings
from collections.abc import Callable, Generator
from typing import Any, cast

import torch
from rlcore import ConfigurationError, Error, TrainingJobFailed
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import Logger

from rleaas.training.checkpoint_file import (
    Manifest,
    package_versions,
    read_manifest,
    read_tensors,
    write_checkpoint,
)
from rleaas.training.config import (
    PPO_CHECKPOINT_INTERVAL,
    PPO_ENVS,
    TrainingConfig,
)
from rleaas.training.learner_spaces import check_learnable
from rleaas.training.ledger import AVERAGE_OVER, EpisodeLedger
from rleaas.training.ppo_callback import DiagnosticsWriter, JobCallback
from rleaas.training.ppo_model import Diverged, Settings
from rleaas.training.sessions import GuardedEnv, SessionVecEnv, label_of, open_sessions
from rleaas.training.space_json import space_to_json
from rleaas.training.trainer import (
    Progress,
    StopReason,
    TrainingResults,
    TrainingSink,
    TrainingTask,
)


class PPOTrainer:
    """Trains by PPO on the CPU, one torch thread."""

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
        config = task.config
        seed = config.effective_seed
        if seed is None:
            seed = secrets.randbelow(2**31)
            sink.log(f"no seed was given; using seed {seed}")
        resumed = None if task.resume_from is None else read_manifest(task.resume_from)
        with _sessions(task, seed) as sessions:
            first = sessions[0]
            check_learnable(first.given_observations, first.given_actions, config.algorithm)
            if resumed is not None:
                _check_resumable(resumed, task, first)
            settings = Settings.settle(config, sessions, seed, resumed)
            ledger = self._ledger(config, first)
            return _Run(task, sink, settings, ledger, sessions).train()

    def _ledger(self, config: TrainingConfig, first: GuardedEnv) -> EpisodeLedger:
        threshold = config.target_reward
        if threshold is None:
            threshold = first.reward_threshold
        return EpisodeLedger(
            config.num_episodes,
            clock=self._clock,
            success_threshold=threshold,
            target_reward=config.target_reward,
            average_over=config.average_over or AVERAGE_OVER,
        )


class _Run:
    """One training from its first step to its last checkpoint."""

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
        self._first = sessions[0]
        vector = SessionVecEnv([_giver(session) for session in sessions])
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                self._model = settings.build(vector)
        except (AssertionError, ValueError, TypeError) as error:
            raise ConfigurationError(
                f"stable-baselines3 refuses these settings: {error}",
                hint="Correct the config; the message names the setting",
            ) from error
        for warning in said:
            sink.log(f"stable-baselines3: {warning.message}")
        self._model.budget_left = lambda: ledger.remaining
        self._model.set_logger(Logger(None, [DiagnosticsWriter(ledger, sink)]))
        if task.resume_from is not None:
            _restore(self._model, task)
            sink.log(f"resumed from {task.resume_from.name}")
        self._saved_at: tuple[int, int] | None = None
        self._best: float | None = None
        sink.log(
            f"{task.config.algorithm} with {settings.policy}{list(settings.net_arch)} on "
            f"{task.environment}: {settings.num_envs} sessions, {settings.n_steps} steps each "
            f"per update, batches of {settings.batch_size}, seed {settings.seed}"
        )

    def train(self) -> TrainingResults:
        config = self._task.config
        callback = JobCallback(
            self._ledger,
            self._sink,
            self._task,
            checkpoint_interval=config.checkpoint_interval or PPO_CHECKPOINT_INTERVAL,
            save=self._save,
        )
        endless = config.num_episodes * config.max_steps + self._model.n_steps
        try:
            self._model.learn(endless, callback=callback, log_interval=1)
        except KeyboardInterrupt:
            # A step that hangs never asks whether to stop; the weights are whole all the same.
            callback.stopped_by = StopReason.CANCELLED
        except Diverged as error:
            raise TrainingJobFailed(
                self._task.job_id,
                "the training diverged: the policy's weights are not finite after "
                f"{self._ledger.timestep} steps",
                code="training_diverged",
                hint="Lower learning_rate",
            ) from error
        except Error as error:
            if self._ledger.timestep:
                self._save("last", self._ledger.progress())
            error.add_note(f"after {self._ledger.progress().episode} episodes of training")
            raise
        stopped = callback.stopped_by or StopReason.EPISODE_BUDGET
        progress = self._ledger.progress()
        self._save("last" if stopped is StopReason.CANCELLED else "final", progress)
        self._sink.log(_farewell(stopped, progress))
        return TrainingResults(
            stopped_by=stopped,
            progress=progress,
            best_reward=self._ledger.best_reward,
            target_reward=config.target_reward,
            seed=self._settings.seed,
        )

    def _save(self, label: str, progress: Progress) -> None:
        at = (progress.episode, self._ledger.rollouts)
        if at == self._saved_at:
            return
        average = progress.avg_reward
        if average is not None and (self._best is None or average > self._best):
            self._best = average
            label = "best" if label == "checkpoint" else label
        path = self._task.directory / f"episode-{progress.episode}.zip"
        # An earlier file of the same episode may still be uploading under another digest.
        write_checkpoint(path, self._model.save, self._manifest(progress))
        self._saved_at = at
        self._sink.checkpoint_saved(path, label, progress)

    def _manifest(self, progress: Progress) -> Manifest:
        identity = self._task.environment
        return Manifest(
            algorithm=self._task.config.algorithm,
            job_id=self._task.job_id,
            environment_name=identity.name,
            environment_version=identity.version,
            contract_digest=identity.contract_digest,
            episode=progress.episode,
            timestep=progress.timestep,
            seed=self._settings.seed,
            policy=self._settings.policy,
            policy_kwargs={"net_arch": list(self._settings.net_arch)},
            observation_space=space_to_json(self._first.given_observations),
            action_space=space_to_json(self._first.given_actions),
            policy_observation_space=space_to_json(self._model.observation_space),
            packages=package_versions(),
        )


@contextlib.contextmanager
def _sessions(task: TrainingTask, seed: int) -> Generator[list[GuardedEnv]]:
    asked = task.config.num_envs
    # More sessions than episodes would step for nothing.
    count = min(asked or PPO_ENVS, task.config.num_episodes)
    sessions = open_sessions(
        task.make_env,
        count,
        required=asked is not None,
        name=label_of(task.environment),
        max_steps=task.config.max_steps,
        seed=seed,
    )
    with contextlib.ExitStack() as stack:
        for session in sessions:
            stack.callback(session.close)
        yield sessions


def _giver(session: GuardedEnv) -> Callable[[], GuardedEnv]:
    return lambda: session


def _check_resumable(manifest: Manifest, task: TrainingTask, first: GuardedEnv) -> None:
    name = task.resume_from.name if task.resume_from else ""
    if manifest.algorithm != task.config.algorithm:
        raise ConfigurationError(
            f"checkpoint {name!r} was trained by {manifest.algorithm}, not {task.config.algorithm}",
            hint="Resume with the same algorithm",
        )
    for what, saved, now in (
        ("observations", manifest.observation_space, first.given_observations),
        ("actions", manifest.action_space, first.given_actions),
    ):
        if saved != space_to_json(now):
            raise ConfigurationError(
                f"checkpoint {name!r} has {what} of {dict(saved)}, {task.environment} has {now}",
                code="checkpoint_incompatible",
                hint=f"It was trained on {manifest.environment}",
            )


def _restore(model: BaseAlgorithm, task: TrainingTask) -> None:
    path = task.resume_from
    if path is None:
        return
    policy = cast("Any", model.policy)
    weights = read_tensors(path, "policy.pth")
    optimizer = read_tensors(path, "policy.optimizer.pth")
    try:
        policy.load_state_dict(weights)
        policy.optimizer.load_state_dict(optimizer)
    except (RuntimeError, ValueError, KeyError) as error:
        raise ConfigurationError(
            f"checkpoint {path.name!r} does not fit the policy: {error}",
            code="checkpoint_incompatible",
            hint="Resume with the policy and net_arch that it was trained with",
        ) from error


def _farewell(stopped: StopReason, progress: Progress) -> str:
    mean = "no episode finished"
    if progress.avg_reward is not None:
        mean = f"mean return of the last episodes {progress.avg_reward:.1f}"
    return (
        f"stopped by {stopped} after {progress.episode} episodes, {progress.timestep} steps, "
        f"{progress.wall_seconds:.1f} s: {mean}"
    )

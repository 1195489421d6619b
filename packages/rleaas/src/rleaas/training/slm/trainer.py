"""Trains a small language model on a text environment, by TRL's GRPO."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, cast

import torch
from rlcore import ConfigurationError, Error, TrainingJobFailed

from rleaas.training.algorithms import require_fit
from rleaas.training.checkpoint_file import (
    Manifest,
    package_versions,
    read_manifest,
    write_policy,
)
from rleaas.training.guarded import GuardedEnv, episode_seed, label_of, open_sessions
from rleaas.training.ledger import EpisodeLedger, ledger_of
from rleaas.training.limits import Limits
from rleaas.training.slm.beginning import begin
from rleaas.training.slm.checkpoint import layout_files, network_weights
from rleaas.training.slm.conversation import Conversation, manner_of
from rleaas.training.slm.model import Speaker
from rleaas.training.slm.rollouts import Rollouts
from rleaas.training.slm.settings import CHECKPOINT_INTERVAL, SESSIONS, Settings
from rleaas.training.slm.speech import Diverged, Interrupted, Speech
from rleaas.training.slm.updates import Updates
from rleaas.training.space_json import space_to_json
from rleaas.training.state_file import read_state, write_state
from rleaas.training.trainer import (
    Progress,
    StopReason,
    TrainingResults,
    TrainingSink,
    TrainingTask,
)


class SLMTrainer:
    """Trains a causal language model on the CPU, one torch thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock

    def train(self, task: TrainingTask, sink: TrainingSink) -> TrainingResults:
        """Train until a budget, the target or a stop request ends it; see `Trainer.train`.

        Raises:
            ConfigurationError: spaces, settings, the model or the checkpoint to resume from do
                not fit.
            TrainingJobFailed: a quota is used up or the training diverged.
            rlcore.RLMeshException: the environment failed or was lost.
        """
        torch.set_num_threads(1)
        settings = Settings.settle(task.config)
        resumed = None if task.resume is None else read_manifest(task.resume.policy)
        with _sessions(task, settings) as sessions:
            first = sessions[0]
            observations = space_to_json(first.given_observations)
            actions = space_to_json(first.given_actions)
            require_fit(task.config.algorithm, observations, actions)
            if resumed is not None:
                _check_resumable(resumed, task, observations, actions)
            threshold = first.reward_threshold
            ledger = ledger_of(task.config, self._clock, reward_threshold=threshold)
            speaker = begin(task, settings, sessions, sink)
            return _Run(task, sink, settings, ledger, sessions, speaker, self._clock).train()


class _Enough(Exception):
    """The training is over, in the middle of an update's episodes."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(str(reason))
        self.reason = reason


class _Run:
    """One training from its first episode to its last checkpoint."""

    def __init__(
        self,
        task: TrainingTask,
        sink: TrainingSink,
        settings: Settings,
        ledger: EpisodeLedger,
        sessions: list[GuardedEnv],
        speaker: Speaker,
        clock: Callable[[], float],
    ) -> None:
        self._task = task
        self._sink = sink
        self._settings = settings
        self._ledger = ledger
        self._first = sessions[0]
        self._speaker = speaker
        self._clock = clock
        self._limits = Limits(task, ledger, sink)
        # What a worker opens sessions by says what they are made of; another factory need not.
        self._curriculum = getattr(getattr(task.make_env, "parts", None), "curriculum", None)
        self._speech = Speech(
            longest=settings.max_completion_length,
            ends=speaker.ends,
            pad=speaker.pad,
            temperature=settings.temperature,
            top_p=settings.top_p,
        )
        self._rollouts = Rollouts(
            sessions,
            speaker,
            manner_of(speaker.tokenizer),
            stop=sink.stop_requested,
            ended=self._book,
            stepped=self._count,
        )
        self._best: float | None = None
        self._saved_at: int | None = None
        state = self._restored_state()
        done = cast("int", state["updates"]) if state is not None else 0
        self._updates = Updates(
            speaker,
            settings,
            task.directory,
            seed=task.seed,
            done=done,
            total=-(-task.config.num_episodes // settings.episodes),
            play=self._play,
            told=self._told,
        )
        self._restore(state)
        # What a checkpoint is of: the last whole update, whatever was played since.
        self._settled: tuple[Progress, dict[str, object]] = ledger.progress(), self._counted()
        self._since: tuple[float, int] = clock(), ledger.timestep
        sink.log(
            f"SLM: {_described(speaker)} on {task.environment}: {len(sessions)} sessions, "
            f"{settings.groups_per_update} groups of {settings.num_generations} episodes per "
            f"update, seed {task.seed}"
        )

    def train(self) -> TrainingResults:
        self._ledger.start()
        stopped = StopReason.EPISODE_BUDGET
        try:
            if not self._ledger.spent:
                self._updates.run()
        except KeyboardInterrupt:
            # A step that hangs never asks whether to stop; the weights are whole all the same.
            stopped = StopReason.CANCELLED
        except _Enough as enough:
            stopped = enough.reason
        except Interrupted:
            stopped = StopReason.CANCELLED
        except Diverged as error:
            raise TrainingJobFailed(
                self._task.job_id,
                f"the training diverged: {error} after {self._updates.made} updates, "
                f"{self._ledger.timestep} steps",
                code="training_diverged",
                hint="Lower learning_rate",
            ) from error
        except Error as error:
            if self._updates.made:
                self._save("last")
            error.add_note(f"after {self._ledger.progress().episode} episodes of training")
            raise
        self._save("last" if stopped is StopReason.CANCELLED else "final")
        progress = self._ledger.progress()
        self._sink.log(
            f"stopped by {stopped} after {progress.episode} episodes, {self._updates.made} "
            f"updates, {progress.wall_seconds:.1f} s"
        )
        return TrainingResults(
            stopped_by=stopped,
            progress=progress,
            best_reward=self._ledger.best_reward,
            target_reward=self._task.config.target_reward,
            seed=self._task.seed,
            updates=self._ledger.rollouts,
        )

    def _play(self, update: int) -> tuple[Sequence[Conversation | None], Sequence[float | None]]:
        rows = self._settings.episodes
        left = self._task.config.num_episodes - self._ledger.progress().episode
        first = update * self._settings.groups_per_update
        seeds = [
            episode_seed(self._task.seed, 0, first + row // self._settings.num_generations)
            for row in range(min(rows, left))
        ]
        played = self._rollouts.play(seeds, self._speech)
        unplayed = [None] * (rows - len(seeds))
        return [*played.conversations, *unplayed], [*played.returns, *unplayed]

    def _book(self, reward: float, steps: int, info: Mapping[str, Any]) -> None:
        self._sink.episode_finished(self._ledger.add(reward, steps, info))
        if self._ledger.target_reached:
            raise _Enough(StopReason.TARGET_REWARD)

    def _count(self, steps: int) -> None:
        self._ledger.timestep += steps
        reason = self._limits.reached()
        if reason is not None:
            raise _Enough(reason)

    def _told(self, numbers: Mapping[str, float]) -> bool:
        began, steps = self._since
        now, timestep = self._clock(), self._ledger.timestep
        self._since = now, timestep
        rate = (timestep - steps) / max(now - began, 1e-9)
        before = self._settled[0].episode
        self._ledger.rollouts += 1
        progress = self._ledger.progress()
        self._settled = progress, self._counted()
        self._sink.update_finished(progress, {**numbers, "steps_per_second": rate})
        interval = self._task.config.checkpoint_interval or CHECKPOINT_INTERVAL
        if progress.episode // interval > before // interval and not self._ledger.spent:
            self._save("checkpoint")
        return self._ledger.spent

    def _save(self, label: str) -> None:
        progress, counted = self._settled
        if self._saved_at == progress.episode:
            return
        average = progress.avg_reward
        if average is not None and (self._best is None or average > self._best):
            self._best = average
            label = "best" if label == "checkpoint" else label
        path = self._task.directory / f"episode-{progress.episode}.zip"
        state = path.with_suffix(".state.zip")
        write_policy(
            path,
            self._manifest(progress),
            network_weights(self._speaker),
            files=layout_files(self._speaker),
        )
        write_state(
            state,
            {
                "updates": self._updates.made,
                "best": self._best,
                "optimizer": self._updates.optimizer.state_dict(),
                "scheduler": self._updates.scheduler.state_dict(),
                **counted,
            },
        )
        self._saved_at = progress.episode
        self._sink.checkpoint_saved(path, label, progress, state)

    def _counted(self) -> dict[str, object]:
        """What the episodes so far amount to, for a restart."""
        counted: dict[str, object] = {"ledger": self._ledger.state()}
        if self._curriculum is not None:
            counted["curriculum"] = self._curriculum.get_state()
        return counted

    def _restored_state(self) -> dict[str, Any] | None:
        resume = self._task.resume
        if resume is None or not resume.same_job or resume.state is None:
            return None
        return read_state(resume.state)

    def _restore(self, state: Mapping[str, Any] | None) -> None:
        if state is None:
            return
        try:
            self._updates.optimizer.load_state_dict(state["optimizer"])
            self._updates.scheduler.load_state_dict(state["scheduler"])
            self._ledger.restore(state["ledger"])
            self._best = state["best"]
            if self._curriculum is not None:
                self._curriculum.set_state(state["curriculum"])
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(
                f"the training state does not fit this job: {error}",
                code="checkpoint_incompatible",
                hint="Resume with the request that it was saved under",
            ) from error
        self._saved_at = self._ledger.progress().episode
        self._sink.log(f"goes on after update {self._updates.made}")

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
            seed=self._task.seed,
            observation_space=space_to_json(self._first.given_observations),
            action_space=space_to_json(self._first.given_actions),
            packages=package_versions(),
            family="slm",
            network={"max_completion_length": self._settings.max_completion_length},
            hyperparameters=self._settings.to_json(),
            metrics={
                name: value
                for name in ("avg_reward", "success_rate")
                if (value := getattr(progress, name)) is not None
            },
            seeds={"run": self._task.seed},
        )


@contextlib.contextmanager
def _sessions(task: TrainingTask, settings: Settings) -> Generator[list[GuardedEnv]]:
    asked = task.config.num_envs
    sessions = open_sessions(
        task.make_env,
        min(asked or SESSIONS, settings.episodes, task.config.num_episodes),
        required=asked is not None,
        name=label_of(task.environment),
        max_steps=task.config.max_steps,
        seed=task.seed,
    )
    with contextlib.ExitStack() as stack:
        for session in sessions:
            stack.callback(session.close)
        yield sessions


def _check_resumable(
    manifest: Manifest,
    task: TrainingTask,
    observations: Mapping[str, object],
    actions: Mapping[str, object],
) -> None:
    name = task.resume.policy.name if task.resume else ""
    if manifest.algorithm != task.config.algorithm:
        raise ConfigurationError(
            f"checkpoint {name!r} was trained by {manifest.algorithm}, not {task.config.algorithm}",
            hint="Resume with the same algorithm",
        )
    for what, saved, now in (
        ("observations", manifest.observation_space, observations),
        ("actions", manifest.action_space, actions),
    ):
        if saved != now:
            raise ConfigurationError(
                f"checkpoint {name!r} has {what} of {dict(saved)}, {task.environment} has {now}",
                code="checkpoint_incompatible",
                hint=f"It was trained on {manifest.environment}",
            )


def _described(speaker: Speaker) -> str:
    parameters = list(speaker.model.parameters())
    every = sum(one.numel() for one in parameters)
    trained = sum(one.numel() for one in parameters if one.requires_grad)
    return f"{every} weights, of which {trained} are trained, {len(speaker.tokenizer)} tokens"

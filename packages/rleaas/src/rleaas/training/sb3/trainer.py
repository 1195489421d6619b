"""PPO, A2C, DQN, SAC, TD3 and DDPG by stable-baselines3, with a budget of episodes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator
from typing import cast

import torch
from rlcore import ConfigurationError

from rleaas.training.algorithms import require_fit
from rleaas.training.checkpoint_file import Manifest, read_manifest
from rleaas.training.guarded import GuardedEnv, label_of, open_sessions
from rleaas.training.ledger import ledger_of
from rleaas.training.sb3.defaults import DEFAULTS
from rleaas.training.sb3.run import Run
from rleaas.training.sb3.settings import Settings
from rleaas.training.space_json import space_to_json
from rleaas.training.trainer import TrainingResults, TrainingSink, TrainingTask


class SB3Trainer:
    """Trains on the CPU, one torch thread."""

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
        resumed = None if task.resume is None else read_manifest(task.resume.policy)
        with _sessions(task, resumed) as sessions:
            first = sessions[0]
            require_fit(
                task.config.algorithm,
                space_to_json(first.given_observations),
                space_to_json(first.given_actions),
            )
            if resumed is not None:
                _check_resumable(resumed, task, first)
            settings = Settings.settle(task.config, sessions, task.seed, resumed)
            threshold = first.reward_threshold
            ledger = ledger_of(task.config, self._clock, reward_threshold=threshold)
            return Run(task, sink, settings, ledger, sessions).train()


@contextlib.contextmanager
def _sessions(task: TrainingTask, resumed: Manifest | None) -> Generator[list[GuardedEnv]]:
    config = task.config
    asked = config.num_envs
    if task.resume is not None and task.resume.same_job and resumed is not None:
        # As many as there were, even if there is room for more by now.
        asked = cast("int | None", resumed.hyperparameters.get("num_envs", asked))
    # More sessions than episodes would step for nothing.
    count = min(asked or DEFAULTS[config.algorithm].sessions, config.num_episodes)
    sessions = open_sessions(
        task.make_env,
        count,
        required=asked is not None,
        name=label_of(task.environment),
        max_steps=config.max_steps,
        seed=task.seed,
    )
    with contextlib.ExitStack() as stack:
        for session in sessions:
            stack.callback(session.close)
        yield sessions


def _check_resumable(manifest: Manifest, task: TrainingTask, first: GuardedEnv) -> None:
    name = task.resume.policy.name if task.resume else ""
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

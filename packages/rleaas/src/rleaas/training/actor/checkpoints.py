"""The checkpoints of our own trainers: what is in them, when they are saved, what may go on."""

# torch leaves some of its types open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from rlcore import ConfigurationError
from torch import Tensor

from rleaas.training.actor.network import ActorNetwork
from rleaas.training.actor.policy import net_arch_of
from rleaas.training.checkpoint_file import (
    Manifest,
    package_versions,
    read_manifest,
    write_policy,
)
from rleaas.training.space_json import space_to_json
from rleaas.training.state_file import write_state
from rleaas.training.trainer import Progress, TrainingSink, TrainingTask

if TYPE_CHECKING:
    import gymnasium

CHECKPOINT_INTERVAL = 100
"""Episodes between two checkpoints when the request does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A training between two updates: all that a checkpoint is written from.

    Attributes:
        progress: where the training stood.
        updates: how many updates there had been.
        weights: of the policy, in tensors of their own.
        state: what an exact resume needs beside them.
    """

    progress: Progress
    updates: int
    weights: Mapping[str, Tensor]
    state: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What every checkpoint of one training says about it."""

    family: str
    hyperparameters: Mapping[str, object]
    net_arch: tuple[int, ...]
    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]


class Checkpoints:
    """Writes the checkpoints of one training and remembers which was the best."""

    def __init__(self, task: TrainingTask, sink: TrainingSink, card: Card) -> None:
        self._task = task
        self._sink = sink
        self._card = card
        self._interval = task.config.checkpoint_interval or CHECKPOINT_INTERVAL
        self._saved: tuple[int, int] | None = None
        self._reached = 0
        self.best: float | None = None

    def go_on(self, moment: Progress, updates: int, best: float | None) -> None:
        """A restarted job goes on: what it resumed from is saved already."""
        self._saved = moment.episode, updates
        self._reached = moment.episode // self._interval
        self.best = best

    def is_due(self, episode: int) -> bool:
        """Whether the interval was passed since the last time that this was so."""
        reached = episode // self._interval
        due, self._reached = reached > self._reached, reached
        return due

    def save(self, label: str, moment: Moment, progress: Progress | None = None) -> None:
        """Write a checkpoint unless this moment has one; `progress` is what it is to say."""
        progress = progress or moment.progress
        if self._saved == (progress.episode, moment.updates):
            return
        average = progress.avg_reward
        if average is not None and (self.best is None or average > self.best):
            self.best = average
            label = "best" if label == "checkpoint" else label
        path = self._task.directory / f"episode-{progress.episode}.zip"
        state = self._task.directory / f"episode-{progress.episode}.state.zip"
        write_policy(path, self._manifest(progress), moment.weights)
        write_state(state, {**moment.state, "best": self.best})
        self._saved = progress.episode, moment.updates
        self._sink.checkpoint_saved(path, label, progress, state)

    def _manifest(self, progress: Progress) -> Manifest:
        task, card = self._task, self._card
        figures = {
            "avg_reward": progress.avg_reward,
            "success_rate": progress.success_rate,
            "composite_verifier_score": progress.composite_verifier_score,
        }
        return Manifest(
            algorithm=task.config.algorithm,
            family=card.family,
            job_id=task.job_id,
            environment_name=task.environment.name,
            environment_version=task.environment.version,
            contract_digest=task.environment.contract_digest,
            episode=progress.episode,
            timestep=progress.timestep,
            seed=task.seed,
            seeds={"run": task.seed},
            network={"net_arch": list(card.net_arch)},
            hyperparameters=card.hyperparameters,
            metrics={name: value for name, value in figures.items() if value is not None},
            observation_space=space_to_json(card.observation_space),
            action_space=space_to_json(card.action_space),
            packages=package_versions(),
        )


def resumed_from(
    task: TrainingTask,
    observation_space: gymnasium.Space[Any],
    action_space: gymnasium.Space[Any],
) -> Manifest | None:
    """What the checkpoint to go on from says; None where the training starts afresh.

    Raises:
        ConfigurationError: it is of another algorithm, of other spaces, or of another network than
            the request's.
    """
    if task.resume is None:
        return None
    name = task.resume.policy.name
    manifest = read_manifest(task.resume.policy)
    if manifest.algorithm != task.config.algorithm:
        raise ConfigurationError(
            f"checkpoint {name!r} was trained by {manifest.algorithm}, not {task.config.algorithm}",
            hint="Resume with the same algorithm",
        )
    for what, saved, now in (
        ("observations", manifest.observation_space, observation_space),
        ("actions", manifest.action_space, action_space),
    ):
        if saved != space_to_json(now):
            raise ConfigurationError(
                f"checkpoint {name!r} has {what} of {dict(saved)}, {task.environment} has {now}",
                code="checkpoint_incompatible",
                hint=f"It was trained on {manifest.environment}",
            )
    given, saved_arch = task.config.widths(()), net_arch_of(manifest)
    if given and given != saved_arch:
        raise ConfigurationError(
            f"net_arch {list(given)} is not the checkpoint's {list(saved_arch)}",
            hint="Leave net_arch out when resuming",
        )
    return manifest


def build_network(
    observation_space: gymnasium.Space[Any],
    action_space: gymnasium.Space[Any],
    net_arch: tuple[int, ...],
    *,
    critic: bool,
    seed: int,
) -> ActorNetwork:
    """A fresh network whose first weights are a function of `seed`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ActorNetwork(observation_space, action_space, net_arch, critic=critic)

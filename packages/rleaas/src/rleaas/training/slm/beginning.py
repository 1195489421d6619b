"""The model that a training begins with: fresh, loaded, or out of a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from rlcore import ConfigurationError

from rleaas.training.checkpoint_file import read_weights
from rleaas.training.guarded import GuardedEnv, episode_seed
from rleaas.training.slm.checkpoint import network_weights, read_speaker, restore_adapter
from rleaas.training.slm.language import LANGUAGE, Language, read_language
from rleaas.training.slm.model import (
    Speaker,
    adapted,
    freeze_grammar,
    load_speaker,
    make_speaker,
    still,
)
from rleaas.training.slm.settings import Settings
from rleaas.training.trainer import TrainingSink, TrainingTask

SAMPLED_TEXTS = 64
"""Observations that a tokenizer is learned from where the environment gives no examples."""


def begin(
    task: TrainingTask, settings: Settings, sessions: Sequence[GuardedEnv], sink: TrainingSink
) -> Speaker:
    """The model to train, with an adapter where one is asked for.

    Raises:
        ConfigurationError: the model, the language or the checkpoint cannot be used.
    """
    resume = task.resume
    continued = resume is not None and (not resume.same_job or settings.lora is None)
    if resume is not None and continued:
        speaker = read_speaker(resume.policy, task.directory / "resumed")
        sink.log(f"goes on from the weights of {resume.policy.name}")
    elif settings.model is not None:
        speaker = load_speaker(settings.model)
    else:
        language = _language(settings, sessions[0])
        texts = language.texts or _texts(task.seed, sessions[0])
        speaker = make_speaker(
            texts, language, seed=task.seed, layers=settings.layers, width=settings.width
        )
    still(speaker.model)
    freeze_grammar(speaker.model)
    if settings.lora is not None:
        speaker.model = adapted(speaker.model, settings.lora, seed=task.seed)
        if resume is not None and not continued:
            restore_adapter(speaker.model, resume.policy)
            _require_same(speaker, resume.policy)
    return speaker


def _require_same(speaker: Speaker, path: Path) -> None:
    """Refuse an adapter over another base than it was trained on."""
    saved = read_weights(path)
    now = network_weights(speaker)
    for name, tensor in now.items():
        if name not in saved or not torch.allclose(saved[name], tensor, atol=1e-5):
            raise ConfigurationError(
                f"the adapter of {path.name!r} was trained on another model: {name!r} differs",
                code="checkpoint_incompatible",
                hint="Put the model back that the training began with",
            )


def _language(settings: Settings, session: GuardedEnv) -> Language:
    if settings.language is not None:
        return settings.language
    declared = session.metadata.get(LANGUAGE)
    if declared is None:
        return Language()
    return read_language(declared, f"the environment's metadata[{LANGUAGE!r}]")


def _texts(seed: int, session: GuardedEnv) -> list[str]:
    seeds = [episode_seed(seed, 0, episode) for episode in range(SAMPLED_TEXTS)]
    return [str(session.reset(seed=one)[0]) for one in seeds]

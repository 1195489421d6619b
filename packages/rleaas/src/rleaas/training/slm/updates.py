"""TRL's GRPO over episodes that are played here: what is set, and what is heard of it."""

# trl, transformers, datasets and torch leave most of their types open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportMissingTypeStubs=false

from __future__ import annotations

import contextlib
import logging
import math
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rleaas.training.slm.conversation import Conversation
from rleaas.training.slm.libraries import offline
from rleaas.training.slm.model import Speaker
from rleaas.training.slm.settings import Settings
from rleaas.training.slm.speech import Diverged

with offline():
    Dataset: Any = import_module("datasets").Dataset  # it has no types
    from transformers import PrinterCallback, TrainerCallback
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

# TRL's names of what is told after each update, and ours.
_TOLD = {
    "loss": "loss",
    "kl": "kl",
    "entropy": "entropy",
    "grad_norm": "grad_norm",
    "learning_rate": "learning_rate",
    "reward": "reward_mean",
    "reward_std": "reward_std",
    "frac_reward_zero_std": "groups_without_spread",
    "completions/mean_length": "completion_length",
    "completions/max_length": "completion_length_max",
    "completions/clipped_ratio": "completions_cut",
    "clip_ratio/region_mean": "clip_ratio",
}


class Updates:
    """One GRPO training: plays, learns, and tells after every update.

    Args:
        speaker: the model, which is trained in place.
        settings: how.
        directory: the only place that TRL may write to.
        seed: of the run; what an update draws is a function of it and the update's number.
        done: updates that were made before.
        total: updates there are to be, with those.
        play: plays the episodes of an update, given its number: conversations and returns by row,
            None for a row that was not played.
        told: what an update's numbers go to; its answer is whether to stop.
    """

    def __init__(
        self,
        speaker: Speaker,
        settings: Settings,
        directory: Path,
        *,
        seed: int,
        done: int,
        total: int,
        play: Callable[[int], tuple[Sequence[Conversation | None], Sequence[float | None]]],
        told: Callable[[Mapping[str, float]], bool],
    ) -> None:
        self._speaker = speaker
        self._settings = settings
        self._seed = seed
        self._play = play
        self._told = told
        self.made = done
        weights = [weight for weight in speaker.model.parameters() if weight.requires_grad]
        self.optimizer = torch.optim.AdamW(
            weights, lr=settings.learning_rate, weight_decay=0.0, foreach=False
        )
        steps = total * settings.n_epochs
        linear = settings.learning_rate_schedule == "linear"
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: max(0.0, 1.0 - step / steps) if linear else 1.0
        )
        left = max(1, total - done)
        with offline(), warnings.catch_warnings(), _quiet():
            # What TRL and transformers say of each other's settings is no news to a user.
            warnings.simplefilter("ignore")
            self._trainer: Any = GRPOTrainer(
                model=self._named(directory),
                reward_funcs=_returned,
                args=self._arguments(directory, left),
                # TRL wants prompts; what an episode starts with is the environment's to say.
                train_dataset=Dataset.from_dict({"prompt": [""] * settings.groups_per_update}),
                processing_class=speaker.tokenizer,
                callbacks=[_Listener(self)],
                optimizers=(self.optimizer, self.scheduler),
                rollout_func=self._rollout,
            )
        self._trainer.remove_callback(PrinterCallback)

    def run(self) -> None:
        """Make the updates that are left.

        Raises:
            Diverged: numbers are not finite any more.
        """
        with offline(), warnings.catch_warnings(), _quiet():
            warnings.simplefilter("ignore")
            self._trainer.train()

    def finished(self, numbers: Mapping[str, float]) -> bool:
        """An update was made; whether to stop."""
        self.made += 1
        return self._told(numbers)

    @property
    def passes(self) -> int:
        """Optimiser steps of one update."""
        return self._settings.n_epochs

    def require_finite(self) -> None:
        """Look at every weight that is trained.

        Raises:
            Diverged: one is not finite.
        """
        for weight in self._speaker.model.parameters():
            if weight.requires_grad and not bool(torch.isfinite(weight).all()):
                raise Diverged("the model's weights are not finite")

    def _named(self, directory: Path) -> Any:  # the model
        model = self._speaker.model
        if self._settings.beta and self._settings.lora is None:
            # TRL loads the reference again from where the model says that it is from.
            first = directory / "reference"
            model.save_pretrained(first)
            model.config._name_or_path = str(first)
        return model

    def _arguments(self, directory: Path, updates: int) -> Any:  # a GRPOConfig
        settings = self._settings
        batches = settings.episodes // settings.batch_size
        return GRPOConfig(
            output_dir=str(directory / "trl"),
            report_to="none",
            save_strategy="no",
            logging_strategy="steps",
            logging_steps=1,
            logging_nan_inf_filter=False,
            disable_tqdm=True,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            dataloader_pin_memory=False,
            seed=self._seed,
            max_steps=updates * settings.n_epochs,
            per_device_train_batch_size=settings.batch_size,
            gradient_accumulation_steps=batches,
            steps_per_generation=batches,
            num_iterations=settings.n_epochs,
            num_generations=settings.num_generations,
            max_completion_length=settings.max_completion_length,
            temperature=settings.temperature,
            top_p=settings.top_p,
            beta=settings.beta,
            epsilon=settings.clip_range,
            entropy_coef=settings.ent_coef,
            scale_rewards="group" if settings.std_normalization else "none",
            max_grad_norm=settings.max_grad_norm,
        )

    def _rollout(self, prompts: list[str], _trainer: Any) -> dict[str, Any]:
        # An update's draws depend on nothing that came before: a resumed run makes the same.
        torch.manual_seed(update_seed(self._seed, self.made))
        conversations, returns = self._play(self.made)
        if len(conversations) != len(prompts):
            raise RuntimeError(f"{len(conversations)} episodes for {len(prompts)} prompts")
        pad = self._speaker.pad
        nothing = Conversation([pad], [pad], [0])
        said = [one if one is not None else nothing for one in conversations]
        return {
            "prompt_ids": [one.prompt for one in said],
            "completion_ids": [one.said for one in said],
            "env_mask": [one.mask for one in said],
            "logprobs": None,
            "episode_return": list(returns),
        }


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    """Keep what TRL and transformers tell a programmer out of a job's output."""
    loggers = [logging.getLogger(name) for name in ("trl", "transformers")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def update_seed(seed: int, update: int) -> int:
    """The seed of everything that an update draws: a function of the run's seed and its number."""
    return int(np.random.SeedSequence((seed, update, 1)).generate_state(1)[0])


def _returned(episode_return: list[float | None], **_: object) -> list[float | None]:
    """The environment's own return; None is learned nothing from."""
    return episode_return


class _Listener(TrainerCallback):
    """Hears of TRL's steps."""

    def __init__(self, updates: Updates) -> None:
        self._updates = updates
        self._heard: dict[str, list[float]] = {}

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Look at the weights before anything is told or saved."""
        self._updates.require_finite()

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any
    ) -> Any:  # transformers' control
        """Gather the numbers of an update's passes; stop where the listener wants to."""
        if logs is None or "train_runtime" in logs:
            return control
        for theirs, ours in _TOLD.items():
            value = logs.get(theirs)
            if isinstance(value, int | float):
                self._heard.setdefault(ours, []).append(float(value))
        if not math.isfinite(self._heard.get("loss", [0.0])[-1]):
            raise Diverged("the loss is not finite")
        if state.global_step % self._updates.passes == 0:
            numbers = {name: sum(values) / len(values) for name, values in self._heard.items()}
            self._heard.clear()
            finite = {name: value for name, value in numbers.items() if math.isfinite(value)}
            if self._updates.finished(finite):
                control.should_training_stop = True
        return control

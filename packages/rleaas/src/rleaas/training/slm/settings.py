"""What an SLM training does when the request leaves it open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from rlcore import ConfigurationError

from rleaas.training.config import TrainingConfig
from rleaas.training.slm.language import Language, read_language

SESSIONS = 32
CHECKPOINT_INTERVAL = 640
"""Episodes between two checkpoints: ten updates by default."""
TINY_LEARNING_RATE = 1e-3
ADAPTER_LEARNING_RATE = 1e-4
MODEL_LEARNING_RATE = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class Lora:
    """The low-rank adapter that is trained in the model's place."""

    r: int = 8
    alpha: int = 16
    dropout: float = 0.0
    target_modules: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that shapes an SLM training; what was asked for, defaults filled in.

    Attributes:
        model: the directory of a model; None: a tiny one is made, of `layers` and `width`.
        num_generations: episodes of a group; all start with one seed.
        groups_per_update: groups that one update of the model learns from.
        batch_size: episodes of one backward pass.
        n_epochs: how often an update goes over its episodes.
        max_completion_length: the most tokens of one action.
        beta: the weight of the divergence from the model that the training began with.
        std_normalization: whether advantages are divided by their group's deviation.
        language: what the request says of the environment's language; None: ask the environment.
    """

    model: Path | None
    lora: Lora | None
    layers: int
    width: int
    num_generations: int
    groups_per_update: int
    batch_size: int
    n_epochs: int
    max_completion_length: int
    temperature: float
    top_p: float
    beta: float
    clip_range: float
    ent_coef: float
    max_grad_norm: float
    std_normalization: bool
    learning_rate: float
    learning_rate_schedule: str
    language: Language | None

    @property
    def episodes(self) -> int:
        """Episodes that one update learns from."""
        return self.num_generations * self.groups_per_update

    @staticmethod
    def settle(config: TrainingConfig) -> Settings:
        """Fill in what the request left open."""
        model = cast("str | None", config.hyperparameters.get("model"))
        lora = _lora(config.hyperparameters.get("lora"))
        language = config.hyperparameters.get("language")
        if config.hyperparameters.get("ent_coef") == "auto":
            raise ConfigurationError(
                "ent_coef 'auto' is not for SLM",
                code="invalid_training_config",
                hint="Give a number; 0 is no bonus",
            )
        group = config.count("num_generations", 16)
        episodes = group * config.count("groups_per_update", 4)
        return Settings(
            model=None if model is None else Path(model),
            lora=lora,
            layers=config.count("layers", 2),
            width=config.count("width", 64),
            num_generations=group,
            groups_per_update=episodes // group,
            batch_size=_divisor(episodes, config.count("batch_size", episodes)),
            n_epochs=config.count("n_epochs", 1),
            max_completion_length=config.count("max_completion_length", 64),
            temperature=config.number("temperature", 1.0),
            top_p=config.number("top_p", 1.0),
            beta=config.number("beta", 0.0),
            clip_range=config.number("clip_range", 0.2),
            ent_coef=config.number("ent_coef", 0.005 if model is None else 0.0),
            max_grad_norm=config.number("max_grad_norm", 1.0),
            std_normalization=config.flag("std_normalization", False),
            learning_rate=config.number("learning_rate", _rate(model, lora)),
            learning_rate_schedule=config.word("learning_rate_schedule", "constant"),
            language=None if language is None else read_language(language, "language"),
        )

    def to_json(self) -> dict[str, object]:
        """All of it, for the card of a checkpoint."""
        found = asdict(self)
        found["model"] = None if self.model is None else str(self.model)
        found["language"] = None if self.language is None else self.language.to_json()
        if self.lora is not None and self.lora.target_modules is not None:
            found["lora"]["target_modules"] = list(self.lora.target_modules)
        return found


def _rate(model: str | None, lora: Lora | None) -> float:
    if model is None:
        return TINY_LEARNING_RATE
    return MODEL_LEARNING_RATE if lora is None else ADAPTER_LEARNING_RATE


def _lora(given: object) -> Lora | None:
    if given is None or given is False:
        return None
    if given is True:
        return Lora()
    values = dict(cast("Mapping[str, object]", given))
    modules = values.pop("target_modules", None)
    return Lora(
        target_modules=None if modules is None else tuple(cast("list[str]", modules)),
        **cast("dict[str, int]", values),
    )


def _divisor(whole: int, wanted: int) -> int:
    # Every backward pass of an update takes equally many episodes.
    return next(size for size in range(min(wanted, whole), 0, -1) if whole % size == 0)

"""A request with every default of its algorithm filled in, and the model that comes of it."""

# stable-baselines3 and gymnasium leave their type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from rlcore import ConfigurationError
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.utils import FloatSchedule, LinearSchedule

from rleaas.training.checkpoint_file import Manifest
from rleaas.training.config import TrainingConfig
from rleaas.training.guarded import GuardedEnv
from rleaas.training.learner_spaces import policy_name
from rleaas.training.sb3.defaults import DEFAULTS, Defaults
from rleaas.training.sb3.models import MODELS, WatchedModel
from rleaas.training.sb3.sessions import SessionVecEnv

_SETTLED = (
    "learning_rate",
    "learning_rate_schedule",
    "net_arch",
    "policy",
    "action_noise",
    "replay_megabytes",
)
REPLAY_MEGABYTES = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a training is run with.

    Attributes:
        replays: whether it learns from remembered steps.
        replay_bytes: how much of them a checkpoint keeps at most.
        arguments: those of the class in stable-baselines3 that are plain values.
    """

    algorithm: str
    seed: int
    sessions: int
    policy: str
    net_arch: tuple[int, ...]
    learning_rate: float
    schedule: str
    action_noise: float | None
    replays: bool
    replay_bytes: int
    arguments: Mapping[str, object]

    @classmethod
    def settle(
        cls, config: TrainingConfig, sessions: list[GuardedEnv], seed: int, resumed: Manifest | None
    ) -> Settings:
        """Fill in the defaults for the sessions that there are.

        Raises:
            ConfigurationError: the request does not fit them, or the checkpoint to resume from.
        """
        defaults = DEFAULTS[config.algorithm]
        asked = config.hyperparameters
        arguments = {**defaults.settings}
        arguments.update({key: one for key, one in asked.items() if key not in _SETTLED})
        if defaults.rollout is not None:
            _settle_rollout(arguments, asked, defaults, len(sessions))
        if defaults.replays:
            _settle_replay(arguments, asked, config, len(sessions))
        if arguments.get("ent_coef") == "auto" and config.algorithm != "SAC":
            raise ConfigurationError(
                f"ent_coef 'auto' is not for {config.algorithm}, which has a fixed one",
                code="invalid_training_config",
                hint="Give a number, or use SAC",
            )
        return cls(
            algorithm=config.algorithm,
            seed=seed,
            sessions=len(sessions),
            policy=policy_name(
                sessions[0].observation_space, cast("str | None", asked.get("policy"))
            ),
            net_arch=_net_arch(config, defaults, resumed),
            learning_rate=config.number("learning_rate", defaults.learning_rate),
            schedule=config.word("learning_rate_schedule", defaults.schedule),
            action_noise=None
            if defaults.action_noise is None
            else config.number("action_noise", defaults.action_noise),
            replays=defaults.replays,
            replay_bytes=config.count("replay_megabytes", REPLAY_MEGABYTES) * 2**20,
            arguments=arguments,
        )

    @property
    def rounds(self) -> int:
        """How often all sessions are stepped between two updates."""
        return cast("int", self.arguments["train_freq" if self.replays else "n_steps"])

    def build(self, sessions: SessionVecEnv) -> WatchedModel:
        """A fresh model.

        Raises:
            AssertionError, ValueError, TypeError: stable-baselines3 refuses something.
        """
        rate: object = self.learning_rate
        if self.schedule == "linear":
            rate = FloatSchedule(LinearSchedule(self.learning_rate, 0.0, 1.0))
        arguments = dict(self.arguments)
        if self.action_noise:
            sides = cast("tuple[int, ...]", sessions.action_space.shape)
            arguments["action_noise"] = NormalActionNoise(
                np.zeros(sides, np.float32), np.full(sides, self.action_noise, np.float32)
            )
        return MODELS[self.algorithm](
            self.policy,
            cast("Any", sessions),
            learning_rate=cast("Any", rate),
            policy_kwargs={"net_arch": list(self.net_arch)},
            seed=self.seed,
            device="cpu",
            **cast("dict[str, Any]", arguments),
        )

    def network_arguments(self) -> dict[str, object]:
        """What the network is built with again."""
        told: dict[str, object] = {"net_arch": list(self.net_arch)}
        if self.arguments.get("use_sde"):
            told["use_sde"] = True
        if self.algorithm == "DDPG":
            told["n_critics"] = 1
        return told

    def to_json(self) -> dict[str, object]:
        """All hyper-parameters by the names that a request gives them."""
        told: dict[str, object] = {
            **self.arguments,
            "learning_rate": self.learning_rate,
            "learning_rate_schedule": self.schedule,
            "net_arch": list(self.net_arch),
            "policy": self.policy,
            "num_envs": self.sessions,
        }
        if self.action_noise is not None:
            told["action_noise"] = self.action_noise
        return told

    def described(self) -> str:
        """One line for people."""
        told = self.to_json()
        keys = ("learning_rate", "n_steps", "batch_size", "train_freq", "gradient_steps")
        numbers = ", ".join(f"{key} {told[key]}" for key in keys if key in told)
        return (
            f"{self.policy}{list(self.net_arch)}, {self.sessions} sessions, {numbers}, "
            f"seed {self.seed}"
        )


def _settle_rollout(
    arguments: dict[str, object], asked: Mapping[str, object], defaults: Defaults, sessions: int
) -> None:
    """Give every session its part of a rollout, and let a batch fit into it."""
    whole = defaults.rollout or 0
    n_steps = cast("int", asked.get("n_steps") or max(2, whole // sessions))
    arguments["n_steps"] = n_steps
    if "batch_size" not in arguments:
        return
    rollout = n_steps * sessions
    batch = cast("int | None", asked.get("batch_size"))
    if rollout < 2 or (batch or 2) > rollout:
        raise ConfigurationError(
            f"batch_size {batch} does not fit a rollout of {n_steps} steps in {sessions} sessions",
            hint="Lower batch_size or raise n_steps",
        )
    arguments["batch_size"] = batch or _whole_batch(rollout, cast("int", arguments["batch_size"]))


def _settle_replay(
    arguments: dict[str, object], asked: Mapping[str, object], config: TrainingConfig, sessions: int
) -> None:
    """Keep memory to what the job can fill, and update as often as with one session."""
    steps = config.num_episodes * config.max_steps + sessions
    if config.total_timesteps is not None:
        steps = min(steps, config.total_timesteps + sessions)
    size = cast("int", arguments["buffer_size"])
    arguments["buffer_size"] = max(sessions, min(size, steps))
    if "gradient_steps" not in asked and "train_freq" not in asked:
        # It counts rounds of all sessions; -1 is as many updates as steps.
        each = cast("int", arguments["train_freq"])
        arguments["train_freq"] = max(1, each // sessions)
        if each == 1 and sessions > 1:
            arguments["gradient_steps"] = -1


def _net_arch(
    config: TrainingConfig, defaults: Defaults, resumed: Manifest | None
) -> tuple[int, ...]:
    given = cast("tuple[int, ...] | None", config.hyperparameters.get("net_arch"))
    if resumed is None:
        return given or defaults.net_arch
    arch = tuple(cast("list[int]", resumed.policy_kwargs["net_arch"]))
    if given not in (None, arch):
        raise ConfigurationError(
            f"net_arch {list(given or ())} is not the checkpoint's {list(arch)}",
            hint="Leave net_arch out when resuming",
        )
    return arch


def _whole_batch(rollout: int, most: int) -> int:
    """The largest batch of at most `most` that divides the rollout."""
    sizes = range(min(most, rollout), 1, -1)
    return next((size for size in sizes if rollout % size == 0), min(most, rollout))

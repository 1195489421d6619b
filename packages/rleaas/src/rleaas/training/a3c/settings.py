"""The request of an A3C training with every default filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from rlcore import ConfigurationError

from rleaas.training.a3c.shared_weights import RMSPROP
from rleaas.training.actor.network import NET_ARCH
from rleaas.training.config import TrainingConfig

WORKERS = 2
"""Actors when the request does not say how many; each has an interpreter of its own."""

SESSIONS = 4
"""Sessions of each actor when the request does not say."""

# The worker itself, and the two that Python's multiprocessing starts for those of its children.
_OTHER_PROCESSES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """How many actors there are, and sessions of each; `required` where the request said so."""

    workers: int
    sessions: int
    required: bool

    @classmethod
    def settle(cls, config: TrainingConfig) -> Team:
        """What was asked for, as far as the quota and the budget leave room.

        Raises:
            ConfigurationError: the quota of processes is too small for the actors asked for.
        """
        asked = config.count("n_workers", 0)
        total = config.num_envs
        # More actors than episodes would play for nothing.
        workers = asked or min(WORKERS, total or WORKERS, config.num_episodes)
        quota = None if config.compute_quota is None else config.compute_quota.max_processes
        if quota is not None and workers + _OTHER_PROCESSES > quota:
            room = quota - _OTHER_PROCESSES
            if asked or room < 1:
                raise ConfigurationError(
                    f"compute_quota.max_processes {quota} is too small for {workers} actors: "
                    f"A3C needs {_OTHER_PROCESSES} processes beside them",
                    code="invalid_training_config",
                    hint=f"Allow {workers + _OTHER_PROCESSES} processes or lower n_workers",
                )
            workers = room
        return cls(
            workers=workers,
            sessions=max(1, total // workers) if total else SESSIONS,
            required=bool(asked or total),
        )


@dataclass(frozen=True, kw_only=True)  # no slots: the class has the defaults
class Settings:
    """How actors learn. `learning_rate` falls to zero with the budget where `linear`."""

    learning_rate: float = 2e-3
    linear: bool = False
    t_max: int = 32
    gamma: float = 0.98
    ent_coef: float = 0.0
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    optimizer: str = RMSPROP
    epsilon: float = 1e-5
    lock_updates: bool = False
    net_arch: tuple[int, ...] = NET_ARCH

    @classmethod
    def settle(cls, config: TrainingConfig, saved_net_arch: tuple[int, ...] | None) -> Settings:
        """What was asked for, and the defaults for what was not."""
        return cls(
            learning_rate=config.number("learning_rate", cls.learning_rate),
            linear=config.word("learning_rate_schedule", "constant") == "linear",
            t_max=config.count("t_max", cls.t_max),
            gamma=config.number("gamma", cls.gamma),
            ent_coef=config.number("ent_coef", cls.ent_coef),
            vf_coef=config.number("vf_coef", cls.vf_coef),
            max_grad_norm=config.number("max_grad_norm", cls.max_grad_norm),
            optimizer=config.word("optimizer", cls.optimizer),
            epsilon=config.number("rms_prop_eps", cls.epsilon),
            lock_updates=config.flag("lock_updates", cls.lock_updates),
            net_arch=saved_net_arch or config.widths(cls.net_arch),
        )

    def to_dict(self) -> Mapping[str, object]:
        """As a checkpoint's card tells them."""
        return {**asdict(self), "net_arch": list(self.net_arch)}

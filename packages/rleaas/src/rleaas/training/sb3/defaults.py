"""What each algorithm of stable-baselines3 is run with where a request does not say.

The numbers for CartPole and Pendulum that rl-baselines3-zoo publishes are where they come from,
except DQN's, with which it forgot what it had learnt; those have few updates for each step and a
target that rests. `benchmarks/train.py` measures whether they solve the reference tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """One algorithm's settings.

    Attributes:
        sessions: how many sessions of the environment are stepped side by side.
        learning_rate: at the start.
        schedule: what becomes of it with the episodes that are left: `constant` or `linear`.
        net_arch: the widths of the hidden layers of each network.
        rollout: steps of all sessions together between two updates; None: `settings` says it.
        whole_batches: whether a batch has to divide the rollout.
        action_noise: the deviation of what is added to actions while exploring; None: never any.
        replays: whether it learns from remembered steps.
        settings: further arguments of the class in stable-baselines3, by their own names; they
            are the hyper-parameters that a request may name as well.
    """

    sessions: int = 1
    learning_rate: float
    schedule: str = "constant"
    net_arch: tuple[int, ...] = (64, 64)
    rollout: int | None = None
    whole_batches: bool = False
    action_noise: float | None = None
    replays: bool = False
    settings: Mapping[str, object]


def _replaying(
    learning_rate: float,
    *,
    schedule: str = "constant",
    net_arch: tuple[int, ...],
    settings: Mapping[str, object],
    action_noise: float | None = None,
) -> Defaults:
    return Defaults(
        sessions=4,
        learning_rate=learning_rate,
        schedule=schedule,
        net_arch=net_arch,
        action_noise=action_noise,
        replays=True,
        settings={"learning_starts": 1000, "buffer_size": 1_000_000, **settings},
    )


_CONTINUOUS: Mapping[str, object] = {
    "batch_size": 256,
    "tau": 0.005,
    "train_freq": 1,
    "gradient_steps": 1,
}

DEFAULTS: Mapping[str, Defaults] = {
    "PPO": Defaults(
        sessions=8,
        learning_rate=1e-3,
        schedule="linear",
        rollout=256,
        whole_batches=True,
        settings={
            "batch_size": 256,
            "n_epochs": 20,
            "gamma": 0.98,
            "gae_lambda": 0.8,
            "clip_range": 0.2,
            "ent_coef": 0.0,
            "vf_coef": 0.5,
            "max_grad_norm": 0.5,
            "normalize_advantage": True,
            "use_sde": False,
        },
    ),
    "A2C": Defaults(
        sessions=8,
        learning_rate=7e-4,
        schedule="linear",
        rollout=40,
        settings={
            "gamma": 0.99,
            "gae_lambda": 1.0,
            "ent_coef": 0.0,
            "vf_coef": 0.5,
            "max_grad_norm": 0.5,
            "normalize_advantage": False,
            "use_sde": False,
            "rms_prop_eps": 1e-5,
        },
    ),
    "DQN": _replaying(
        1e-3,
        schedule="linear",
        net_arch=(128, 128),
        settings={
            "batch_size": 128,
            "buffer_size": 100_000,
            "gamma": 0.99,
            "tau": 1.0,
            "train_freq": 4,
            "gradient_steps": 1,
            "max_grad_norm": 10.0,
            "target_update_interval": 500,
            "exploration_fraction": 0.3,
            "exploration_initial_eps": 1.0,
            "exploration_final_eps": 0.04,
        },
    ),
    "SAC": _replaying(
        1e-3,
        net_arch=(256, 256),
        settings={
            **_CONTINUOUS,
            "gamma": 0.99,
            "ent_coef": "auto",
            "target_update_interval": 1,
            "use_sde": False,
        },
        action_noise=0.0,
    ),
    "TD3": _replaying(
        1e-3,
        net_arch=(128, 128),
        settings={
            **_CONTINUOUS,
            "batch_size": 128,
            "gamma": 0.98,
            "policy_delay": 2,
            "target_policy_noise": 0.2,
            "target_noise_clip": 0.5,
        },
        action_noise=0.1,
    ),
    "DDPG": _replaying(
        1e-3,
        net_arch=(128, 128),
        settings={**_CONTINUOUS, "batch_size": 128, "gamma": 0.98},
        action_noise=0.1,
    ),
}
"""By the algorithm's name."""

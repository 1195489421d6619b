"""What a training request may ask for: one table of keys, shared by the server and the worker.

No training library is imported here, so that the server refuses a bad request before it starts
anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import cast

from rlcore import ConfigurationError

from rleaas.training import config_rules as rules

SUPPORTED_ALGORITHMS = ("GRPO", "PPO", "SAC", "DQN", "A2C", "A3C", "TD3", "DDPG", "SLM")
"""Every algorithm name a client may send."""

AVAILABLE_ALGORITHMS = ("PPO",)
"""Those that this build trains for real; the others are refused, never replaced."""

PPO_ENVS = 8
PPO_ROLLOUT = 256
"""Steps that one update of the policy rests on when the request does not say: over all sessions."""
PPO_CHECKPOINT_INTERVAL = 100

POLICIES = ("MlpPolicy", "CnnPolicy", "MultiInputPolicy")
SCHEDULES = ("constant", "linear")
_QUOTA_KEYS = ("max_wall_seconds", "max_timesteps")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeQuota:
    """What a job may use up before it fails with a reason."""

    max_wall_seconds: float | None = None
    max_timesteps: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Simulation settings; `extra` holds the keys nobody here interprets."""

    speed: float | None = None
    seed: int | None = None
    num_episodes: int | None = None
    max_steps: int | None = None
    extra: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """A checked training request. `None` means: the algorithm's own default.

    `average_over` is how many of the last episodes the running mean return and success rate are
    taken over (100 by default); the job stops early when that mean is at `target_reward`.
    `step_timeout` is how many seconds one step or reset of the environment may take (60 by
    default); the job fails when one takes longer.
    """

    algorithm: str
    num_episodes: int
    max_steps: int
    learning_rate: float | None = None
    learning_rate_schedule: str | None = None
    batch_size: int | None = None
    n_steps: int | None = None
    n_epochs: int | None = None
    gamma: float | None = None
    gae_lambda: float | None = None
    ent_coef: float | None = None
    vf_coef: float | None = None
    max_grad_norm: float | None = None
    clip_range: float | None = None
    policy: str | None = None
    net_arch: tuple[int, ...] | None = None
    num_envs: int | None = None
    checkpoint_interval: int | None = None
    seed: int | None = None
    target_reward: float | None = None
    average_over: int | None = None
    total_timesteps: int | None = None
    step_timeout: float | None = None
    description: str | None = None
    simulation: Simulation | None = None
    compute_quota: ComputeQuota | None = None

    @property
    def effective_seed(self) -> int | None:
        """The job's seed: `seed`, else the simulation's."""
        if self.seed is not None:
            return self.seed
        return self.simulation.seed if self.simulation else None

    def to_config(self) -> dict[str, object]:
        """The `config` object that validates to this again, for storing and sending."""
        config: dict[str, object] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None or field.name in ("algorithm", "num_episodes", "max_steps"):
                continue
            config[field.name] = value
        if self.net_arch is not None:
            config["net_arch"] = list(self.net_arch)
        if self.simulation is not None:
            config["simulation"] = _simulation_object(self.simulation)
        if self.compute_quota is not None:
            quota = asdict(self.compute_quota)
            config["compute_quota"] = {k: v for k, v in quota.items() if v is not None}
        return config


def validate_training_config(
    algorithm: object, num_episodes: object, max_steps: object, config: Mapping[str, object] | None
) -> TrainingConfig:
    """Check a whole training request.

    Raises:
        ConfigurationError: the first thing that is wrong, by name; for an unknown key with the
            nearest valid one, for an algorithm that is not built with code `algorithm_unavailable`.
    """
    name = validate_algorithm(algorithm)
    episodes = rules.positive_int("num_episodes", num_episodes)
    steps = rules.positive_int("max_steps", max_steps)
    given = dict(rules.mapping("config", config if config is not None else {}))
    _settle_repeated(given, name, episodes, steps)
    values: dict[str, object] = {}
    for key, value in given.items():
        if key in _UNAVAILABLE:
            _refuse_unavailable(key, value)
        elif key not in _KEYS:
            raise rules.unknown(key, "config", (*_KEYS, *_REPEATED))
        elif value is not None:
            values[key] = _KEYS[key](key, value)
    checked = TrainingConfig(
        algorithm=name,
        num_episodes=episodes,
        max_steps=steps,
        **values,  # type: ignore[arg-type]  # each value was typed by its own key's rule
    )
    _check_together(checked)
    return checked


def validate_algorithm(algorithm: object) -> str:
    """The canonical name of an algorithm that this build can train.

    Raises:
        ConfigurationError: unknown, or known but not built (code `algorithm_unavailable`).
    """
    if not isinstance(algorithm, str):
        raise rules.bad("algorithm", algorithm, "must be a string")
    name = algorithm.strip().upper()
    if name not in SUPPORTED_ALGORITHMS:
        raise ConfigurationError(
            f"unknown algorithm {algorithm!r}, not one of {', '.join(SUPPORTED_ALGORITHMS)}",
            code="unknown_algorithm",
            hint=f"This build trains {', '.join(AVAILABLE_ALGORITHMS)}",
        )
    if name not in AVAILABLE_ALGORITHMS:
        raise ConfigurationError(
            f"algorithm {name!r} is not available in this build",
            code="algorithm_unavailable",
            hint=f"Use {', '.join(AVAILABLE_ALGORITHMS)}",
        )
    return name


_EPISODE_SETTINGS = ("num_episodes", "max_steps")


def validate_simulation(value: object) -> Simulation:
    """A checked `simulation` object.

    Raises:
        ConfigurationError: naming the field, as `simulation.seed`.
    """
    given = dict(rules.mapping("simulation", value))
    speed = given.pop("speed", None)
    seed = given.pop("seed", None)
    settings = given.pop("episode_settings", None)
    episodes = steps = None
    if settings is not None:
        inner = dict(rules.mapping("simulation.episode_settings", settings))
        if "num_episodes" in inner:
            episodes = rules.positive_int(
                "simulation.episode_settings.num_episodes", inner.pop("num_episodes")
            )
        if "max_steps" in inner:
            steps = rules.positive_int(
                "simulation.episode_settings.max_steps", inner.pop("max_steps")
            )
        for name in inner:
            raise rules.unknown(name, "simulation.episode_settings", _EPISODE_SETTINGS)
    return Simulation(
        speed=None if speed is None else rules.above_zero("simulation.speed", speed),
        seed=None if seed is None else rules.seed("simulation.seed", seed),
        num_episodes=episodes,
        max_steps=steps,
        extra=given or None,
    )


def _simulation_object(simulation: Simulation) -> dict[str, object]:
    out: dict[str, object] = dict(simulation.extra or {})
    for key in ("speed", "seed"):
        if (value := getattr(simulation, key)) is not None:
            out[key] = value
    settings = {
        key: value
        for key in ("num_episodes", "max_steps")
        if (value := getattr(simulation, key)) is not None
    }
    if settings:
        out["episode_settings"] = settings
    return out


def _quota(key: str, value: object) -> ComputeQuota:
    given = rules.mapping(key, value)
    for name in given:
        if name not in _QUOTA_KEYS:
            raise rules.unknown(name, key, _QUOTA_KEYS)
    seconds, steps = (given.get(name) for name in _QUOTA_KEYS)
    return ComputeQuota(
        max_wall_seconds=None
        if seconds is None
        else rules.above_zero(f"{key}.max_wall_seconds", seconds),
        max_timesteps=None if steps is None else rules.positive_int(f"{key}.max_timesteps", steps),
    )


def _simulation(_key: str, value: object) -> Simulation:
    return validate_simulation(value)


_KEYS: Mapping[str, Callable[[str, object], object]] = {
    "learning_rate": rules.above_zero,
    "learning_rate_schedule": rules.one_of(SCHEDULES),
    "batch_size": rules.batch_size,
    "n_steps": rules.positive_int,
    "n_epochs": rules.positive_int,
    "gamma": rules.fraction,
    "gae_lambda": rules.fraction,
    "ent_coef": rules.at_least_zero,
    "vf_coef": rules.at_least_zero,
    "max_grad_norm": rules.above_zero,
    "clip_range": rules.positive_fraction,
    "policy": rules.one_of(POLICIES),
    "net_arch": rules.net_arch,
    "num_envs": rules.num_envs,
    "checkpoint_interval": rules.positive_int,
    "seed": rules.seed,
    "target_reward": rules.number,
    "average_over": rules.positive_int,
    "total_timesteps": rules.positive_int,
    "step_timeout": rules.seconds_of_a_day,
    "description": rules.text,
    "simulation": _simulation,
    "compute_quota": _quota,
}

# Published clients repeat these inside `config`; they must agree with the request itself.
_REPEATED: Mapping[str, str] = {
    "algorithm": "algorithm",
    "episodes": "num_episodes",
    "num_episodes": "num_episodes",
    "max_steps": "max_steps",
    "max_steps_per_episode": "max_steps",
}

_UNAVAILABLE: Mapping[str, str] = {
    "reward_fn": "custom reward functions",
    "curriculum": "the curriculum",
    "verifier_config": "verifiers in training",
}


def _settle_repeated(config: dict[str, object], name: str, episodes: int, steps: int) -> None:
    request = {"algorithm": name, "num_episodes": episodes, "max_steps": steps}
    for key, field in _REPEATED.items():
        if key not in config:
            continue
        value = config.pop(key)
        same = value.strip().upper() if key == "algorithm" and isinstance(value, str) else value
        if isinstance(same, bool) or same != request[field]:
            raise ConfigurationError(
                f"config.{key} {value!r} contradicts the request's {field} {request[field]!r}",
                code="invalid_training_config",
                hint=f"Give {field} once",
            )


def _refuse_unavailable(key: str, value: object) -> None:
    off = isinstance(value, Mapping) and cast("Mapping[str, object]", value).get("enabled") is False
    if value is None or (key == "curriculum" and off):
        return
    raise ConfigurationError(
        f"config.{key}: {_UNAVAILABLE[key]} not built yet",
        code="not_available",
        hint=f"Remove {key!r} from the config",
    )


def _check_together(config: TrainingConfig) -> None:
    if config.batch_size and config.n_steps and config.num_envs:
        rollout = config.n_steps * config.num_envs
        if config.batch_size > rollout:
            raise ConfigurationError(
                f"batch_size {config.batch_size} is larger than a rollout of n_steps x num_envs = "
                f"{config.n_steps} x {config.num_envs} = {rollout}",
                code="invalid_training_config",
                hint="Lower batch_size or raise n_steps",
            )

"""What a training request may ask for, shared by the server and the worker.

No training library is imported here, so that the server refuses a bad request before it starts
anything. The settings of the algorithms are in `hyperparameters`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import cast

from rlcore import ConfigurationError

from rleaas.training import config_rules as rules
from rleaas.training.algorithms import ALGORITHMS, validate_algorithm
from rleaas.training.amounts import check_amounts
from rleaas.training.curriculum import KEYS as CURRICULUM_KEYS
from rleaas.training.curriculum import CurriculumSettings, validate_curriculum
from rleaas.training.episode_limits import (
    EPISODE_KEYS,
    STEP_KEYS,
    settle_episodes,
    settle_max_steps,
)
from rleaas.training.hyperparameters import HYPERPARAMETERS, Rule
from rleaas.training.kept_checkpoints import KEPT_SCHEMA, validate_kept
from rleaas.training.quota import QUOTA_SCHEMA, ComputeQuota, validate_quota
from rleaas.training.rewards.spec import RewardSpec, validate_reward_fn
from rleaas.training.simulation import SIMULATION_SCHEMA, Simulation, validate_simulation
from rleaas.training.tracking.settings import TRACKING_SCHEMA, validate_tracking


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """A checked training request. `None` means: the algorithm's own default.

    `hyperparameters` holds what was asked of the algorithm's own settings, by the names of the
    table `HYPERPARAMETERS`, each already of its rule's type.
    `average_over` is how many of the last episodes the running mean return and success rate are
    taken over (100 by default); the job stops early when that mean is at `target_reward`.
    `step_timeout` is how many seconds one step or reset of the environment may take (60 by
    default); the job fails when one takes longer.
    `warnings` says what was asked for in two ways, and which one holds; and of what is allowed
    but will hardly work.
    """

    algorithm: str
    num_episodes: int
    max_steps: int
    hyperparameters: Mapping[str, object] = field(default_factory=dict[str, object])
    num_envs: int | None = None
    rollout_workers: int | None = None
    checkpoint_interval: int | None = None
    seed: int | None = None
    target_reward: float | None = None
    average_over: int | None = None
    total_timesteps: int | None = None
    step_timeout: float | None = None
    description: str | None = None
    simulation: Simulation | None = None
    compute_quota: ComputeQuota | None = None
    checkpoint_retention: Mapping[str, object] | None = None
    reward_fn: RewardSpec | None = None
    curriculum: CurriculumSettings | None = None
    verifier_weights: Mapping[str, object] | tuple[object, ...] | None = None
    verifier_config: Mapping[str, object] | None = None
    tracking: Mapping[str, Mapping[str, str]] | None = None
    warnings: tuple[str, ...] = field(default=(), compare=False)

    @property
    def effective_seed(self) -> int | None:
        """The job's seed: `seed`, else the simulation's."""
        if self.seed is not None:
            return self.seed
        return self.simulation.seed if self.simulation else None

    def number(self, key: str, default: float) -> float:
        """A hyper-parameter that is a number."""
        value = self.hyperparameters.get(key)
        return default if value is None else float(cast("float", value))

    def count(self, key: str, default: int) -> int:
        """A hyper-parameter that is an integer."""
        return cast("int", self.hyperparameters.get(key, default))

    def word(self, key: str, default: str) -> str:
        """A hyper-parameter that is one of some words."""
        return cast("str", self.hyperparameters.get(key, default))

    def flag(self, key: str, default: bool) -> bool:
        """A hyper-parameter that is true or false."""
        return cast("bool", self.hyperparameters.get(key, default))

    def spare_processes(self, default: int) -> int:
        """How many processes a trainer may start that would start this many."""
        most = None if self.compute_quota is None else self.compute_quota.max_processes
        return default if most is None else min(default, most - 1)

    def widths(self, default: tuple[int, ...]) -> tuple[int, ...]:
        """The widths of the network's layers, `net_arch`."""
        return cast("tuple[int, ...]", self.hyperparameters.get("net_arch", default))

    def to_config(self) -> dict[str, object]:
        """The `config` object that validates to this again, for storing and sending."""
        config: dict[str, object] = {
            key: list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value
            for key, value in self.hyperparameters.items()
        }
        for one in fields(self):
            value = getattr(self, one.name)
            if value is None or one.name in _NOT_IN_CONFIG:
                continue
            config[one.name] = value
        if self.simulation is not None:
            config["simulation"] = self.simulation.to_config()
        if self.compute_quota is not None:
            config["compute_quota"] = self.compute_quota.to_config()
        if self.reward_fn is not None:
            config["reward_fn"] = self.reward_fn.to_json()
        if self.curriculum is not None:
            config["curriculum"] = self.curriculum.to_json()
        if isinstance(self.verifier_weights, tuple):
            config["verifier_weights"] = list(self.verifier_weights)
        return config


FASTEST_USUAL = 1.0
"""A learning rate above it is warned of."""
_NOT_IN_CONFIG = ("algorithm", "num_episodes", "max_steps", "hyperparameters", "warnings")


def validate_training_config(
    algorithm: object,
    num_episodes: object = None,
    max_steps: object = None,
    config: Mapping[str, object] | None = None,
) -> TrainingConfig:
    """Check a whole training request; None says nothing of it.

    Raises:
        ConfigurationError: the first thing that is wrong, by name; for an unknown key with the
            nearest valid one, for a key of another algorithm with those that this one takes, for
            an algorithm that is not built with code `algorithm_unavailable`.
    """
    name = validate_algorithm(algorithm)
    given = dict(rules.mapping("config", config if config is not None else {}))
    _settle_algorithm(given, name)
    _settle_aliases(given)
    told = given.get("simulation")
    simulation = None if told is None else validate_simulation(told, strict=True)
    episodes = settle_episodes(num_episodes, given, simulation.num_episodes if simulation else None)
    steps = settle_max_steps(max_steps, given, simulation.max_steps if simulation else None)
    values: dict[str, object] = {}
    settings: dict[str, object] = {}
    for key, value in given.items():
        if key in COMMON:
            if value is not None:
                values[key] = COMMON[key].check(key, value)
        elif key in HYPERPARAMETERS:
            _require_of(name, key)
            if value is not None:
                settings[key] = HYPERPARAMETERS[key].check(key, value)
        else:
            raise _unknown(key, name)
    unused = _unused_seed(values.get("seed"), simulation)
    said = (episodes.warning, steps.warning, unused, _too_fast(settings.get("learning_rate")))
    checked = TrainingConfig(
        algorithm=name,
        num_episodes=episodes.value,
        max_steps=steps.value,
        hyperparameters=settings,
        warnings=tuple(one for one in said if one is not None),
        **values,  # type: ignore[arg-type]  # each value was typed by its own key's rule
    )
    _check_together(checked)
    return checked


_BESIDE: Mapping[str, str] = {
    "agent_id": "agent_id",
    "environment_name": "environment_name",
    "environment_version": "environment_version",
    "model": "agent_id",
    "name": "name",
    "priority": "priority",
    "resume_from_checkpoint": "resume_from_checkpoint",
    "run_name": "name",
    "scenario_id": "scenario_suite_id",
    "scenario_suite_id": "scenario_suite_id",
    "verifier_ids": "verifier_ids",
}
"""What a request says beside its config, and the argument of `TrainingJob.run` for it."""


def _unknown(key: str, algorithm: str) -> ConfigurationError:
    if key not in _BESIDE:
        return rules.unknown(key, "config", valid_keys(algorithm))
    return ConfigurationError(
        f"unknown key {key!r} in config",
        code="unknown_config_key",
        hint=f"It belongs beside the config: {_BESIDE[key]}= of TrainingJob.run, or in a "
        "config.json a key of the entry itself",
    )


def valid_keys(algorithm: str) -> tuple[str, ...]:
    """Every key that a config for this algorithm may have."""
    return (*COMMON, *ALGORITHMS[algorithm].hyperparameters, *REPEATED, *_ALIASES)


def _simulation(_key: str, value: object) -> Simulation:
    return validate_simulation(value, strict=True)


def _reward(_key: str, value: object) -> RewardSpec | None:
    return validate_reward_fn(value)


def _curriculum(_key: str, value: object) -> CurriculumSettings | None:
    return validate_curriculum(value)


_COUNT = {"type": "integer", "minimum": 1}

COMMON: Mapping[str, Rule] = {
    "num_envs": Rule(
        rules.num_envs, {**_COUNT, "maximum": 64}, "sessions of the environment side by side"
    ),
    "rollout_workers": Rule(
        rules.num_envs,
        {**_COUNT, "maximum": 64},
        "processes of a Ray cluster that hold the sessions",
    ),
    "checkpoint_interval": Rule(
        rules.positive_int,
        _COUNT,
        "episodes between two checkpoints; a due one waits for the end of the update under way",
    ),
    "seed": Rule(
        rules.seed,
        {"type": "integer", "minimum": 0, "maximum": 2**32 - 1},
        "what makes the training repeatable",
    ),
    "target_reward": Rule(
        rules.number, {"type": "number"}, "the mean return at which the training is done"
    ),
    "average_over": Rule(rules.positive_int, _COUNT, "episodes that the running means are over"),
    "total_timesteps": Rule(rules.positive_int, _COUNT, "steps at which the training is done"),
    "step_timeout": Rule(
        rules.seconds_of_a_day,
        {"type": "number", "exclusiveMinimum": 0, "maximum": rules.DAY_SECONDS},
        "seconds that one step or reset may take",
    ),
    "description": Rule(
        rules.long_text,
        {"type": "string", "maxLength": rules.LONGEST_TEXT},
        "what the training is for",
    ),
    "simulation": Rule(_simulation, SIMULATION_SCHEMA, "speed, seed and limits of episodes"),
    "checkpoint_retention": Rule(
        validate_kept, KEPT_SCHEMA, "which checkpoints stay: the best, the last, every so-manyth"
    ),
    "tracking": Rule(validate_tracking, TRACKING_SCHEMA, "trackers that get the numbers as well"),
    "compute_quota": Rule(
        validate_quota, QUOTA_SCHEMA, "what the job may use up before it fails with a reason"
    ),
    "reward_fn": Rule(
        _reward,
        {"type": ["string", "object"]},
        "what a step is worth: an expression, a file of Python, or the text of a function",
    ),
    "curriculum": Rule(
        _curriculum,
        {"type": ["object", "boolean"], "propertyNames": {"enum": list(CURRICULUM_KEYS)}},
        "from easy scenarios to hard ones, as tiers are mastered",
    ),
    "verifier_weights": Rule(
        rules.weights, {"type": ["object", "array"]}, "what each verifier counts, 1 by default"
    ),
    "verifier_config": Rule(
        rules.human_evaluation,
        {
            "type": "object",
            "properties": {"type": {"const": "human_evaluation"}},
            "required": ["type"],
        },
        "asks people to judge the job before it is complete",
    ),
}
"""Every key that the config of any algorithm may have."""

REPEATED = ("algorithm", *EPISODE_KEYS, *STEP_KEYS)
"""Keys of a config that say what the request itself may say."""

_ALIASES: Mapping[str, str] = {"n_envs": "num_envs"}


def _settle_algorithm(config: dict[str, object], name: str) -> None:
    value = config.pop("algorithm", name)
    same = value.strip().upper() if isinstance(value, str) else value
    if same != name:
        raise ConfigurationError(
            f"config.algorithm {value!r} contradicts the request's algorithm {name!r}",
            code="invalid_training_config",
            hint="Give algorithm once",
        )


def _unused_seed(seed: object, simulation: Simulation | None) -> str | None:
    inside = None if simulation is None else simulation.seed
    if None in (seed, inside) or seed == inside:
        return None
    return f"simulation.seed {inside} is not used: seed {seed} holds"


def _too_fast(rate: object) -> str | None:
    if not isinstance(rate, float) or rate <= FASTEST_USUAL:
        return None
    return (
        f"learning_rate {rate:g} is above {FASTEST_USUAL:g}: one update outweighs all that was "
        "learned, and policies collapse; from 1e-5 to 1e-2 is usual"
    )


def _settle_aliases(config: dict[str, object]) -> None:
    for alias, key in _ALIASES.items():
        if alias not in config:
            continue
        value = config.pop(alias)
        if config.get(key) is not None and config[key] != value:
            raise ConfigurationError(
                f"config.{alias} {value!r} contradicts config.{key} {config[key]!r}",
                code="invalid_training_config",
                hint=f"They are the same setting; give {key} once",
            )
        config[key] = value


def _require_of(algorithm: str, key: str) -> None:
    takes = ALGORITHMS[algorithm].hyperparameters
    if key in takes:
        return
    owners = [name for name, other in ALGORITHMS.items() if key in other.hyperparameters]
    whose = f"a setting of {', '.join(owners)}" if owners else "of an algorithm not built yet"
    raise ConfigurationError(
        f"config.{key} is {whose}; {algorithm} does not take it",
        code="foreign_config_key",
        hint=f"{algorithm} takes {', '.join(sorted(takes))}",
    )


def _check_together(config: TrainingConfig) -> None:
    quota = config.compute_quota
    most = None if quota is None else quota.max_processes
    asked = {"n_workers": config.count("n_workers", 0)}
    asked["rollout_workers"] = config.rollout_workers or 0
    for key, workers in asked.items():
        if most is not None and workers + 1 > most:
            raise ConfigurationError(
                f"{key} {workers} and the process that they belong to are more than "
                f"compute_quota.max_processes {most}",
                code="invalid_training_config",
                hint=f"Lower {key} or raise the quota",
            )
    check_amounts(config)

"""The algorithms: what each one takes, and which trainer does it. No training library is imported.

An algorithm is offered once its name is in `_BUILT`, and not a moment before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from rlcore import ConfigurationError

from rleaas.training import config_rules as rules

_NUMBERS = frozenset({"Box", "Discrete", "MultiDiscrete", "MultiBinary", "Dict"})
_CHOICES = frozenset({"Discrete", "MultiDiscrete", "MultiBinary"})
_NETWORK = ("policy", "net_arch")
_RATE = ("learning_rate", "learning_rate_schedule", "gamma")
_ACTOR_CRITIC = (
    *_RATE,
    *_NETWORK,
    "n_steps",
    "gae_lambda",
    "ent_coef",
    "vf_coef",
    "max_grad_norm",
    "normalize_advantage",
    "use_sde",
)
_OFF_POLICY = (
    *_RATE,
    *_NETWORK,
    "batch_size",
    "buffer_size",
    "learning_starts",
    "tau",
    "train_freq",
    "gradient_steps",
    "replay_megabytes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """What is known of an algorithm before any of it is imported.

    Attributes:
        name: as requests and records spell it.
        trainer: `module:class` of its trainer.
        extra: the extra of this package that brings its libraries.
        observations: the kinds of observation spaces that it takes.
        actions: the kinds of action spaces that it takes.
        hyperparameters: the keys of a config that it takes beside the common ones.
        reproducible: whether the same request, seed and worker count give the same curve.
        why_not: what keeps it from that; None when it is reproducible.
        summary: one line for people.
    """

    name: str
    trainer: str
    extra: str
    observations: frozenset[str]
    actions: frozenset[str]
    hyperparameters: tuple[str, ...]
    reproducible: bool = True
    why_not: str | None = None
    summary: str


def _of_sb3(
    name: str, hyperparameters: tuple[str, ...], actions: frozenset[str], summary: str
) -> Algorithm:
    return Algorithm(
        name=name,
        trainer="rleaas.training.sb3.trainer:SB3Trainer",
        extra="train",
        observations=_NUMBERS,
        actions=actions,
        hyperparameters=hyperparameters,
        summary=summary,
    )


_KNOWN = (
    _of_sb3(
        "PPO",
        (*_ACTOR_CRITIC, "batch_size", "n_epochs", "clip_range"),
        _CHOICES | {"Box"},
        "proximal policy optimisation, the default for most environments",
    ),
    _of_sb3(
        "A2C",
        (*_ACTOR_CRITIC, "rms_prop_eps"),
        _CHOICES | {"Box"},
        "advantage actor-critic, cheap updates",
    ),
    _of_sb3(
        "DQN",
        (
            *_OFF_POLICY,
            "max_grad_norm",
            "target_update_interval",
            "exploration_fraction",
            "exploration_initial_eps",
            "exploration_final_eps",
        ),
        frozenset({"Discrete"}),
        "deep Q-learning from a replay buffer, for one discrete choice",
    ),
    _of_sb3(
        "SAC",
        (*_OFF_POLICY, "ent_coef", "target_update_interval", "action_noise", "use_sde"),
        frozenset({"Box"}),
        "soft actor-critic, sample-efficient on continuous actions",
    ),
    _of_sb3(
        "TD3",
        (*_OFF_POLICY, "policy_delay", "target_policy_noise", "target_noise_clip", "action_noise"),
        frozenset({"Box"}),
        "twin delayed deterministic policy gradients",
    ),
    _of_sb3(
        "DDPG",
        (*_OFF_POLICY, "action_noise"),
        frozenset({"Box"}),
        "deep deterministic policy gradients",
    ),
    Algorithm(
        name="GRPO",
        trainer="rleaas.training.grpo.trainer:GRPOTrainer",
        extra="train",
        observations=_NUMBERS,
        actions=_CHOICES | {"Box"},
        hyperparameters=(
            *_RATE,
            "net_arch",
            "group_size",
            "groups_per_update",
            "n_epochs",
            "batch_size",
            "clip_range",
            "clip_range_high",
            "kl_coef",
            "reference",
            "ent_coef",
            "max_grad_norm",
            "length_normalization",
            "std_normalization",
            "credit",
        ),
        summary="group-relative policy optimisation over episodes that share their start",
    ),
    Algorithm(
        name="A3C",
        trainer="rleaas.training.a3c.trainer:A3CTrainer",
        extra="train",
        observations=_NUMBERS,
        actions=_CHOICES | {"Box"},
        hyperparameters=(
            *_RATE,
            "net_arch",
            "n_workers",
            "t_max",
            "ent_coef",
            "vf_coef",
            "max_grad_norm",
            "optimizer",
            "rms_prop_eps",
            "lock_updates",
        ),
        reproducible=False,
        why_not="its actors update shared weights in whatever order they get to it",
        summary="asynchronous actor-learners with shared weights",
    ),
    Algorithm(
        name="SLM",
        trainer="rleaas.training.slm.trainer:SLMTrainer",
        extra="llm",
        observations=frozenset({"Text"}),
        actions=frozenset({"Text"}),
        hyperparameters=(
            "learning_rate",
            "learning_rate_schedule",
            "batch_size",
            "n_epochs",
            "clip_range",
            "ent_coef",
            "max_grad_norm",
            "std_normalization",
            "groups_per_update",
            "model",
            "layers",
            "width",
            "lora",
            "language",
            "num_generations",
            "max_completion_length",
            "temperature",
            "top_p",
            "beta",
        ),
        summary="a small language model trained on text and tools",
    ),
)
_BUILT = ("PPO", "A2C", "DQN", "SAC", "TD3", "DDPG", "GRPO", "A3C", "SLM")

SUPPORTED_ALGORITHMS = ("GRPO", "PPO", "SAC", "DQN", "A2C", "A3C", "TD3", "DDPG", "SLM")
"""Every algorithm name a client may send."""

ALGORITHMS: Mapping[str, Algorithm] = {one.name: one for one in _KNOWN if one.name in _BUILT}
"""Those that this build trains for real; the others are refused, never replaced."""

AVAILABLE_ALGORITHMS = tuple(ALGORITHMS)
"""Their names."""

_KINDS = {
    "box": "Box",
    "discrete": "Discrete",
    "multi_discrete": "MultiDiscrete",
    "multi_binary": "MultiBinary",
    "dict": "Dict",
    "text": "Text",
    "tuple": "Tuple",
}


def by_actions() -> str:
    """Which algorithm of this build takes which actions, in words: for who named none of them."""
    kinds = ("Discrete", "MultiDiscrete", "MultiBinary", "Box", "Text")
    built = ALGORITHMS.values()
    told = {kind: [one.name for one in built if kind in one.actions] for kind in kinds}
    return "; ".join(f"{', '.join(names)} for {kind}" for kind, names in told.items() if names)


def advice(name: str) -> str:
    """What to write instead of a name that is no algorithm's: the nearest, or what takes what."""
    near = rules.nearest(name, AVAILABLE_ALGORITHMS)
    return near or f"By the environment's actions: {by_actions()}"


def validate_algorithm(algorithm: object) -> str:
    """The canonical name of an algorithm that this build can train.

    Raises:
        ConfigurationError: unknown, or known but not built (code `algorithm_unavailable`).
    """
    name = algorithm.strip().upper() if isinstance(algorithm, str) else ""
    if name not in SUPPORTED_ALGORITHMS:
        raise ConfigurationError(
            f"unknown algorithm {rules.shown(algorithm)}, not one of "
            f"{', '.join(SUPPORTED_ALGORITHMS)}",
            code="unknown_algorithm",
            hint=advice(name),
        )
    if name not in AVAILABLE_ALGORITHMS:
        raise ConfigurationError(
            f"algorithm {name!r} is not available in this build",
            code="algorithm_unavailable",
            hint=f"Use {', '.join(AVAILABLE_ALGORITHMS)}",
        )
    return name


def misfit(
    algorithm: str, observation_space: Mapping[str, object], action_space: Mapping[str, object]
) -> str | None:
    """Why the algorithm cannot learn on these spaces; None when it can.

    The spaces are as an environment's contract writes them.
    """
    one = ALGORITHMS[algorithm]
    problem = _unusable(action_space, one.actions, observed=False)
    if problem is not None:
        return f"{algorithm} cannot learn actions of {problem}"
    problem = _unusable(observation_space, one.observations, observed=True)
    if problem is not None:
        return f"{algorithm} cannot learn from observations of {problem}"
    return None


def fitting(
    observation_space: Mapping[str, object], action_space: Mapping[str, object]
) -> list[str]:
    """The names of the algorithms of this build that can learn on these spaces."""
    return [name for name in ALGORITHMS if misfit(name, observation_space, action_space) is None]


def require_fit(
    algorithm: str, observation_space: Mapping[str, object], action_space: Mapping[str, object]
) -> None:
    """Refuse spaces that the algorithm has no network for.

    Raises:
        ConfigurationError: naming the space, and the algorithms that fit (`space_not_learnable`).
    """
    problem = misfit(algorithm, observation_space, action_space)
    if problem is None:
        return
    others = fitting(observation_space, action_space)
    raise ConfigurationError(
        problem,
        code="space_not_learnable",
        hint=f"Use {' or '.join(others)}" if others else "No algorithm of this build takes them",
    )


def require_settings_fit(
    settings: Mapping[str, object],
    observation_space: Mapping[str, object],
    action_space: Mapping[str, object],
) -> None:
    """Refuse settings that no network on these spaces can have.

    Raises:
        ConfigurationError: naming the setting and the space (`setting_misfit`).
    """
    observed, acted = _kind(observation_space), _kind(action_space)
    policy = settings.get("policy")
    natural = "MultiInputPolicy" if observed == "Dict" else "MlpPolicy"
    image = _is_image(observation_space)
    if (
        (policy == "CnnPolicy" and not image)
        or (policy == "MlpPolicy" and observed == "Dict")
        or (policy == "MultiInputPolicy" and observed != "Dict")
    ):
        raise ConfigurationError(
            f"policy {policy!r} does not fit observations of a {observed} space of shape "
            f"{list(_sides(observation_space.get('shape')))}",
            code="setting_misfit",
            hint=f"Leave policy out, or use {'CnnPolicy' if image else natural!r}",
        )
    if settings.get("use_sde") and acted != "Box":
        raise ConfigurationError(
            f"use_sde is for actions of a Box space, not of a {acted} space",
            code="setting_misfit",
            hint="Leave use_sde out",
        )


def _kind(space: Mapping[str, object]) -> str:
    return _KINDS.get(str(space.get("kind")), str(space.get("kind")))


def _is_image(space: Mapping[str, object]) -> bool:
    """Whether convolutions may take it; they shrink anything below 36 pixels to nothing."""
    shape = _sides(space.get("shape"))
    return (
        _kind(space) == "Box"
        and len(shape) == 3
        and space.get("dtype") == "uint8"
        and min(sorted(shape)[1:]) >= 36
    )


def _unusable(space: Mapping[str, object], kinds: frozenset[str], *, observed: bool) -> str | None:
    """The space, or the part of it, that is not learnable, in words."""
    kind = _kind(space)
    shape = _sides(space.get("shape"))
    if kind not in kinds:
        return f"a {kind} space; it takes {', '.join(sorted(kinds))}"
    if kind == "Dict" and "Text" not in kinds:
        inner = kinds - {"Dict"}
        for name, part in _parts(space).items():
            problem = _unusable(part, inner, observed=observed)
            if problem is not None:
                return f"a Dict whose {name!r} is {problem}"
    if 0 in shape:
        return f"a {kind} space of shape {list(shape)}, which has nothing in it"
    if observed:
        return None
    if kind == "Box" and (not str(space.get("dtype")).startswith("float") or _endless(space)):
        return "a Box space that is not of floats between finite bounds"
    if kind == "MultiBinary" and len(shape) > 1:
        return f"a MultiBinary space of shape {list(shape)}; it takes flat ones"
    return None


def _parts(space: Mapping[str, object]) -> Mapping[str, Mapping[str, object]]:
    details = space.get("details")
    inside = cast("Mapping[str, object]", details if isinstance(details, Mapping) else space)
    return cast("Mapping[str, Mapping[str, object]]", inside.get("spaces") or {})


def _sides(shape: object) -> tuple[int, ...]:
    return tuple(cast("Sequence[int]", shape)) if isinstance(shape, list | tuple) else ()


def _endless(space: Mapping[str, object]) -> bool:
    details = space.get("details")
    inside = cast("Mapping[str, object]", details if isinstance(details, Mapping) else space)
    if inside.get("bounds_kind") == "unbounded":
        return True
    return any(_has_infinity(inside.get(end)) for end in ("low", "high"))


def _has_infinity(bound: object) -> bool:
    if isinstance(bound, list | tuple):
        return any(_has_infinity(one) for one in cast("Sequence[object]", bound))
    return str(bound).lower().lstrip("+-") in ("inf", "infinity")

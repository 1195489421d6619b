"""The settings of the algorithms: what each may be and what it means, in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rleaas.training import config_rules as rules

POLICIES = ("MlpPolicy", "CnnPolicy", "MultiInputPolicy")
SCHEDULES = ("constant", "linear")
CREDITS = ("outcome", "reward_to_go")


@dataclass(frozen=True, slots=True)
class Rule:
    """What one key of a config may be.

    Attributes:
        check: returns the value, or refuses it by the name that it is called with.
        schema: the same rule as JSON Schema.
        meaning: one line for people.
    """

    check: Callable[[str, object], object]
    schema: Mapping[str, object]
    meaning: str


def _above_zero(meaning: str) -> Rule:
    schema = {"type": "number", "exclusiveMinimum": 0, "maximum": rules.LARGEST_FACTOR}
    return Rule(rules.factor_above_zero, schema, meaning)


def _at_least_zero(meaning: str) -> Rule:
    schema = {"type": "number", "minimum": 0, "maximum": rules.LARGEST_FACTOR}
    return Rule(rules.factor_from_zero, schema, meaning)


def _share(meaning: str) -> Rule:
    return Rule(rules.fraction, {"type": "number", "minimum": 0, "maximum": 1}, meaning)


def _positive_share(meaning: str) -> Rule:
    schema = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
    return Rule(rules.positive_fraction, schema, meaning)


def _count(meaning: str, least: int = 1, most: int | None = None) -> Rule:
    schema = {"type": "integer", "minimum": least}
    if most is not None:
        schema["maximum"] = most
    return Rule(rules.whole(least, most), schema, meaning)


def _word(meaning: str, choices: tuple[str, ...]) -> Rule:
    return Rule(rules.one_of(choices), {"enum": list(choices)}, meaning)


def _flag(meaning: str) -> Rule:
    return Rule(rules.flag, {"type": "boolean"}, meaning)


HYPERPARAMETERS: Mapping[str, Rule] = {
    "learning_rate": _above_zero("step size of the optimiser"),
    "learning_rate_schedule": _word("how it goes on with the episodes that are left", SCHEDULES),
    # Advantages are normalised over a batch, which one sample cannot be.
    "batch_size": _count("samples of one gradient step", 2, 1_000_000),
    "n_steps": _count("steps of each session between two updates", 1, 1_000_000),
    "n_epochs": _count("passes over the samples of one update", 1, 10_000),
    "gamma": _share("how much a later reward counts against an earlier one"),
    "gae_lambda": _share("from one-step (0) to whole-episode (1) advantages"),
    "ent_coef": Rule(
        rules.coefficient_or_auto,
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": rules.LARGEST_FACTOR},
                {"const": "auto"},
            ]
        },
        "weight of the entropy; `auto` learns it, where the algorithm can",
    ),
    "vf_coef": _at_least_zero("weight of the value loss"),
    "max_grad_norm": _above_zero("longest gradient"),
    "clip_range": _positive_share("how far one update may go from the policy that acted"),
    "normalize_advantage": _flag("whether advantages are normalised in each update"),
    "use_sde": _flag("whether exploration depends on the state"),
    "rms_prop_eps": _above_zero("what keeps RMSprop from dividing by nothing"),
    "buffer_size": _count("steps that are remembered", 1, 10_000_000),
    "replay_megabytes": _count("most of what is remembered that a checkpoint keeps", 1, 1_000_000),
    "learning_starts": _count("steps before the first update", 0, 10_000_000),
    "tau": _positive_share("how fast target networks follow"),
    "train_freq": _count("steps between two updates", 1, 1_000_000),
    "gradient_steps": Rule(
        rules.gradient_steps,
        {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 1_000_000}, {"const": -1}]},
        "gradient steps of one update; -1 is as many as were stepped",
    ),
    "target_update_interval": _count("steps between two updates of the target network"),
    "exploration_fraction": _positive_share("the part of the training in which exploration falls"),
    "exploration_initial_eps": _share("random actions at the start"),
    "exploration_final_eps": _share("random actions at the end"),
    "policy_delay": _count("critic updates for each one of the policy"),
    "target_policy_noise": _at_least_zero("noise on target actions"),
    "target_noise_clip": _at_least_zero("most noise on a target action"),
    "action_noise": _at_least_zero("deviation of the noise on actions while exploring"),
    "policy": _word("the kind of network", POLICIES),
    "net_arch": Rule(
        rules.net_arch,
        {
            "type": "array",
            "items": {"type": "integer", "minimum": 1, "maximum": rules.WIDEST_LAYER},
            "minItems": 1,
            "maxItems": rules.MOST_LAYERS,
        },
        "widths of the network's layers",
    ),
    "group_size": _count("episodes that share a start", 2, 1024),
    "groups_per_update": _count("groups of one update", 1, 1024),
    "clip_range_high": _above_zero("how far above, where that differs from how far below"),
    "kl_coef": _at_least_zero("weight of the distance to the reference policy"),
    "length_normalization": _word("what a loss is divided by", ("episode", "constant")),
    "std_normalization": _flag("whether advantages are divided by their group's deviation"),
    "reference": _word("the policy that the distance is to", ("initial", "previous")),
    "credit": _word("what a step is given: its episode's return, or what followed it", CREDITS),
    "n_workers": _count("processes that act and learn", 1, 64),
    "t_max": _count("steps of an actor between two updates", 1, 1_000_000),
    "optimizer": _word("the optimiser whose statistics all actors share", ("rmsprop", "adam")),
    "lock_updates": _flag("whether actors take turns to update the shared weights"),
    "model": Rule(
        rules.name,
        {"type": "string", "minLength": 1},
        "directory of a language model; without it a tiny one is made",
    ),
    "layers": _count("layers of a model that is made here", 1, 32),
    "width": Rule(
        rules.model_width,
        {"type": "integer", "minimum": 16, "maximum": 2048, "multipleOf": 16},
        "width of a model that is made here",
    ),
    "lora": Rule(rules.lora, {"type": ["object", "boolean"]}, "low-rank adapters"),
    "language": Rule(
        rules.mapping,
        {"type": "object"},
        "pieces that actions are made of, ends of actions, example texts",
    ),
    "num_generations": _count("episodes that share a start", 2, 256),
    "max_completion_length": _count("most tokens of a completion", 1, 32_768),
    "temperature": _above_zero("how freely tokens are drawn"),
    "top_p": _positive_share("the likeliest tokens that are drawn from, by their share"),
    "beta": _at_least_zero("weight of the distance to the reference model"),
}
"""Every key that an algorithm may take in its config beside the common ones."""

"""One entry of `training` in a config.json: what it may say, and the run that it asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, cast

from rlcore import ConfigurationError

from rleaas.training import config_rules as rules
from rleaas.training.algorithms import SUPPORTED_ALGORITHMS, validate_algorithm
from rleaas.training.config import validate_training_config
from rleaas.training.run_file.positions import Node, Position, member_path
from rleaas.training.run_file.problems import Findings, refusal
from rleaas.training.run_file.reward import check_reward, reward_from
from rleaas.training.simulation import validate_simulation

DEFAULT_ALGORITHM: Final = "PPO"
DEFAULT_MAX_STEPS: Final = 200
DEFAULT_EPISODES: Final = 100

PRECEDENCE: Final = "The entry's own key counts, then `config`, then `simulation`."

# Keys of an entry, and where else the same may be said: in this order.
_ELSEWHERE: Mapping[str, Sequence[Sequence[str]]] = {
    "algorithm": (("config", "algorithm"),),
    "episodes": (
        ("config", "episodes"),
        ("config", "num_episodes"),
        ("simulation", "episode_settings", "num_episodes"),
        ("config", "simulation", "episode_settings", "num_episodes"),
    ),
    "max_steps": (
        ("config", "max_steps"),
        ("config", "max_steps_per_episode"),
        ("simulation", "episode_settings", "max_steps"),
        ("config", "simulation", "episode_settings", "max_steps"),
    ),
    "description": (("config", "description"),),
    "reward_fn": (("config", "reward_fn"),),
    "simulation": (("config", "simulation"),),
}


_IN_CONFIG: Final = frozenset(
    steps[1] for ways in _ELSEWHERE.values() for steps in ways if steps[0] == "config"
)
"""What `config` may say as well as the entry, under whichever name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that an entry asks for.

    Attributes:
        index: which entry it is, from 0.
        id: its `training`, as it was written.
        path: of the entry, such as `training[0]`.
        settings: of `TrainingJob.run`: episodes, steps and whatever the algorithm takes.
        at: where the entry begins.
        written: where its keys were written, and as `config.gamma` those of its config.
    """

    index: int
    id: int | str
    path: str
    at: Position
    environment_name: str
    algorithm: str
    name: str | None = None
    agent_id: str | None = None
    scenario_id: str | None = None
    verifier_ids: tuple[str, ...] = ()
    resume_from_checkpoint: str | None = None
    priority: int | None = None
    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    written: Mapping[str, Position] = field(default_factory=dict[str, Position])


def text_or_blank(key: str, value: object) -> str | None:
    """A short string; a blank one is none."""
    return rules.short_text(key, value).strip() or None


def description(key: str, value: object) -> str | None:
    """A string; a blank one is none."""
    return rules.long_text(key, value).strip() or None


def name_of(key: str, value: object) -> str:
    """A string with something in it."""
    found = rules.short_text(key, value).strip()
    if not found:
        raise rules.bad(key, value, "must not be blank")
    return found


def run_id(key: str, value: object) -> int | str:
    """A whole number, or a string with something in it and no comma."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str) or not value.strip() or "," in value:
        raise rules.bad(key, value, "must be an integer, or a string without a comma")
    return value.strip()


def names_of(key: str, value: object) -> tuple[str, ...]:
    """A list of strings with something in them."""
    if not isinstance(value, list):
        raise rules.bad(key, value, "must be a list of ids")
    items = cast("list[object]", value)
    return tuple(name_of(f"{key}[{n}]", one) for n, one in enumerate(items))


def priority(key: str, value: object) -> int:
    """An integer from -100 to 100."""
    if not isinstance(value, int) or isinstance(value, bool) or not -100 <= value <= 100:
        raise rules.bad(key, value, "must be an integer from -100 to 100")
    return value


def _algorithm(_key: str, value: object) -> str:
    return validate_algorithm(value)


def _simulation(_key: str, value: object) -> object:
    return validate_simulation(value, strict=True)


ENTRY_RULES: Mapping[str, Callable[[str, object], object]] = {
    "training": run_id,
    "environment_name": name_of,
    "name": text_or_blank,
    "description": description,
    "agent_id": text_or_blank,
    "scenario_id": text_or_blank,
    "verifier_ids": names_of,
    "algorithm": _algorithm,
    "max_steps": rules.positive_int,
    "episodes": rules.positive_int,
    "reward_fn": check_reward,
    "simulation": _simulation,
    "config": rules.mapping,
    "resume_from_checkpoint": text_or_blank,
    "priority": priority,
}
"""Every key of an entry."""

REQUIRED: Final = ("training", "environment_name")


def read_entry(node: Node, index: int, folder: Path | None, found: Findings) -> Run | None:
    """Return the run that an entry asks for, or note all that is wrong with it.

    Args:
        node: the entry.
        index: its place in `training`, from 0.
        folder: where the paths of reward functions begin; None looks at no file.
        found: what notes the problems.
    """
    path = f"training[{index}]"
    if not isinstance(node.value, dict):
        found.refuse(path, node.at, "must be an object with `training` and `environment_name`")
        return None
    known = len(found.errors)
    _check_keys(node, path, found)
    told = _settle(node, path, found)
    config = _config_of(node, told)
    _check_config(node, path, told, config, found)
    reward = told.get("reward_fn")
    if reward is not None and len(found.errors) == known:
        config["reward_fn"] = reward_from(reward.value, folder, reward.at, path, found)
    if len(found.errors) > known:
        return None
    return _run_of(node, index, path, told, config)


def _check_keys(node: Node, path: str, found: Findings) -> None:
    for key, member in node.members.items():
        below = member_path(path, key)
        if key not in ENTRY_RULES:
            error = rules.unknown(key, path, tuple(ENTRY_RULES))
            found.refuse(below, node.keys[key], "is no key of an entry", error.hint)
        elif member.value is not None or key in REQUIRED:
            rule = ENTRY_RULES[key]
            found.checked(member, below, partial(rule, key))
    for key in REQUIRED:
        if key not in node.members:
            found.refuse(f"{path}.{key}", node.at, "is missing")


def _settle(node: Node, path: str, found: Findings) -> dict[str, Node]:
    """Return what counts of all that is said; what it overrules differently is warned of."""
    told: dict[str, Node] = {}
    for key, elsewhere in _ELSEWHERE.items():
        first = f"{path}.{key}"
        winner = _said(node, (key,))
        for steps in elsewhere:
            other = _said(node, steps)
            if other is None:
                continue
            place = f"{path}.{'.'.join(steps)}"
            if winner is None:
                winner, first = other, place
            elif not _same(key, winner.value, other.value):
                found.warn(
                    place,
                    other.at,
                    f"has no effect: {first} at {winner.at.line}:{winner.at.column} overrules it",
                    PRECEDENCE,
                )
        if winner is not None:
            told[key] = winner
    _settle_seed(node, path, found)
    return told


def _settle_seed(node: Node, path: str, found: Findings) -> None:
    own, nested = _said(node, ("simulation", "seed")), _said(node, ("config", "seed"))
    if own is not None and nested is not None and own.value != nested.value:
        found.warn(
            f"{path}.config.seed",
            nested.at,
            f"has no effect: {path}.simulation.seed at {own.at.line}:{own.at.column} overrules it",
            PRECEDENCE,
        )


def _said(node: Node, steps: Sequence[str]) -> Node | None:
    at: Node | None = node
    for step in steps:
        at = None if at is None else at.members.get(step)
    return at if at is not None and at.value not in (None, "") else None


def _same(key: str, one: object, other: object) -> bool:
    if key == "algorithm" and isinstance(one, str) and isinstance(other, str):
        return one.strip().upper() == other.strip().upper()
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _config_of(node: Node, told: Mapping[str, Node]) -> dict[str, object]:
    nested = node.members.get("config")
    given: object = {} if nested is None else nested.value
    config = dict(cast("dict[str, object]", given)) if isinstance(given, dict) else {}
    for elsewhere in _ELSEWHERE.values():
        for steps in elsewhere:
            if steps[0] == "config" and len(steps) == 2:
                config.pop(steps[1], None)
    for key in ("description", "simulation"):
        if key in told:
            config[key] = told[key].value
    if _said(node, ("simulation", "seed")) is not None:
        config.pop("seed", None)
    return config


def _check_config(
    node: Node,
    path: str,
    told: Mapping[str, Node],
    config: Mapping[str, object],
    found: Findings,
) -> None:
    nested = node.members.get("config")
    if nested is None or not isinstance(nested.value, dict):
        return
    algorithm = told["algorithm"].value if "algorithm" in told else DEFAULT_ALGORITHM
    known = len(found.errors)
    check = _config_check(algorithm)
    plain = Node({}, nested.at)
    for key, member in nested.members.items():
        if key in ENTRY_RULES and key in _IN_CONFIG:
            rule = ENTRY_RULES[key]
            if member.value is not None:
                found.checked(
                    member,
                    f"{path}.config.{key}",
                    partial(rule, key),
                )
        elif key in ("num_episodes", "max_steps_per_episode"):
            found.checked(
                member,
                f"{path}.config.{key}",
                partial(rules.positive_int, key),
            )
        else:
            cast("dict[str, object]", plain.value)[key] = member.value
            plain.members[key], plain.keys[key] = member, nested.keys[key]
    found.checked(plain, f"{path}.config", check)
    if len(found.errors) == known:
        error = refusal(check, config)
        if error is not None:
            found.refuse(f"{path}.config", nested.at, error.message, error.hint)


def _config_check(algorithm: object) -> Callable[[object], object]:
    """Return the check of a config; where nobody knows the algorithm, that of any of them."""
    try:
        name = validate_algorithm(algorithm)
    except ConfigurationError:
        return _check_for_any
    return lambda value: validate_training_config(name, 1, 1, rules.mapping("config", value))


def _check_for_any(value: object) -> object:
    given = rules.mapping("config", value)
    errors: list[ConfigurationError] = []
    for name in SUPPORTED_ALGORITHMS:
        try:
            return validate_training_config(name, 1, 1, given)
        except ConfigurationError as error:
            if error.code != "algorithm_unavailable":
                errors.append(error)
    raise errors[0]


def _run_of(
    node: Node, index: int, path: str, told: Mapping[str, Node], config: dict[str, object]
) -> Run:
    def own(key: str) -> object:
        member = node.members.get(key)
        if member is None or member.value is None:
            return None
        return ENTRY_RULES[key](key, member.value)

    inside = node.members["config"].keys if "config" in node.members else {}
    episodes = told["episodes"].value if "episodes" in told else DEFAULT_EPISODES
    steps = told["max_steps"].value if "max_steps" in told else DEFAULT_MAX_STEPS
    algorithm = told["algorithm"].value if "algorithm" in told else DEFAULT_ALGORITHM
    return Run(
        index=index,
        id=cast("int | str", own("training")),
        path=path,
        at=node.at,
        environment_name=cast("str", own("environment_name")),
        algorithm=validate_algorithm(algorithm),
        name=cast("str | None", own("name")),
        agent_id=cast("str | None", own("agent_id")),
        scenario_id=cast("str | None", own("scenario_id")),
        verifier_ids=cast("tuple[str, ...]", own("verifier_ids") or ()),
        resume_from_checkpoint=cast("str | None", own("resume_from_checkpoint")),
        priority=cast("int | None", own("priority")),
        settings={**config, "episodes": episodes, "max_steps": steps},
        written={
            **{key: member.at for key, member in node.members.items()},
            **{f"config.{key}": at for key, at in inside.items()},
        },
    )

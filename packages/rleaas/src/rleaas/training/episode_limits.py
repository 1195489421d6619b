"""How many episodes, and how long: said in four places, settled by one rule.

What the request says holds. Where it says nothing, its config does, under any of the names that
published clients use; then `simulation.episode_settings`; then the default. The request and the
config must agree; episode settings that say something else are not used, and a warning says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlcore import ConfigurationError

from rleaas.training import config_rules as rules

DEFAULT_EPISODES = 100
DEFAULT_MAX_STEPS = 1000
EPISODE_KEYS = ("episodes", "num_episodes")
STEP_KEYS = ("max_steps_per_episode", "max_steps")


@dataclass(frozen=True, slots=True)
class Settled:
    """What holds, and what was said but is not used."""

    value: int
    warning: str | None = None


def settle_episodes(told: object, config: dict[str, object], inside: int | None) -> Settled:
    """The number of episodes; its keys are taken out of `config`.

    Raises:
        ConfigurationError: one is not a whole number above 0, or two contradict each other.
    """
    return _settle("num_episodes", told, config, EPISODE_KEYS, inside, DEFAULT_EPISODES)


def settle_max_steps(told: object, config: dict[str, object], inside: int | None) -> Settled:
    """The most steps of an episode; its keys are taken out of `config`.

    Raises:
        ConfigurationError: one is not a whole number above 0, or two contradict each other.
    """
    return _settle("max_steps", told, config, STEP_KEYS, inside, DEFAULT_MAX_STEPS)


def _settle(
    name: str,
    told: object,
    config: dict[str, object],
    keys: Sequence[str],
    inside: int | None,
    default: int,
) -> Settled:
    said = {name: told, **{f"config.{key}": config.pop(key, None) for key in keys}}
    checked = {
        key: rules.positive_int(key, value) for key, value in said.items() if value is not None
    }
    if len(set(checked.values())) > 1:
        both = " contradicts ".join(f"{key} {value}" for key, value in checked.items())
        raise ConfigurationError(both, code="invalid_training_config", hint=f"Give {name} once")
    if not checked:
        return Settled(default if inside is None else inside)
    key, value = next(iter(checked.items()))
    warning = None
    if inside not in (None, value):
        setting = f"simulation.episode_settings.{name}"
        warning = f"{setting} {inside} is not used: {key} {value} holds"
    return Settled(value, warning)

"""Which episodes a run plays: how many, with which seeds, under which limits."""

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsIndex, cast

from rlcore import ConfigurationError

STEP_CEILING = 100_000
"""No episode is longer than this, whatever it was asked for."""

_SEED_RANGE = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, slots=True)
class Plan:
    """One episode to play."""

    index: int
    seed: int
    trial: int


@dataclass(frozen=True, slots=True)
class Limits:
    """Where an episode is cut off; a hit marks it truncated."""

    steps: int = STEP_CEILING
    seconds: float | None = None


def plans(
    *,
    seeds: object,
    episodes: int | None,
    seed: int,
    trial_index_base: int,
) -> tuple[Plan, ...]:
    """Return the episodes in order: the given seeds, or the run's seed plus the index.

    Raises:
        ConfigurationError: `seeds` and `episodes` contradict each other, or a number is no number.
    """
    if seeds is None:
        count = 1 if episodes is None else _index(episodes, "episodes")
        if count < 0:
            raise ConfigurationError(f"episodes is {count}", hint="give 0 or more")
        chosen = [_seed(seed) + index for index in range(count)]
    else:
        if isinstance(seeds, str | bytes) or not isinstance(seeds, Iterable):
            raise ConfigurationError(f"seeds is {seeds!r}", hint="give a list or a range of ints")
        chosen = [_seed(item) for item in cast("Iterable[object]", seeds)]
        if episodes is not None and episodes != len(chosen):
            raise ConfigurationError(
                f"episodes is {episodes}, but there are {len(chosen)} seeds",
                hint="give one of them",
            )
    base = _index(trial_index_base, "trial_index_base")
    return tuple(Plan(index, item, base + index) for index, item in enumerate(chosen))


def limits(*, max_episode_steps: int | None, max_episode_seconds: float | None) -> Limits:
    """Return the limits of every episode.

    Raises:
        ConfigurationError: a limit is not positive.
    """
    steps = STEP_CEILING
    if max_episode_steps is not None:
        steps = min(steps, _index(max_episode_steps, "max_episode_steps"))
        if steps < 1:
            raise ConfigurationError(f"max_episode_steps is {steps}", hint="give at least 1")
    if max_episode_seconds is not None and not max_episode_seconds > 0:
        raise ConfigurationError(
            f"max_episode_seconds is {max_episode_seconds!r}", hint="give a positive number"
        )
    return Limits(steps, max_episode_seconds)


def _seed(value: object) -> int:
    seed = _index(value, "a seed")
    if seed not in _SEED_RANGE:
        raise ConfigurationError(f"seed {seed} does not fit into 64 bits")
    return seed


def _index(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise ConfigurationError(f"{what} is {value!r}", hint="give a whole number")
    return operator.index(value)

"""Which episodes a run plays: how many, with which seeds, under which limits."""

import math
from collections.abc import Iterable, Sized
from dataclasses import dataclass
from itertools import islice
from typing import cast

from rlcore import ConfigurationError

from rlmesh.runs.arguments import number, whole_number

STEP_CEILING = 100_000
"""No episode is longer than this, whatever it was asked for."""

SEED_CEILING = 1_000_000
"""No more seeds than this are read where nothing says how many episodes there are."""

_SEED_RANGE = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, slots=True)
class Plan:
    """One episode to play."""

    index: int
    seed: int
    trial: int
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Limits:
    """Where an episode is cut off: `steps` and `seconds` mark it truncated.

    `timeout` is how many seconds it may take at all, also while a call hangs; then it has no score.
    """

    steps: int = STEP_CEILING
    seconds: float | None = None
    timeout: float | None = None


def plans(
    *,
    seeds: object,
    episodes: int | None,
    seed: int,
    trial_index_base: int,
) -> tuple[Plan, ...]:
    """Return the episodes in order: the given seeds, or the run's seed plus the index.

    Raises:
        ConfigurationError: `seeds` and `episodes` contradict each other, a number is no number, a
            seed does not fit into 64 bits, or the seeds do not end.
    """
    count = None if episodes is None else whole_number(episodes, "episodes")
    if count is not None and count < 0:
        raise ConfigurationError(f"episodes is {count}", hint="give 0 or more")
    if seeds is None:
        chosen = _counted(whole_number(seed, "seed"), 1 if count is None else count)
    else:
        if isinstance(seeds, str | bytes) or not isinstance(seeds, Iterable):
            raise ConfigurationError(f"seeds is {seeds!r}", hint="give a list or a range of ints")
        chosen = _given(cast("Iterable[object]", seeds), count)
    base = whole_number(trial_index_base, "trial_index_base")
    if base < 0:
        raise ConfigurationError(f"trial_index_base is {base}", hint="give 0 or more")
    return tuple(Plan(index, item, base + index) for index, item in enumerate(chosen))


def limits(
    *,
    max_episode_steps: int | None,
    max_episode_seconds: float | None,
    episode_timeout_seconds: float | None = None,
) -> Limits:
    """Return the limits of every episode.

    Raises:
        ConfigurationError: a limit is not a positive number.
    """
    steps = STEP_CEILING
    if max_episode_steps is not None:
        steps = min(steps, whole_number(max_episode_steps, "max_episode_steps"))
        if steps < 1:
            raise ConfigurationError(f"max_episode_steps is {steps}", hint="give at least 1")
    return Limits(
        steps,
        seconds_given(max_episode_seconds, "max_episode_seconds"),
        seconds_given(episode_timeout_seconds, "episode_timeout_seconds"),
    )


def seconds_given(value: float | None, name: str) -> float | None:
    """Return a span of time; None where there is none, or no end of it.

    Raises:
        ConfigurationError: it is not a positive number.
    """
    if value is None:
        return None
    seconds = number(value, name)
    if seconds <= 0:
        raise ConfigurationError(f"{name} is {value!r}", hint="give a positive number")
    return None if math.isinf(seconds) else seconds


def same_count(episodes: object, max_episodes: object) -> int | None:
    """Return how many episodes are wanted, which has two names.

    Raises:
        ConfigurationError: both are given and differ, or one is no number.
    """
    one = None if episodes is None else whole_number(episodes, "episodes")
    other = None if max_episodes is None else whole_number(max_episodes, "max_episodes")
    if one is not None and other is not None and one != other:
        raise ConfigurationError(
            f"episodes is {one} and max_episodes is {other}", hint="give one of them"
        )
    return other if one is None else one


def _counted(first: int, count: int) -> list[int]:
    for seed in (first, first + max(count - 1, 0)):
        if seed not in _SEED_RANGE:
            raise ConfigurationError(
                f"seed is {first}, and seed {seed} does not fit into 64 bits",
                hint="give a smaller number",
            )
    return list(range(first, first + count))


def _given(seeds: Iterable[object], count: int | None) -> list[int]:
    if count is None:
        chosen = [_seed(item) for item in islice(seeds, SEED_CEILING + 1)]
        if len(chosen) > SEED_CEILING:
            raise ConfigurationError(
                f"seeds holds more than {SEED_CEILING} seeds", hint="say how many: episodes=..."
            )
        return chosen
    chosen = [_seed(item) for item in islice(seeds, count)]
    # What knows its length is meant to be played whole; an iterator may go on for ever.
    found = len(seeds) if isinstance(seeds, Sized) else len(chosen)
    if found != count:
        raise ConfigurationError(
            f"episodes is {count}, but there are {found} seeds", hint="give one of them"
        )
    return chosen


def _seed(value: object) -> int:
    seed = whole_number(value, "a seed")
    if seed not in _SEED_RANGE:
        raise ConfigurationError(f"seed {seed} does not fit into 64 bits")
    return seed

"""What a worker's report may say: one rule for each name that readers of a job rely on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, cast

from rleaas.server.rules.json_values import fields, integer, number

# Beyond it, not every JSON reader has whole numbers.
_LARGEST_COUNT: Final = 2**53
# What a column of 32 bits holds.
_LARGEST_COLUMN: Final = 2**31 - 1
# Squares of it, summed over any number of episodes, are still finite.
LARGEST_NUMBER: Final = 1e150
_LONGEST_NAME: Final = 200
_LONGEST_WORDS: Final = 2_000
_LONGEST_TEXT: Final = 1_000_000
_MOST_NAMED: Final = 1_000
_EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
_CLOCK_SKEW: Final = timedelta(days=1)

NESTED: Final = ("results", "report")
# What the server itself keeps among a job's results.
_OURS: Final = frozenset(
    {"alerts", "episodes_done", "highest_episode", "human_decision", "peak_avg_reward"}
)
_NEEDED: Final = {"metric": ("episode",), "episode": ("index", "outcome")}


@dataclass(frozen=True, slots=True)
class _Fact:
    what: str
    holds: Callable[[object], bool]


def problem_in(kind: str, data: Mapping[str, object]) -> str | None:
    """Say which field of a report nobody could read as what its name says; None when all can."""
    if kind == "heartbeat":
        return None  # nothing of it is kept
    for name in _NEEDED.get(kind, ()):
        if data.get(name) is None:
            return f"data.{name} is missing; a report of the kind {kind!r} has it"
    ends = kind in ("completed", "cancelled")
    found = _problem(data, "data", ends=ends)
    for name in NESTED:
        nested = data.get(name)
        if found is None and nested is not None:
            if not isinstance(nested, dict):
                return f"data.{name} is no object"
            found = _problem(cast("dict[str, object]", nested), f"data.{name}", ends=ends)
    return found


def problem_at(moment: datetime, now: datetime) -> str | None:
    """Say what is wrong with the time of a report; one without a zone is in UTC."""
    told = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    try:
        fits = _EARLIEST <= told <= now + _CLOCK_SKEW
    except OverflowError:
        fits = False
    if fits:
        return None
    return f"at is {moment.isoformat()}; it is neither before the year 2000 nor a day from now"


def sound(told: Mapping[str, object]) -> dict[str, object]:
    """The fields that are what their names say; the others were kept before they were checked."""
    return {name: value for name, value in told.items() if _is_sound(name, value)}


def is_episode(told: Mapping[str, object]) -> bool:
    """Whether it is an episode that readers can show."""
    return told.get("index") is not None and told.get("outcome") is not None


def _is_sound(name: str, value: object) -> bool:
    fact = _FACTS.get(name)
    return value is None or fact is None or fact.holds(value)


def _problem(data: Mapping[str, object], path: str, *, ends: bool) -> str | None:
    for name, value in data.items():
        if ends and name in _OURS:
            return f"{path}.{name} is the server's own"
        if not _is_sound(name, value):
            return f"{path}.{name} is {repr(value)[:60]}, and not {_FACTS[name].what}"
    return None


def _within(least: float, most: float) -> Callable[[object], bool]:
    def holds(value: object) -> bool:
        told = number(value)
        return told is not None and least <= told <= most

    return holds


def _whole(most: int) -> Callable[[object], bool]:
    def holds(value: object) -> bool:
        told = integer(value)
        return told is not None and 0 <= told <= most

    return holds


def _text(most: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and len(value) <= most


def _list_of(
    holds: Callable[[object], bool], length: int | None = None
) -> Callable[[object], bool]:
    def all_hold(value: object) -> bool:
        if not isinstance(value, list):
            return False
        given = cast("list[object]", value)
        return (length is None or len(given) == length) and all(map(holds, given))

    return all_hold


def _named(holds: Callable[[object], bool]) -> Callable[[object], bool]:
    def all_hold(value: object) -> bool:
        given = fields(value)
        return (
            isinstance(value, dict)
            and len(given) <= _MOST_NAMED
            and all(len(name) <= _LONGEST_NAME and holds(one) for name, one in given.items())
        )

    return all_hold


def _episode(value: object) -> bool:
    told = fields(value)
    return is_episode(told) and all(_is_sound(name, one) for name, one in told.items())


_MEASURED: Final = _Fact(
    f"a number between -{LARGEST_NUMBER:g} and {LARGEST_NUMBER:g}",
    _within(-LARGEST_NUMBER, LARGEST_NUMBER),
)
_SHARE: Final = _Fact("a number from 0 to 1", _within(0, 1))
_SECONDS: Final = _Fact("a number of seconds from 0", _within(0, 1e12))
_COUNT: Final = _Fact(f"a whole number from 0 to {_LARGEST_COUNT}", _whole(_LARGEST_COUNT))
_COLUMN: Final = _Fact(f"a whole number from 0 to {_LARGEST_COLUMN}", _whole(_LARGEST_COLUMN))
_TRUTH: Final = _Fact("true or false", lambda value: isinstance(value, bool))
_WORDS: Final = _Fact(f"a text of up to {_LONGEST_WORDS} characters", _text(_LONGEST_WORDS))
_TEXT: Final = _Fact(f"a text of up to {_LONGEST_TEXT} characters", _text(_LONGEST_TEXT))
_INTERVAL: Final = _Fact("a list of two numbers", _list_of(_MEASURED.holds, 2))
_OBJECTS: Final = _Fact("a list of objects", _list_of(lambda value: isinstance(value, dict)))
_OBJECT: Final = _Fact("an object", lambda value: isinstance(value, dict))

_FACTS: Final[Mapping[str, _Fact]] = {
    **dict.fromkeys(("episode", "current_episode", "timestep", "total_steps"), _COUNT),
    **dict.fromkeys(("episode_length", "seed", "attempt", "pid", "current_tier"), _COUNT),
    **dict.fromkeys(("asked", "scored", "failed", "episodes_done"), _COUNT),
    **dict.fromkeys(("index", "steps"), _COLUMN),
    **dict.fromkeys(("avg_reward", "episode_reward", "best_reward", "target_reward"), _MEASURED),
    **dict.fromkeys(("composite_verifier_score", "overall_score", "reward"), _MEASURED),
    **dict.fromkeys(("mean_return", "std_return"), _MEASURED),
    **dict.fromkeys(("success_rate", "pass_rate"), _SHARE),
    **dict.fromkeys(("wall_seconds", "duration_s"), _SECONDS),
    **dict.fromkeys(("success_interval", "return_interval"), _INTERVAL),
    **dict.fromkeys(("success", "terminated", "truncated"), _TRUTH),
    **dict.fromkeys(("error", "message", "traceback", "line"), _TEXT),
    **dict.fromkeys(
        ("failure_reason", "type", "reason", "stopped_by", "stopped", "outcome"), _WORDS
    ),
    **dict.fromkeys(("kind", "scenario_id", "checkpoint_sha256"), _WORDS),
    **dict.fromkeys(("environment", "tracking"), _OBJECT),
    "progress": _Fact("a number from 0 to 100", _within(0, 100)),
    "lines": _Fact("a list of texts", _list_of(_TEXT.holds)),
    "verifier_results": _OBJECTS,
    "episodes": _Fact("a list of episodes with index and outcome", _list_of(_episode)),
    "metrics": _Fact(
        f"an object of up to {_MOST_NAMED} finite numbers",
        _named(lambda value: number(value) is not None),
    ),
    "verifier_scores": _Fact(f"an object of up to {_MOST_NAMED} numbers", _named(_MEASURED.holds)),
    "package_versions": _Fact(
        f"an object of up to {_MOST_NAMED} texts", _named(_text(_LONGEST_WORDS))
    ),
}

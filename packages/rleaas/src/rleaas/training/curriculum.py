"""From easy to hard: a job goes to the next tier when it masters the one it is at."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from multiprocessing.context import get_spawning_popen
from typing import Any, cast

from rlcore import ConfigurationError

from rleaas.training import config_rules as rules
from rleaas.training.scenarios import TIERS

WINDOW = 50
THRESHOLD = 0.8
LARGEST_WINDOW = 10_000
_KEY = "curriculum"
_THRESHOLDS: Mapping[str, int] = {f"tier_{tier}_mastery_threshold": tier for tier in TIERS[:-1]}
TAKES_TIERS = "takes_tiers"
"""The key of an environment's metadata that says that its reset reads `options["tier"]`."""
KEYS = ("enabled", *_THRESHOLDS, "window", "start_tier")


@dataclass(frozen=True, slots=True, kw_only=True)
class CurriculumSettings:
    """When a tier is mastered: at this share of successes among its last `window` episodes."""

    thresholds: Mapping[int, float] = field(default_factory=dict[int, float])
    window: int = WINDOW
    start_tier: int = 1

    def threshold(self, tier: int) -> float:
        """The share of successes at which the tier is mastered."""
        return self.thresholds.get(tier, THRESHOLD)

    def to_json(self) -> dict[str, object]:
        """The `curriculum` that validates to this again."""
        return {
            "enabled": True,
            **{f"tier_{tier}_mastery_threshold": self.thresholds[tier] for tier in self.thresholds},
            "window": self.window,
            "start_tier": self.start_tier,
        }


def validate_curriculum(value: object) -> CurriculumSettings | None:
    """A checked `curriculum`; None where there is none or it is off.

    Raises:
        ConfigurationError: naming the key, as `curriculum.window`.
    """
    if value is None or value is False:
        return None
    given = rules.mapping(_KEY, {} if value is True else value)
    for key in given:
        if key not in KEYS:
            raise rules.unknown(key, _KEY, KEYS)
    enabled = given.get("enabled", True)
    if not isinstance(enabled, bool):
        raise rules.bad(f"{_KEY}.enabled", enabled, "must be true or false")
    window = rules.positive_int(f"{_KEY}.window", given.get("window", WINDOW))
    if window > LARGEST_WINDOW:
        raise rules.bad(f"{_KEY}.window", window, f"must be at most {LARGEST_WINDOW}")
    start = given.get("start_tier", 1)
    if not isinstance(start, int) or isinstance(start, bool) or start not in TIERS:
        raise rules.bad(f"{_KEY}.start_tier", start, f"must be one of {TIERS}")
    thresholds = {
        tier: rules.positive_fraction(f"{_KEY}.{key}", given[key])
        for key, tier in _THRESHOLDS.items()
        if given.get(key) is not None
    }
    settings = CurriculumSettings(thresholds=thresholds, window=window, start_tier=start)
    return settings if enabled else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """A tier was mastered."""

    from_tier: int
    to_tier: int
    success_rate: float
    threshold: float
    window: int

    def to_dict(self) -> dict[str, object]:
        """The data of the event `tier_advance`."""
        return {
            "from_tier": self.from_tier,
            "current_tier": self.to_tier,
            "success_rate": self.success_rate,
            "threshold": self.threshold,
            "window": self.window,
        }


# The cells of the state, which other processes may share: numbers, and a ring of successes.
_TIER, _JUDGED, _UNJUDGED, _EVER_JUDGED, _RATES = range(5)
_RING = _RATES + len(TIERS)


class Curriculum:
    """Which tier episodes are of now, and when the next one begins.

    Episodes of other tiers, as sessions finish late, count for nothing. Sent to a process that is
    being started, it shares its state with that; `share` does the same ahead of a fork. A copy
    that was pickled otherwise stays at the tier it was at.
    """

    def __init__(self, settings: CurriculumSettings, tiers: Sequence[int] = TIERS) -> None:
        self.settings = settings
        self._tiers = tuple(tier for tier in sorted(tiers) if tier >= settings.start_tier)
        if not self._tiers:
            raise ConfigurationError(
                f"there are scenarios of the tiers {tuple(sorted(tiers))}, and the curriculum "
                f"starts at {settings.start_tier}",
                hint="Lower curriculum.start_tier",
            )
        self._cells: Any = [0.0] * (_RING + settings.window)  # or an array of shared memory
        self._owner: int | None = os.getpid()
        self._told = 0

    @property
    def tier(self) -> int:
        """The tier that the next episode is of."""
        return self._tiers[int(self._cells[_TIER])]

    @property
    def success_rate(self) -> float | None:
        """The share of successes at this tier, over its last `window` episodes."""
        with self._lock():
            return self._rate()

    def record(self, tier: int, success: bool | None) -> None:
        """Count a finished episode.

        Raises:
            ConfigurationError: nothing tells whether episodes succeed, so no tier can be mastered.
        """
        if self._owner is not None and self._owner != os.getpid():
            raise ConfigurationError(
                "a process counts episodes of a curriculum that it does not share",
                code="curriculum_not_shared",
            )
        with self._lock():
            if tier != self._tiers[int(self._cells[_TIER])]:
                return
            if success is None:
                self._cells[_UNJUDGED] += 1
                self._require_judged()
                return
            self._cells[_EVER_JUDGED] = 1
            place = int(self._cells[_JUDGED]) % self.settings.window
            self._cells[_RING + place] = float(success)
            self._cells[_JUDGED] += 1
            self._advance()

    def news(self) -> list[Advance]:
        """The advances since this was asked last."""
        at = int(self._cells[_TIER])
        found = [
            Advance(
                from_tier=self._tiers[index],
                to_tier=self._tiers[index + 1],
                success_rate=self._cells[_RATES + index],
                threshold=self.settings.threshold(self._tiers[index]),
                window=self.settings.window,
            )
            for index in range(self._told, at)
        ]
        self._told = max(self._told, at)
        return found

    def get_state(self) -> list[float]:
        """Everything that a restart of the job needs to go on exactly."""
        with self._lock():
            return list(self._cells)

    def set_state(self, state: Sequence[float]) -> None:
        """Go on from there; what was told then is not told again.

        Raises:
            ConfigurationError: it is the state of another curriculum.
        """
        if len(state) != len(self._cells) or not 0 <= state[_TIER] < len(self._tiers):
            raise ConfigurationError("the saved curriculum is not this job's")
        with self._lock():
            for index, value in enumerate(state):
                self._cells[index] = float(value)
        self._told = int(state[_TIER])

    def share(self) -> None:
        """Keep the state in memory that processes started from here on have in common."""
        if self._owner is not None:
            # Of this context, an array reaches forked and spawned processes alike.
            array = multiprocessing.get_context("spawn").Array("d", len(self._cells))
            array[:] = self._cells
            self._cells, self._owner = array, None

    def __getstate__(self) -> dict[str, object]:
        if get_spawning_popen() is not None:
            self.share()
        state = dict(self.__dict__)
        if get_spawning_popen() is None:
            state["_cells"] = list(self._cells)
            # Whoever unpickles it only follows: nobody hears what it counts.
            state["_owner"] = os.getpid()
        return state

    def _lock(self) -> AbstractContextManager[object]:
        if self._owner is not None:
            return nullcontext()
        return cast("AbstractContextManager[object]", self._cells.get_lock())

    def _rate(self) -> float | None:
        judged = min(int(self._cells[_JUDGED]), self.settings.window)
        if judged == 0:
            return None
        return float(sum(self._cells[_RING : _RING + judged])) / judged

    def _advance(self) -> None:
        at = int(self._cells[_TIER])
        rate = self._rate()
        if (
            rate is None
            or at + 1 >= len(self._tiers)
            or self._cells[_JUDGED] < self.settings.window
            or rate < self.settings.threshold(self._tiers[at])
        ):
            return
        self._cells[_RATES + at] = rate
        self._cells[_JUDGED] = self._cells[_UNJUDGED] = 0
        self._cells[_TIER] = at + 1

    def _require_judged(self) -> None:
        if not self._cells[_EVER_JUDGED] and self._cells[_UNJUDGED] >= self.settings.window:
            raise ConfigurationError(
                f"nothing told in {self.settings.window} episodes whether they succeeded, so no "
                "tier can be mastered",
                code="curriculum_blind",
                hint="Give the job verifiers, or let the environment say info['is_success']",
            )

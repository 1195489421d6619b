"""A run in numbers that say how sure they are."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from rlmesh.runs.outcomes import Coverage
from rlmesh.runs.provenance import Provenance
from rlmesh.runs.statistics import (
    Interval,
    bootstrap_interval,
    interquartile_mean,
    mean,
    require_confidence,
    wilson_interval,
)
from rlmesh.runs.tables import aligned, listed
from rlmesh.runs.telemetry import TelemetryRow, format_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rlmesh.runs.results import EpisodeResult, RunResult


@dataclass(frozen=True, slots=True)
class Distribution:
    """How numbers are spread; intervals are BCa bootstraps, None for fewer than two numbers.

    `std` is the sample's standard deviation, None for one number. `iqm` is the mean of the middle
    half, and `p5` the number that five of a hundred do not reach.
    """

    n: int
    mean: float
    interval: Interval | None
    std: float | None
    iqm: float
    iqm_interval: Interval | None
    minimum: float
    p5: float
    p25: float
    median: float
    p75: float
    p95: float
    maximum: float

    def __str__(self) -> str:
        bounds = "" if self.interval is None else f" {_bounds(self.interval)}"
        spread = f"median {self.median:.2f}, {self.minimum:.2f} to {self.maximum:.2f}"
        return f"mean {self.mean:.2f}{bounds}, {spread}"


@dataclass(frozen=True, slots=True)
class Rate:
    """How many of how many, with a Wilson interval."""

    successes: int
    n: int
    interval: Interval

    @property
    def rate(self) -> float:
        """The share of successes."""
        return self.successes / self.n

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.rate:.0%} [{low:.0%}, {high:.0%}], {self.successes} of {self.n}"


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """The episodes of one task, or of a whole run.

    What has no numbers is None: rewards and lengths where no episode has a score, success where
    a scored episode does not say whether it succeeded.
    """

    coverage: Coverage
    outcomes: Mapping[str, int]
    reward: Distribution | None
    success: Rate | None
    steps: Distribution | None

    def to_dict(self) -> dict[str, object]:
        """Return the summary as plain JSON values."""
        success = None if self.success is None else asdict(self.success)
        return {
            "coverage": self.coverage._asdict(),
            "outcomes": dict(self.outcomes),
            "reward": _plain(self.reward),
            "success": success and {**success, "rate": self.success and self.success.rate},
            "steps": _plain(self.steps),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Summary:
    """A whole run, its tasks, how long things took, and where it comes from.

    Coverage comes first: averages are over the scored episodes only.
    """

    total: GroupSummary
    confidence: float
    provenance: Provenance
    tasks: Mapping[str, GroupSummary] = field(default_factory=dict[str, GroupSummary])
    telemetry: tuple[TelemetryRow, ...] = ()
    stopped: str | None = None
    advisories: tuple[str, ...] = ()

    @property
    def coverage(self) -> Coverage:
        """How many episodes were asked for, scored, and failed."""
        return self.total.coverage

    @property
    def reward(self) -> Distribution | None:
        """The rewards of the scored episodes."""
        return self.total.reward

    @property
    def success(self) -> Rate | None:
        """How often the task was solved."""
        return self.total.success

    @property
    def steps(self) -> Distribution | None:
        """The lengths of the scored episodes."""
        return self.total.steps

    def to_dict(self) -> dict[str, object]:
        """Return the summary as plain JSON values."""
        return {
            **self.total.to_dict(),
            "confidence": self.confidence,
            "tasks": {name: group.to_dict() for name, group in self.tasks.items()},
            "telemetry": [row.to_dict() for row in self.telemetry],
            "provenance": self.provenance.to_dict(),
            "stopped": self.stopped,
            "advisories": list(self.advisories),
        }

    def facts(self) -> dict[str, str]:
        """Return the head of the summary: what each number is, and the number."""
        total = self.total
        facts = {
            "environment": str(self.provenance.environment or "without a contract"),
            "model": self.provenance.model_text,
            "episodes": str(total.coverage),
            "outcomes": ", ".join(f"{count} {name}" for name, count in total.outcomes.items()),
            "success": "not told" if total.success is None else str(total.success),
            "reward": "no score" if total.reward is None else str(total.reward),
            "IQM": "" if total.reward is None else _iqm(total.reward),
            "steps": "no score" if total.steps is None else str(total.steps),
            "stopped": self.stopped or "",
            "seeds": self.provenance.seeds_text,
            "made with": self.provenance.software_text,
            "note": "; ".join(self.advisories),
        }
        return {name: text for name, text in facts.items() if text}

    def __repr__(self) -> str:
        return f"<Summary: {self.coverage}>"

    def __str__(self) -> str:
        parts = [listed(self.facts())]
        if self.tasks:
            parts.append(aligned(_task_rows(self.tasks), right=(1,)))
        if self.telemetry:
            parts.append(format_rows(self.telemetry))
        parts.append(f"In brackets: {self.confidence:.0%} intervals.")
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        from rlmesh.runs.notebook import summary_html

        return summary_html(self, heading=None)

    def task_rows(self) -> list[tuple[str, ...]]:
        """Return the table of tasks, titles first."""
        return _task_rows(self.tasks)


def summary_of(result: "RunResult", *, confidence: float) -> Summary:
    """Return a run in numbers.

    Raises:
        ConfigurationError: the confidence is not strictly between 0 and 1.
    """
    require_confidence(confidence)
    tasks = sorted({episode.task for episode in result.episodes if episode.task is not None})
    return Summary(
        total=_group(result.episodes, confidence, asked=result.coverage.asked),
        confidence=confidence,
        provenance=result.provenance,
        tasks={
            task: _group([item for item in result.episodes if item.task == task], confidence)
            for task in tasks
        },
        telemetry=result.telemetry,
        stopped=result.stopped,
        advisories=result.advisories,
    )


def distribution(
    values: Sequence[float], confidence: float, *, iqm_interval: bool = True
) -> Distribution | None:
    """Return how numbers are spread; None where there are none.

    Args:
        values: the numbers.
        confidence: of the intervals.
        iqm_interval: whether there is one of the IQM, which takes longest.
    """
    if not values:
        return None
    sample = np.asarray(values, np.float64)
    bounded = sample.size > 1 and bool(np.isfinite(sample).all())
    with np.errstate(invalid="ignore"):  # infinities that meet are no number, and told so
        found = _distribution(sample)
    if not bounded:
        return found
    return replace(
        found,
        interval=bootstrap_interval(values, mean, confidence),
        iqm_interval=bootstrap_interval(values, interquartile_mean, confidence)
        if iqm_interval
        else None,
    )


def _distribution(sample: "NDArray[np.float64]") -> Distribution:
    p5, p25, median, p75, p95 = np.quantile(sample, (0.05, 0.25, 0.5, 0.75, 0.95)).tolist()
    return Distribution(
        n=sample.size,
        mean=float(sample.mean()),
        interval=None,
        std=float(sample.std(ddof=1)) if sample.size > 1 else None,
        iqm=float(interquartile_mean(sample)),
        iqm_interval=None,
        minimum=float(sample.min()),
        p5=p5,
        p25=p25,
        median=median,
        p75=p75,
        p95=p95,
        maximum=float(sample.max()),
    )


def success_counts(scored: Iterable["EpisodeResult"]) -> tuple[int, int] | None:
    """Return successes and episodes; None where an episode does not say, or there is none."""
    said = [episode.success for episode in scored]
    if not said or None in said:
        return None
    return said.count(True), len(said)


def _group(
    episodes: Sequence["EpisodeResult"], confidence: float, *, asked: int | None = None
) -> GroupSummary:
    scored = [episode for episode in episodes if episode.outcome.scored]
    counted = success_counts(scored)
    rewards = [episode.reward for episode in scored if episode.reward is not None]
    outcomes = Counter(episode.outcome.value for episode in episodes)
    return GroupSummary(
        coverage=Coverage(
            asked=len(episodes) if asked is None else asked,
            scored=len(scored),
            failed=len(episodes) - len(scored),
        ),
        outcomes=dict(outcomes.most_common()),
        reward=distribution(rewards, confidence),
        success=None if counted is None else Rate(*counted, wilson_interval(*counted, confidence)),
        steps=distribution([float(item.steps) for item in scored], confidence, iqm_interval=False),
    )


def _task_rows(tasks: Mapping[str, GroupSummary]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("task", "scored", "success", "reward")]
    for name, group in tasks.items():
        success = "not told" if group.success is None else str(group.success)
        reward = "no score" if group.reward is None else str(group.reward)
        scored = f"{group.coverage.scored}/{group.coverage.asked}"
        rows.append((name, scored, success, reward))
    return rows


def _iqm(reward: Distribution) -> str:
    bounds = "" if reward.iqm_interval is None else f" {_bounds(reward.iqm_interval)}"
    return f"{reward.iqm:.2f}{bounds}, the mean of the middle half of the rewards"


def _bounds(interval: Interval) -> str:
    return f"[{interval.low:.2f}, {interval.high:.2f}]"


def _plain(found: Distribution | None) -> dict[str, object] | None:
    if found is None:
        return None
    return {
        name: value if not isinstance(value, float) or np.isfinite(value) else str(value)
        for name, value in asdict(found).items()
    }

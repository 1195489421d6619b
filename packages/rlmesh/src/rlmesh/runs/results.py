"""What a run leaves behind: one record per episode, and the numbers they add up to."""

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any, Self, cast

from rlcore import ConfigurationError, EnvironmentIdentity

from rlmesh.runs.comparison import Disagreement, EpisodeLike, disagreements
from rlmesh.runs.export import csv_text, data_frame, read_whole, write_whole
from rlmesh.runs.merging import merged
from rlmesh.runs.outcomes import Coverage as Coverage
from rlmesh.runs.outcomes import Outcome, scored_outcome
from rlmesh.runs.provenance import Plain, Provenance
from rlmesh.runs.statistics import Interval, bootstrap_mean_interval, wilson_interval
from rlmesh.runs.summary import Summary, success_counts, summary_of
from rlmesh.runs.telemetry import TelemetryRow, format_rows
from rlmesh.runs.typed import require_texts, require_types

SCHEMA = "rlmesh.run.v1"


@dataclass(frozen=True, slots=True)
class EpisodeResult:
    """One episode: what was asked, what happened, how it ended.

    `reward` is the undiscounted sum; it is None when `outcome.scored` is false. `success` is what
    the task or the run's criterion says, None when neither says anything. `predict_ms` and
    `step_ms` are means per step. `task` is the group that a summary counts it in, None where the
    environment has only one. `attempts` is how often it was played until it had this outcome.
    """

    index: int
    seed: int | None
    steps: int
    reward: float | None
    terminated: bool
    truncated: bool
    success: bool | None = None
    duration_s: float = 0.0
    predict_ms: float | None = None
    step_ms: float | None = None
    trial: int | None = None
    outcome: Outcome = Outcome.COMPLETED
    error: str | None = None
    task: str | None = None
    attempts: int = 1

    def __post_init__(self) -> None:
        if self.outcome.scored:
            refined = scored_outcome(success=self.success, truncated=self.truncated)
            object.__setattr__(self, "outcome", refined)
        else:
            object.__setattr__(self, "reward", None)
            object.__setattr__(self, "success", None)

    def to_dict(self) -> dict[str, object]:
        """Return the episode as plain JSON values."""
        return {**asdict(self), "outcome": self.outcome.value, "reward": _json_float(self.reward)}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """Return the episode that `to_dict` wrote.

        Raises:
            ConfigurationError: a key is missing or unknown, or a value is not what it should be.
        """
        known = {item.name for item in fields(cls)}
        if unknown := sorted(set(data) - known):
            raise ConfigurationError(f"{unknown[0]!r} is not a field of an episode")
        try:
            values: dict[str, Any] = dict(data)  # Any: the dataclass's own names and types follow
            reward = values["reward"]
            if reward in ("inf", "-inf"):  # as JSON has them
                values["reward"] = float(reward)
            require_types(cls, values, known - {"outcome"})
            values["reward"] = None if reward is None else float(reward)
            values["outcome"] = Outcome(values.get("outcome", Outcome.COMPLETED))
            if values["outcome"].scored and values["reward"] is None:
                raise ValueError(f"its outcome is {values['outcome'].value}, and it has no reward")
            return cls(**values)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ConfigurationError(f"not the record of an episode: {error}") from error


@dataclass(frozen=True, slots=True, repr=False)
class RunResult:
    """Every episode of a run, with what is needed to run it again.

    `asked` counts the episodes that were asked for, so a result that was interrupted says so.
    `stopped` is the reason when a run ended before its last episode. `telemetry` says how long
    things took; `advisories` are sentences about what limits the record. `settings` are the run's
    arguments that shape its episodes, and `machine` the kind of computer.
    """

    episodes: tuple[EpisodeResult, ...] = ()
    telemetry: tuple[TelemetryRow, ...] = ()
    advisories: tuple[str, ...] = ()
    environment: EnvironmentIdentity | None = None
    model: str = ""
    model_digest: str | None = None
    asked: int | None = None
    stopped: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    package_versions: Mapping[str, str] = field(default_factory=dict[str, str])
    machine: Mapping[str, str | int] = field(default_factory=dict[str, str | int])
    settings: Mapping[str, Plain] = field(default_factory=dict[str, Plain])

    @property
    def scored_episodes(self) -> tuple[EpisodeResult, ...]:
        """The episodes that carry a score."""
        return tuple(episode for episode in self.episodes if episode.outcome.scored)

    @property
    def failed_episodes(self) -> tuple[EpisodeResult, ...]:
        """The episodes that ended without a score, for instance because the environment raised."""
        return tuple(episode for episode in self.episodes if not episode.outcome.scored)

    @property
    def num_episodes(self) -> int:
        """How many episodes were run, scored or not."""
        return len(self.episodes)

    @property
    def total_steps(self) -> int:
        """The steps of all episodes together."""
        return sum(episode.steps for episode in self.episodes)

    @property
    def seeds(self) -> tuple[int | None, ...]:
        """The seed of each episode that was run, in order."""
        return tuple(episode.seed for episode in self.episodes)

    @property
    def rewards(self) -> tuple[float, ...]:
        """The rewards of the scored episodes, in order."""
        rewards = (episode.reward for episode in self.episodes)
        return tuple(reward for reward in rewards if reward is not None)

    @property
    def coverage(self) -> Coverage:
        """How many episodes were asked for, scored, and failed."""
        scored = len(self.scored_episodes)
        asked = self.num_episodes if self.asked is None else self.asked
        return Coverage(asked=asked, scored=scored, failed=self.num_episodes - scored)

    @property
    def mean_reward(self) -> float:
        """The mean reward of the scored episodes; NaN when there is none."""
        rewards = self.rewards
        if not all(map(math.isfinite, rewards)):
            return sum(rewards) / len(rewards)  # fsum raises where infinities meet
        return math.fsum(rewards) / len(rewards) if rewards else math.nan

    @property
    def std_reward(self) -> float:
        """The sample standard deviation of the rewards; NaN for fewer than two episodes."""
        rewards = self.rewards
        if len(rewards) < 2:
            return math.nan
        mean = self.mean_reward
        return math.sqrt(math.fsum((r - mean) ** 2 for r in rewards) / (len(rewards) - 1))

    @property
    def mean_reward_interval(self) -> Interval | None:
        """The 95 % bootstrap interval of the mean reward; None for fewer than two episodes."""
        rewards = self.rewards
        if len(rewards) < 2 or not all(map(math.isfinite, rewards)):
            return None
        return bootstrap_mean_interval(rewards)

    @property
    def success_rate(self) -> float | None:
        """The share of successes; None unless every scored episode says whether it succeeded."""
        counted = success_counts(self.scored_episodes)
        return None if counted is None else counted[0] / counted[1]

    @property
    def success_interval(self) -> Interval | None:
        """The 95 % Wilson interval of the success rate; None where the rate is None."""
        counted = success_counts(self.scored_episodes)
        return None if counted is None else wilson_interval(*counted)

    @property
    def provenance(self) -> Provenance:
        """What is needed to make this result again."""
        return Provenance(
            environment=self.environment,
            model=self.model,
            model_digest=self.model_digest,
            seeds=self.seeds,
            settings=self.settings,
            package_versions=self.package_versions,
            machine=self.machine,
            started_at=self.started_at,
            finished_at=self.finished_at,
        )

    def summary(self, *, confidence: float = 0.95) -> Summary:
        """Return the run in numbers, with intervals, tasks, timings and provenance.

        Raises:
            ConfigurationError: the confidence is not strictly between 0 and 1.
        """
        return summary_of(self, confidence=confidence)

    def format_telemetry(self) -> str:
        """Return how long things took as an aligned table."""
        return format_rows(self.telemetry)

    def merge(self, *others: "RunResult", repeats: bool = False) -> "RunResult":
        """Return this run and others of the same model and environment as one, numbered anew.

        Args:
            others: results over other seeds.
            repeats: also count episodes of the same task and seed more than once.

        Raises:
            ConfigurationError: the runs are of different models or environments, or share a seed.
        """
        return merged((self, *others), repeats=repeats)

    def agrees_with(
        self, other: "RunResult | Iterable[EpisodeLike]", *, tolerance: float = 1e-6
    ) -> tuple[Disagreement, ...]:
        """Compare episode by episode and return what differs; empty means the two agree.

        Seed, steps, outcome and reward are compared, the reward within `tolerance`, relative to
        its size and absolute below 1.

        Args:
            other: a result, or anything with episodes of the same fields, such as a report.
            tolerance: how far two rewards may be apart.
        """
        theirs = other.episodes if isinstance(other, RunResult) else tuple(other)
        return disagreements(self.episodes, theirs, tolerance=tolerance)

    def to_dict(self) -> dict[str, object]:
        """Return the result as plain JSON values, with the numbers it adds up to."""
        return {
            "schema": SCHEMA,
            "environment": None if self.environment is None else self.environment.to_dict(),
            "model": self.model,
            "model_digest": self.model_digest,
            "asked": self.coverage.asked,
            "scored": self.coverage.scored,
            "failed": self.coverage.failed,
            "stopped": self.stopped,
            "started_at": _timestamp(self.started_at),
            "finished_at": _timestamp(self.finished_at),
            "package_versions": dict(self.package_versions),
            "machine": dict(self.machine),
            "settings": dict(self.settings),
            "advisories": list(self.advisories),
            "telemetry": [row.to_dict() for row in self.telemetry],
            "total_steps": self.total_steps,
            "mean_reward": _json_float(self.mean_reward),
            "mean_reward_interval": _listed(self.mean_reward_interval),
            "success_rate": self.success_rate,
            "success_interval": _listed(self.success_interval),
            "episodes": [episode.to_dict() for episode in self.episodes],
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the result as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """Return the result that `to_dict` wrote.

        Raises:
            ConfigurationError: the data is not such a record.
        """
        if data.get("schema") != SCHEMA:
            message = f"not the record of a run: its schema is {data.get('schema')!r}"
            raise ConfigurationError(message, hint=f"expected {SCHEMA!r}")
        try:
            values = cast("Mapping[str, Any]", data)  # Any: JSON, checked by what is built from it
            environment = values["environment"]
            require_types(cls, values, ("model", "model_digest", "asked", "stopped"))
            if environment is not None:
                require_types(EnvironmentIdentity, environment, environment)
            versions = values["package_versions"]
            require_texts((*versions, *versions.values(), *values["advisories"]), "a text")
            return cls(
                episodes=tuple(EpisodeResult.from_dict(item) for item in values["episodes"]),
                environment=None if environment is None else EnvironmentIdentity(**environment),
                model=values["model"],
                model_digest=values["model_digest"],
                asked=values["asked"],
                stopped=values["stopped"],
                started_at=_moment(values["started_at"]),
                finished_at=_moment(values["finished_at"]),
                package_versions=dict(values["package_versions"]),
                # Records of before these were kept have none of them.
                machine=dict(values.get("machine", {})),
                settings=dict(values.get("settings", {})),
                telemetry=tuple(map(TelemetryRow.from_dict, values.get("telemetry", ()))),
                advisories=tuple(values["advisories"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise ConfigurationError(f"not the record of a run: {error}") from error

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the result that `to_json` wrote.

        Raises:
            ConfigurationError: the text is not such a record.
        """
        try:
            data: object = json.loads(text)
        except ValueError as error:
            raise ConfigurationError(f"not the record of a run: {error}") from error
        if not isinstance(data, dict):
            raise ConfigurationError("not the record of a run: it is not a JSON object")
        return cls.from_dict(cast("dict[str, object]", data))

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the episodes as CSV, a line each, and write them to a file if one is named.

        Raises:
            ConfigurationError: the file cannot be written.
        """
        text = csv_text(self)
        if path is not None:
            write_whole(path, text)
        return text

    def to_dataframe(self) -> Any:  # Any: pandas has no types
        """Return a pandas data frame with a row for each episode.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        return data_frame(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to a JSON file, whole or not at all.

        Raises:
            ConfigurationError: the file cannot be written.
        """
        write_whole(path, self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the result that `save` wrote, or what a journal holds so far.

        Raises:
            ConfigurationError: the file cannot be read, or is no such record.
            JournalError: the file is a journal, and broken.
        """
        from rlmesh.runs import journal  # which is about results

        content = read_whole(path)
        if journal.is_journal(content):
            return cls(**journal.journal_facts(path))
        return cls.from_json(content.decode(errors="replace"))

    def _repr_html_(self) -> str:
        from rlmesh.runs.notebook import result_html

        return result_html(self)

    def __repr__(self) -> str:
        mean = "no score" if not self.rewards else f"mean_reward={self.mean_reward:.2f}"
        return (
            f"RunResult(num_episodes={self.num_episodes}, {mean}, total_steps={self.total_steps})"
        )

    def __str__(self) -> str:
        reward = "no score" if not self.rewards else f"mean reward {self.mean_reward:.2f}"
        if interval := self.mean_reward_interval:
            reward += f" [{interval.low:.2f}, {interval.high:.2f}]"
        parts = [str(self.coverage), reward]
        rate, bounds = self.success_rate, self.success_interval
        if rate is not None and bounds is not None:
            parts.append(f"success {rate:.0%} [{bounds.low:.0%}, {bounds.high:.0%}]")
        return f"{self.environment or 'environment'}: " + ", ".join(parts)


def _json_float(value: float | None) -> float | str | None:
    """JSON has no infinity; NaN stands for "no number", which JSON calls null."""
    if value is None or math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)


def _listed(interval: Interval | None) -> list[float] | None:
    return None if interval is None else list(interval)


def _timestamp(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)

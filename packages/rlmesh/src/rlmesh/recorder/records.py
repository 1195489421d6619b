"""What a bundle says about workloads, episodes and media: the published fields, and ours beside."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self, cast

from rlcore import BundleError

from rlmesh.recorder.files import Files
from rlmesh.recorder.refs import MediaRef as MediaRef
from rlmesh.recorder.refs import TrajectoryRef as TrajectoryRef
from rlmesh.recorder.rows import LARGEST_NUMBER, Row
from rlmesh.runs.outcomes import Outcome, scored_outcome
from rlmesh.runs.results import EpisodeResult, RunResult

SCHEMA: Final = "rlmesh.result.v1"

Json = dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """One episode of a workload.

    `reward` is the return; 0.0 for an episode whose `outcome` is no score, which is never counted
    in metrics. Of a bundle written by another recorder only the published fields are known, up to
    `media`; its outcomes are derived from them.
    """

    index: int
    seed: int | None
    steps: int
    reward: float
    terminated: bool
    truncated: bool
    success: bool | None = None
    duration_s: float = 0.0
    included_in_metrics: bool = True
    media: tuple[MediaRef, ...] = ()
    outcome: Outcome = Outcome.COMPLETED
    error: str | None = None
    trial: int | None = None
    predict_ms: float | None = None
    step_ms: float | None = None
    task: str | None = None
    attempts: int = 1
    lane: int | None = None
    trajectory: TrajectoryRef | None = None

    @classmethod
    def from_result(
        cls,
        result: EpisodeResult,
        *,
        index: int | None = None,
        included_in_metrics: bool = True,
        media: tuple[MediaRef, ...] = (),
        lane: int | None = None,
        trajectory: TrajectoryRef | None = None,
    ) -> Self:
        """Return the record of an episode's result.

        An episode without a finite score is not counted in metrics, whatever is asked for.
        """
        reward = result.reward
        # NaN is no number that is not above the largest one either.
        usable = reward is not None and abs(reward) <= LARGEST_NUMBER
        counted = result.outcome.scored and usable
        return cls(
            index=result.index if index is None else index,
            seed=result.seed,
            steps=result.steps,
            reward=float(reward) if reward is not None and usable else 0.0,
            terminated=result.terminated,
            truncated=result.truncated,
            success=result.success,
            duration_s=result.duration_s,
            included_in_metrics=included_in_metrics and counted,
            media=media,
            outcome=result.outcome,
            error=result.error,
            trial=result.trial,
            predict_ms=result.predict_ms,
            step_ms=result.step_ms,
            task=result.task,
            attempts=result.attempts,
            lane=lane,
            trajectory=trajectory,
        )

    def to_dict(self) -> Json:
        """Return the published row of `result.json`."""
        row: Json = {
            "index": self.index,
            "seed": self.seed,
            "steps": self.steps,
            "reward": self.reward,
            "terminated": self.terminated,
            "truncated": self.truncated,
            "success": self.success,
            "durationS": self.duration_s,
            "includedInMetrics": self.included_in_metrics,
        }
        return row | ({"media": [one.to_dict() for one in self.media]} if self.media else {})

    def details(self) -> Json:
        """Return the row of `details.json`: what the published one has no place for."""
        return {
            "index": self.index,
            "outcome": self.outcome.value,
            "error": self.error,
            "trial": self.trial,
            "predictMs": self.predict_ms,
            "stepMs": self.step_ms,
            "task": self.task,
            "attempts": self.attempts,
            "lane": self.lane,
            "trajectory": None if self.trajectory is None else self.trajectory.to_dict(),
        }

    @classmethod
    def from_dict(
        cls,
        data: Row | Mapping[str, Any],  # Any: JSON, as below
        more: Row | Mapping[str, Any] | None = None,
        files: Files | None = None,
    ) -> Self:
        """Return the episode of a row of `result.json`, and of `details.json` if there is one.

        Raises:
            BundleError: a value is missing, or is of another type.
        """
        row = Row.of(data, "an episode")
        details = None if more is None else Row.of(more, "an episode's details")
        beside = Row({}, "") if details is None else details
        success, truncated = row.maybe_flag("success"), row.flag("truncated")
        outcome = scored_outcome(success=success, truncated=truncated)
        trajectory = beside.data.get("trajectory")
        return cls(
            index=row.count("index"),
            seed=row.maybe_integer("seed"),
            steps=row.count("steps"),
            reward=row.number("reward"),
            terminated=row.flag("terminated"),
            truncated=truncated,
            success=success,
            duration_s=row.number("durationS"),
            included_in_metrics=row.flag("includedInMetrics"),
            media=tuple(MediaRef.from_row(one, files) for one in row.maybe_rows("media")),
            outcome=outcome if details is None else _outcome(details.text("outcome")),
            error=beside.maybe_text("error"),
            trial=beside.maybe_integer("trial"),
            predict_ms=beside.maybe_number("predictMs"),
            step_ms=beside.maybe_number("stepMs"),
            task=beside.maybe_text("task"),
            attempts=beside.maybe_integer("attempts") or 1,
            lane=beside.maybe_integer("lane"),
            trajectory=None
            if trajectory is None
            else TrajectoryRef.from_row(Row(trajectory, "a trajectory"), files),
        )

    def to_result(self) -> EpisodeResult:
        """Return the episode as a run's result has it."""
        return EpisodeResult(
            index=self.index,
            seed=self.seed,
            steps=self.steps,
            reward=self.reward if self.outcome.scored else None,
            terminated=self.terminated,
            truncated=self.truncated,
            success=self.success,
            duration_s=self.duration_s,
            predict_ms=self.predict_ms,
            step_ms=self.step_ms,
            trial=self.trial,
            outcome=self.outcome,
            error=self.error,
            task=self.task,
            attempts=self.attempts,
        )


@dataclass(slots=True)
class WorkloadRecord:
    """A model on a task of an environment, and its episodes.

    `details` is what `details.json` says beside: `run` (the result's own record without its
    episodes: identity, digests, versions, telemetry), `contract`, and `replay` (what the
    environment is made from).
    """

    model: str
    env: str
    task: str
    config: Json = field(default_factory=dict[str, Any])
    episodes: list[EpisodeRecord] = field(default_factory=list[EpisodeRecord])
    details: Json = field(default_factory=dict[str, Any])

    @property
    def counted(self) -> tuple[EpisodeRecord, ...]:
        """The episodes that metrics are made of."""
        return tuple(episode for episode in self.episodes if episode.included_in_metrics)

    @property
    def mean_reward(self) -> float:
        """The mean return of the counted episodes; 0.0 when there is none, as published."""
        rewards = [episode.reward for episode in self.counted]
        return math.fsum(rewards) / len(rewards) if rewards else 0.0

    @property
    def success_rate(self) -> float | None:
        """The share of successes; None unless every counted episode says whether it succeeded."""
        said = [episode.success for episode in self.counted]
        if not said or None in said:
            return None
        return said.count(True) / len(said)

    @property
    def total_steps(self) -> int:
        """The steps of all episodes, counted or not."""
        return sum(episode.steps for episode in self.episodes)

    def to_dict(self) -> Json:
        """Return the published row of `result.json`."""
        return {
            "model": self.model,
            "env": self.env,
            "task": self.task,
            "config": self.config,
            "numEpisodes": len(self.episodes),
            "metrics": {
                "meanReward": self.mean_reward,
                "successRate": self.success_rate,
                "totalSteps": self.total_steps,
            },
            "episodes": [episode.to_dict() for episode in self.episodes],
        }

    def details_dict(self) -> Json:
        """Return the row of `details.json`."""
        return {**self.details, "episodes": [episode.details() for episode in self.episodes]}

    @classmethod
    def from_dict(
        cls,
        data: Row | Mapping[str, Any],  # Any: JSON, as below
        more: Row | Mapping[str, Any] | None = None,
        files: Files | None = None,
    ) -> Self:
        """Return the workload of a row of `result.json` and, where there is one, `details.json`.

        Raises:
            BundleError: a value is missing, or is of another type.
        """
        row = Row.of(data, "a workload")
        details = None if more is None else Row.of(more, "a workload's details")
        episodes = list(row.rows("episodes"))
        theirs = [None] * len(episodes) if details is None else list(details.rows("episodes"))
        if len(theirs) != len(episodes):
            raise BundleError(f"there are {len(episodes)} episodes, and details of {len(theirs)}")
        own = {} if details is None else dict(details.data)
        own.pop("episodes", None)
        if details is not None:
            for name in ("contract", "replay"):
                details.mapping(name)
            if run := details.mapping("run"):
                RunResult.from_dict({**run, "episodes": []})  # or it raises
        return cls(
            model=row.text("model"),
            env=row.text("env"),
            task=row.text("task"),
            config=dict(row.mapping("config")),
            episodes=[
                EpisodeRecord.from_dict(episode, its, files)
                for episode, its in zip(episodes, theirs, strict=True)
            ],
            details=own,
        )

    def to_result(self) -> RunResult:
        """Return the episodes as the result of a run, for its statistics and comparisons."""
        episodes = tuple(episode.to_result() for episode in self.episodes)
        run: object = self.details.get("run")
        if isinstance(run, dict) and run:
            known = cast("dict[str, object]", run)
            return RunResult.from_dict(
                {**known, "episodes": [episode.to_dict() for episode in episodes]}
            )
        return RunResult(episodes=episodes, model=self.model)


@dataclass(slots=True)
class ResultSet:
    """Everything a bundle says; of `rlmesh.recorder.load` its media and trajectories can be read.

    Attributes:
        result_set_id: its id.
        workloads: in the order in which they were recorded.
        recorded_at: when it was exported, as ISO 8601; None before.
        verified: whether every file was found to have the digest that the bundle's manifest says,
            or was recorded by this process. Bundles of other recorders have no manifest.
        files: where media and trajectories are read from.
    """

    result_set_id: str
    workloads: list[WorkloadRecord] = field(default_factory=list[WorkloadRecord])
    recorded_at: str | None = None
    verified: bool = False
    files: Files | None = field(default=None, compare=False, repr=False)

    def to_dict(self, *, recorded_at: str | None = None) -> Json:
        """Return the published document `result.json`."""
        return {
            "schema": SCHEMA,
            "resultSetId": self.result_set_id,
            "recordedAt": self.recorded_at if recorded_at is None else recorded_at,
            "workloads": [workload.to_dict() for workload in self.workloads],
        }

    def without_files(self) -> ResultSet:
        """Return the same without media and trajectories."""
        return replace(
            self,
            files=None,
            workloads=[
                replace(
                    workload,
                    episodes=[replace(one, media=(), trajectory=None) for one in workload.episodes],
                )
                for workload in self.workloads
            ],
        )

    def close(self) -> None:
        """Let go of the bundle's file."""
        if self.files is not None:
            self.files.close()


def _outcome(name: str) -> Outcome:
    try:
        return Outcome(name)
    except ValueError as error:
        raise BundleError(f"an episode ended with {name!r:.80}, which is no outcome") from error

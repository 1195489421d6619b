"""One episode as it is kept: each step, what was said about it, and how it ended."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeVar, cast

from rlcore import ConfigurationError

# A value of JSON: what it is, depends on the environment.
Json = Any
Record = TypeVar("Record")
EventType = Literal["SYSTEM", "MODEL_THOUGHT", "TOOL_CALL", "TOOL_RESULT"]
EVENT_TYPES: tuple[EventType, ...] = ("SYSTEM", "MODEL_THOUGHT", "TOOL_CALL", "TOOL_RESULT")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEvent:
    """Something that happened within a step.

    Attributes:
        timestamp_ms: when, in milliseconds since 1970 by the clock of who recorded it.
        event_type: what it was.
        content: a text: the task, a thought, a result as JSON.
        tool_name: which tool, of a call and of its result.
        tool_args: what it was called with.
    """

    timestamp_ms: int
    event_type: EventType
    content: str | None = None
    tool_name: str | None = None
    tool_args: Mapping[str, Json] | None = None

    def to_json(self) -> dict[str, Json]:
        """The event as `rleaas.models.TimelineEvent` reads it."""
        told = {
            "timestamp_ms": self.timestamp_ms,
            "event_type": self.event_type,
            "content": self.content,
            "tool_name": self.tool_name,
            "tool_args": None if self.tool_args is None else dict(self.tool_args),
        }
        return {key: value for key, value in told.items() if value is not None}

    @classmethod
    def from_json(cls, told: Mapping[str, Json]) -> Self:
        """The event that `to_json` told.

        Raises:
            ConfigurationError: it is none.
        """
        return _made(cls, told, told)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step: what was done, and what came of it.

    Attributes:
        index: from 0.
        tool: the tool it called, the first where it called several; also one that was refused.
        action: what the agent answered.
        arguments: those of the call.
        result: what the tool gave, or why it was refused.
        ok: whether no call of the step was refused.
        reward: what it earned.
        reward_breakdown: out of what the reward is made, where the environment says so.
        observation: what was seen after the step; of large arrays only their form and digest.
        info: what the environment said beside it.
        timeline: what happened, in order.
    """

    index: int
    tool: str | None = None
    action: Json = None
    arguments: Mapping[str, Json] = field(default_factory=dict[str, Json])
    result: Json = None
    ok: bool = True
    reward: float = 0.0
    reward_breakdown: Mapping[str, float] = field(default_factory=dict[str, float])
    observation: Json = None
    info: Mapping[str, Json] = field(default_factory=dict[str, Json])
    timeline: tuple[TimelineEvent, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """The step as routes and `rleaas.models.RolloutStep` have it."""
        return {
            "step": self.index,
            "tool": self.tool,
            "action": self.action,
            "arguments": dict(self.arguments),
            "result": self.result,
            "ok": self.ok,
            "reward": self.reward,
            "reward_breakdown": dict(self.reward_breakdown),
            "observation": self.observation,
            "info": dict(self.info),
            "timeline_events": [event.to_json() for event in self.timeline],
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Json]) -> Self:
        """The step that `to_json` told.

        Raises:
            ConfigurationError: it is none.
        """
        given = {key: told[key] for key in told if key not in ("step", "timeline_events")}
        events = tuple(map(TimelineEvent.from_json, told.get("timeline_events") or ()))
        return _made(cls, told, {**given, "index": told.get("step"), "timeline": events})


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutRecord:
    """One episode.

    Attributes:
        id: its name, unique in a file.
        scenario_id: which scenario was played, if one was.
        scenario_version: which version of it.
        seed: what it was reset with.
        repetition: which one of the same scenario and seed, from 0.
        index: its number in the run.
        outcome: how it ended, a word of `rlmesh.runs.Outcome`.
        success: whether the task was solved, where somebody says so.
        reward: the sum of its rewards; None where it has no score.
        truncated: whether a limit ended it.
        steps: in their order.
        state: what is known at the end.
        verdicts: what verifiers said, as `Verdict.to_dict` has it.
        score: the mean of the verdicts; None where nobody could judge.
        error: why it failed.
        duration_s: how long it took.
    """

    id: str
    scenario_id: str | None = None
    scenario_version: int | None = None
    seed: int | None = None
    repetition: int = 0
    index: int = 0
    outcome: str = "completed"
    success: bool | None = None
    reward: float | None = None
    truncated: bool = False
    steps: tuple[StepRecord, ...] = ()
    state: Json = None
    verdicts: tuple[Mapping[str, Json], ...] = ()
    score: float | None = None
    error: str | None = None
    duration_s: float = 0.0

    @property
    def actions_digest(self) -> str | None:
        """The same for episodes in which the agent answered the same; None: it never did."""
        if not self.steps:
            return None
        said = [(step.tool, step.action) for step in self.steps]
        text = json.dumps(said, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def summary(self) -> dict[str, Json]:
        """The episode without its steps."""
        return {
            "id": self.id,
            "scenario_id": self.scenario_id,
            "scenario_version": self.scenario_version,
            "seed": self.seed,
            "repetition": self.repetition,
            "index": self.index,
            "outcome": self.outcome,
            "success": self.success,
            "reward": self.reward,
            "truncated": self.truncated,
            "state": self.state,
            "verifier_results": [dict(one) for one in self.verdicts],
            "score": self.score,
            "error": self.error,
            "duration_s": self.duration_s,
        }

    def to_json(self) -> dict[str, Json]:
        """The whole episode."""
        return {**self.summary(), "steps": [step.to_json() for step in self.steps]}

    @classmethod
    def from_json(cls, told: Mapping[str, Json]) -> Self:
        """The episode that `to_json` or `summary` told.

        Raises:
            ConfigurationError: it is none.
        """
        given = {key: told[key] for key in told if key not in ("steps", "verifier_results")}
        steps = tuple(map(StepRecord.from_json, told.get("steps") or ()))
        verdicts = tuple(cast("list[dict[str, Json]]", told.get("verifier_results") or ()))
        return _made(cls, told, {**given, "steps": steps, "verdicts": verdicts})


def _made(kind: type[Record], told: object, parts: Mapping[str, Json]) -> Record:
    try:
        return kind(**parts)
    except TypeError as error:
        raise ConfigurationError(
            f"{str(told)[:200]} is no {kind.__name__}: {error}", code="invalid_rollout"
        ) from error

"""A rollout as verifiers see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from rleaas.evaluation.rollouts.record import Json, RolloutRecord, StepRecord
from rleaas.verify.episode import TOOL_CALLS, tool_calls_of
from rleaas.verify.trajectory import Step, ToolCall, Trajectory

_NOT_NAMED: Final[Mapping[int, str]] = {}


def trajectory_of(record: RolloutRecord) -> Trajectory:
    """The episode as a trajectory: the same that was there when it was played.

    Calls that were refused are no calls.
    """
    state = record.state
    return Trajectory(
        steps=tuple(map(_step, record.steps)),
        state=cast("Mapping[str, Json]", state) if isinstance(state, dict) else {},
        truncated=record.truncated,
    )


def _step(step: StepRecord) -> Step:
    return Step(
        action=step.action,
        observation=step.observation,
        reward=step.reward,
        info=step.info,
        calls=_calls(step),
    )


def _calls(step: StepRecord) -> tuple[ToolCall, ...]:
    if TOOL_CALLS in step.info or not step.ok:
        return tool_calls_of(step.action, step.info, _NOT_NAMED)
    found = tool_calls_of(step.action, step.info, _NOT_NAMED)
    if found or step.tool is None:
        return found
    return (ToolCall(step.tool, step.arguments, step.result),)

"""The events of a step, in the order in which they happened."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from rleaas.evaluation.rollouts.record import Json, TimelineEvent

THOUGHTS: Final = ("thought", "reasoning")
"""Keys of an action or an info that hold what a model thought."""
_LONGEST_ACTION: Final = 1_000_000


def events_of(
    action: Json,
    info: Mapping[str, Json],
    calls: Sequence[Mapping[str, Json]],
    *,
    before_ms: int,
    after_ms: int,
) -> Iterator[TimelineEvent]:
    """A thought where there was one, then each call and what came of it.

    Args:
        action: what the agent answered.
        info: what the environment said.
        calls: `{"tool", "arguments", "result" or "error"}`, as `calls_of` gives them.
        before_ms: when the agent had answered.
        after_ms: when the environment had.
    """
    thought = _thought(action, info)
    if thought is not None:
        yield TimelineEvent(timestamp_ms=before_ms, event_type="MODEL_THOUGHT", content=thought)
    for call in calls:
        name = str(call["tool"])
        arguments = call.get("arguments")
        yield TimelineEvent(
            timestamp_ms=before_ms,
            event_type="TOOL_CALL",
            tool_name=name,
            tool_args=cast("Mapping[str, Json]", arguments) if isinstance(arguments, dict) else {},
        )
        told = call["error"] if "error" in call else call.get("result")
        if told is not None:
            yield TimelineEvent(
                timestamp_ms=after_ms,
                event_type="TOOL_RESULT",
                tool_name=name,
                content=told if isinstance(told, str) else json.dumps(told),
            )


def system(timestamp_ms: int, content: str) -> TimelineEvent:
    """Something that neither the agent nor a tool said."""
    return TimelineEvent(timestamp_ms=timestamp_ms, event_type="SYSTEM", content=content)


def _thought(action: Json, info: Mapping[str, Json]) -> str | None:
    said = _first(info)
    if said is not None or not isinstance(action, str | dict):
        return said
    if isinstance(action, dict):
        return _first(cast("dict[str, Json]", action))
    if not action.lstrip().startswith("{") or len(action) > _LONGEST_ACTION:
        return action.strip() or None
    try:
        found: object = json.loads(action)
    except (ValueError, RecursionError):
        return action
    return _first(cast("dict[str, Json]", found)) if isinstance(found, dict) else action


def _first(parts: Mapping[str, Json]) -> str | None:
    found = (parts.get(key) for key in THOUGHTS)
    return next((one for one in found if isinstance(one, str) and one), None)

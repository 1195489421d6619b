"""Rollouts without what governance hides."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from rleaas.evaluation.rollouts import RolloutRecord, StepRecord, TimelineEvent
from rleaas.evaluation.rollouts.record import Json
from rleaas.server.rules import governance


def masked_rollout(record: RolloutRecord, hidden: Sequence[str]) -> RolloutRecord:
    """The episode with a mask in place of every field of these names, also in texts of JSON."""

    def hide(value: Json) -> Json:
        return governance.masked(_in_texts(value, hidden), hidden)

    def fields(value: Mapping[str, Json]) -> Mapping[str, Json]:
        return cast("Mapping[str, Json]", hide(dict(value)))

    def event(one: TimelineEvent) -> TimelineEvent:
        arguments = None if one.tool_args is None else fields(one.tool_args)
        return replace(one, content=hide(one.content), tool_args=arguments)

    def step(one: StepRecord) -> StepRecord:
        return replace(
            one,
            action=hide(one.action),
            arguments=fields(one.arguments),
            result=hide(one.result),
            observation=hide(one.observation),
            info=fields(one.info),
            timeline=tuple(map(event, one.timeline)),
        )

    return replace(
        record,
        state=hide(record.state),
        verdicts=tuple(map(fields, record.verdicts)),
        steps=tuple(map(step, record.steps)),
    )


def _in_texts(value: Json, hidden: Sequence[str]) -> Json:
    if isinstance(value, dict):
        parts = cast("dict[str, Json]", value)
        return {key: _in_texts(part, hidden) for key, part in parts.items()}
    if isinstance(value, list):
        return [_in_texts(part, hidden) for part in cast("list[object]", value)]
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        told: Json = json.loads(value)
    except (ValueError, RecursionError):
        return value
    kept = governance.masked(_in_texts(told, hidden), hidden)
    return value if kept == told else json.dumps(kept)

"""Rollouts as a table of Parquet: a row for each episode, whose steps are a list in it.

What an environment decides the form of is JSON text; everything else has columns of its own, so
that `SELECT unnest(steps)` works in any tool that reads Parquet.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final, cast

from rlcore import ConfigurationError, MissingDependencyError

from rleaas.evaluation.rollouts.record import Json, RolloutRecord, StepRecord, TimelineEvent

FORMAT_KEY: Final = b"rleaas.rollouts"
FORMAT: Final = b"1"
Row = Mapping[str, Any]


@cache
def arrow() -> Any:
    """The module `pyarrow`, which has no types.

    Raises:
        MissingDependencyError: it is not installed.
    """
    return _module("pyarrow")


@cache
def parquet() -> Any:
    """The module `pyarrow.parquet`.

    Raises:
        MissingDependencyError: it is not installed.
    """
    return _module("pyarrow.parquet")


@cache
def schema() -> Any:
    """The table's form."""
    pa = arrow()
    text, real, whole, truth = pa.string(), pa.float64(), pa.int64(), pa.bool_()
    event = pa.struct(
        [
            pa.field("timestamp_ms", whole, nullable=False),
            pa.field("event_type", text, nullable=False),
            ("content", text),
            ("tool_name", text),
            ("tool_args", text),
        ]
    )
    step = pa.struct(
        [
            pa.field("index", whole, nullable=False),
            ("tool", text),
            ("action", text),
            ("arguments", text),
            ("result", text),
            pa.field("ok", truth, nullable=False),
            pa.field("reward", real, nullable=False),
            ("reward_breakdown", text),
            ("observation", text),
            ("info", text),
            ("timeline", pa.list_(event)),
        ]
    )
    fields = [
        pa.field("id", text, nullable=False),
        ("scenario_id", text),
        ("scenario_version", whole),
        ("seed", whole),
        pa.field("repetition", whole, nullable=False),
        pa.field("index", whole, nullable=False),
        pa.field("outcome", text, nullable=False),
        ("success", truth),
        ("reward", real),
        pa.field("truncated", truth, nullable=False),
        ("state", text),
        ("verdicts", text),
        ("score", real),
        ("error", text),
        pa.field("duration_s", real, nullable=False),
        ("steps", pa.list_(step)),
    ]
    return pa.schema(fields, metadata={FORMAT_KEY: FORMAT})


def table_of(records: Sequence[RolloutRecord]) -> Any:
    """The episodes as a table.

    Raises:
        ConfigurationError: a value is none of JSON, or a number does not fit.
    """
    pa = arrow()
    form = schema()
    try:
        columns = [
            pa.array(_column(records, field.name), field.type)
            for field in form
            if field.name != "steps"
        ]
        columns.append(_steps(records, form.field("steps").type))
        return pa.table(columns, schema=form)
    except (pa.ArrowException, OverflowError, TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"an episode of {len(records)} cannot be kept as Parquet: {error}",
            code="invalid_rollout",
        ) from error


def record_of(row: Row) -> RolloutRecord:
    """An episode out of its row; one without the column `steps` has none.

    Raises:
        ValueError: a text is no JSON of its kind.
        TypeError: a value is missing.
    """
    return RolloutRecord(
        id=row["id"],
        scenario_id=row["scenario_id"],
        scenario_version=row["scenario_version"],
        seed=row["seed"],
        repetition=row["repetition"],
        index=row["index"],
        outcome=row["outcome"],
        success=row["success"],
        reward=row["reward"],
        truncated=row["truncated"],
        steps=tuple(map(_step_of, row.get("steps") or ())),
        state=_read(row["state"]),
        verdicts=tuple(_object(one, "a verdict") for one in _list(row["verdicts"])),
        score=row["score"],
        error=row["error"],
        duration_s=row["duration_s"],
    )


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            "rollouts are kept as Parquet with pyarrow, which is not installed",
            hint="Install it: pip install 'rleaas[server]', or pip install pyarrow",
        ) from error


def _column(records: Iterable[RolloutRecord], name: str) -> list[Any]:
    if name in _JSON_OF_RECORD:
        return [_written(getattr(one, name)) for one in records]
    if name in _TEXTS:
        return [_text(getattr(one, name)) for one in records]
    return [getattr(one, name) for one in records]


def _steps(records: Sequence[RolloutRecord], kind: Any) -> Any:
    steps = [step for record in records for step in record.steps]
    events = [event for step in steps for event in step.timeline]
    step_type = kind.value_type
    timeline_type = step_type.field("timeline").type
    timeline = _lists([len(step.timeline) for step in steps], _struct(events, timeline_type))
    columns = {"timeline": timeline}
    return _lists([len(one.steps) for one in records], _struct(steps, kind, columns))


def _struct(
    rows: Sequence[StepRecord] | Sequence[TimelineEvent],
    kind: Any,
    made: Mapping[str, Any] | None = None,
) -> Any:
    pa = arrow()
    form = kind.value_type
    fields = [form.field(place) for place in range(form.num_fields)]
    made = made or {}
    arrays = [
        made[field.name] if field.name in made else pa.array(_parts(rows, field.name), field.type)
        for field in fields
    ]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _parts(rows: Sequence[StepRecord] | Sequence[TimelineEvent], name: str) -> list[Any]:
    convert: Callable[[Any], Any] | None = _CONVERT.get(name)
    if convert is None:
        return [getattr(one, name) for one in rows]
    return [convert(getattr(one, name)) for one in rows]


def _lists(lengths: Sequence[int], values: Any) -> Any:
    pa = arrow()
    ends = [0]
    for length in lengths:
        ends.append(ends[-1] + length)
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values)


def _written(value: Json) -> str | None:
    # JSON has no NaN; whoever records has put something else there.
    return None if value is None else _ENCODE(value)


def _text(value: str | None) -> str | None:
    # A surrogate without its other half is no UTF-8.
    return None if value is None else value.encode("utf-8", "backslashreplace").decode("utf-8")


def _step_of(row: Row) -> StepRecord:
    return StepRecord(
        index=row["index"],
        tool=row["tool"],
        action=_read(row["action"]),
        arguments=_object(_read(row["arguments"]), "the arguments of a call"),
        result=_read(row["result"]),
        ok=row["ok"],
        reward=row["reward"],
        reward_breakdown=_object(_read(row["reward_breakdown"]), "a reward's breakdown"),
        observation=_read(row["observation"]),
        info=_object(_read(row["info"]), "an info"),
        timeline=tuple(map(_event_of, row["timeline"] or ())),
    )


def _event_of(row: Row) -> TimelineEvent:
    arguments = row["tool_args"]
    return TimelineEvent(
        timestamp_ms=row["timestamp_ms"],
        event_type=row["event_type"],
        content=row["content"],
        tool_name=row["tool_name"],
        tool_args=None if arguments is None else _object(_read(arguments), "the arguments"),
    )


def _read(text: str | None) -> Json:
    return None if text is None else json.loads(text, parse_constant=_no_number)


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def _object(value: Json, what: str) -> Mapping[str, Json]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError(f"{what} is no object")
    return cast("dict[str, Json]", value)


def _list(text: str | None) -> Sequence[Json]:
    found = _read(text)
    if found is None:
        return ()
    if not isinstance(found, list):
        raise TypeError("the verdicts are no list")
    return [*cast("list[object]", found)]


_ENCODE = json.JSONEncoder(
    separators=(",", ":"), allow_nan=False, default=dict
).encode  # `default`: mappings that are no dict
_JSON_OF_RECORD: Final = frozenset({"state", "verdicts"})
_TEXTS: Final = frozenset({"id", "scenario_id", "outcome", "error"})
_CONVERT: Final[Mapping[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(
        ("action", "arguments", "result", "reward_breakdown", "observation", "info", "tool_args"),
        _written,
    ),
    **dict.fromkeys(("tool", "content", "tool_name", "event_type"), _text),
}

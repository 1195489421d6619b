"""What a report says, read with care: a report may be of an older release, or of half a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeGuard, cast

Facts = Mapping[str, object]
NOTHING: Final = "-"


class Measured(NamedTuple):
    """A number, and the bounds of its 95 % interval where there are any."""

    value: float
    low: float | None
    high: float | None


def number(value: object) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def facts(value: object) -> Facts:
    """An object; empty where it is none."""
    return cast("Facts", value) if isinstance(value, Mapping) else {}


def rows(value: object) -> list[Facts]:
    """The objects of a list."""
    return [cast("Facts", one) for one in items(value) if isinstance(one, Mapping)]


def items(value: object) -> Sequence[object]:
    """A list; empty where it is none."""
    return value if _is_list(value) else ()


def measured(told: Facts, name: str, *bounds: str) -> Measured | None:
    """A number of a report with the first of these intervals that is there."""
    value = number(told.get(name))
    if value is None:
        return None
    for key in bounds:
        ends = [number(one) for one in items(told.get(key))]
        if len(ends) == 2 and ends[0] is not None and ends[1] is not None:
            return Measured(value, ends[0], ends[1])
    return Measured(value, None, None)


def in_words(value: object, *, percent: bool = False) -> str:
    """A value as people read it."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, Measured):
        shown = _share if percent else _plain
        if value.low is None or value.high is None:
            return shown(value.value)
        return f"{shown(value.value)} [{shown(value.low)}, {shown(value.high)}]"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if not math.isfinite(value):
            return NOTHING
        return _share(value) if percent else _plain(value)
    if isinstance(value, Mapping):
        parts = cast("Mapping[object, object]", value)
        return ", ".join(f"{key}: {in_words(one)}" for key, one in parts.items()) or NOTHING
    if _is_list(value):
        return ", ".join(map(in_words, value)) or NOTHING
    return str(value)


def partial(report: Facts) -> str | None:
    """That an evaluation is not whole, and how much of it there is; None: it is."""
    status = report.get("status")
    if status in (None, "completed"):
        return None
    there = report.get("episodes")
    played = len(there) if _is_list(there) else report.get("episodes_done")
    ended = report.get("completed_at")
    how = f"{status} at {ended}" if ended else f"it is {status}"
    return f"partial: {in_words(played)} of {in_words(report.get('asked'))} episodes, {how}"


def headline(report: Facts) -> list[tuple[str, str]]:
    """The figures that a report begins with; coverage before any average."""
    asked, scored, failed = (report.get(name) for name in ("asked", "scored", "failed"))
    return [
        ("overall score", in_words(measured(report, "overall_score", "score_interval"))),
        (
            "pass rate",
            in_words(
                measured(report, "pass_rate", "pass_interval", "success_interval"), percent=True
            ),
        ),
        (
            "coverage",
            f"{in_words(scored)} of {in_words(asked)} episodes have a score, "
            f"{in_words(failed)} failed",
        ),
        (
            "success rate",
            in_words(measured(report, "success_rate", "success_interval"), percent=True),
        ),
        ("mean return", in_words(measured(report, "mean_return", "return_interval"))),
    ]


def groups(report: Facts, kind: str) -> list[Facts]:
    """The results of each scenario, tier or verifier, with a `label`."""
    if kind == "verifier":
        told = {name: facts(one) for name, one in facts(report.get("verifier_breakdown")).items()}
        return [
            {**one, "label": one.get("name") or name, "verifier_id": name}
            for name, one in told.items()
            if one
        ]
    found = rows(report.get(f"{kind}_results"))
    if kind == "tier":
        return [{**one, "label": f"tier {in_words(one.get('tier'))}"} for one in found]
    return [{**one, "label": one.get("name") or one.get("scenario_id")} for one in found]


def _plain(value: float) -> str:
    return f"{value:.4g}"


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple) and not isinstance(value, Measured)

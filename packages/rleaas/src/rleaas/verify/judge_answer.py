"""Reading what a language model answered, and refusing what is no answer."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, cast

_LONGEST = 100_000
_FENCED = re.compile(r"\A```(?:json)?\s*\n(.*)\n```\Z", re.DOTALL)


class BadAnswer(Exception):
    """The text is no answer; `reason` is `prose`, `invalid_answer` or `out_of_scale`."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Grades:
    """A number for each dimension, on the rubric's scale, and why."""

    scores: Mapping[str, float]
    explanation: str


def read_answer(text: str, dimensions: Sequence[str], low: float, high: float) -> Grades:
    """The grades that an answer gives.

    Raises:
        BadAnswer: it is prose, lacks a dimension or has another, or a number is off the scale.
    """
    said = _object(text)
    scores = said.get("scores")
    if not isinstance(scores, Mapping):
        raise BadAnswer("invalid_answer", "its answer has no object 'scores'")
    given = cast("Mapping[str, object]", scores)
    missing = [name for name in dimensions if name not in given]
    unasked = [name for name in given if name not in dimensions]
    if missing or unasked:
        what = f"no score of {missing[0]!r}" if missing else f"a score of {unasked[0][:100]!r}"
        raise BadAnswer("invalid_answer", f"its answer has {what}")
    explanation = said.get("explanation", "")
    if not isinstance(explanation, str):
        raise BadAnswer("invalid_answer", "its explanation is no text")
    return Grades(
        {name: _on_scale(name, given[name], low, high) for name in dimensions}, explanation
    )


def _object(text: str) -> Mapping[str, object]:
    plain = text.strip()
    fenced = _FENCED.match(plain)
    if fenced:
        plain = fenced[1]
    if len(plain) > _LONGEST:
        raise BadAnswer("invalid_answer", f"its answer has {len(plain)} characters")
    try:
        said: object = json.loads(plain, parse_constant=_refuse, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise BadAnswer("prose", f"it answered no JSON: {text[:200]!r}") from None
    if not isinstance(said, Mapping):
        raise BadAnswer("prose", f"it answered no JSON object: {text[:200]!r}")
    return cast("Mapping[str, object]", said)


def _on_scale(name: str, value: object, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadAnswer("invalid_answer", f"its score of {name!r} is no number: {value!r}"[:300])
    if not low <= value <= high or not math.isfinite(value):
        shown = repr(value)[:60]
        raise BadAnswer(
            "out_of_scale", f"its score of {name!r} is {shown}, not from {low:g} to {high:g}"
        )
    return float(value)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _once(pairs: Sequence[tuple[str, object]]) -> Mapping[str, object]:
    """An object whose keys differ: of two grades of a dimension nobody knows which is meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise BadAnswer("invalid_answer", f"its answer has {twice[:100]!r} twice")
    return found

"""Which checkpoints of a job stay; pure."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rleaas.training.kept_checkpoints import KeptCheckpoints

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint as far as it matters here.

    Attributes:
        id: its id.
        score: its figure that decides; None where it has none.
        has_state: whether what an exact resume needs is kept with it.
    """

    id: str
    score: float | None
    has_state: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """What goes: whole checkpoints, and the states of others."""

    checkpoints: frozenset[str]
    states: frozenset[str]


def surplus(
    saved: Sequence[Saved], kept: KeptCheckpoints, referred: Collection[str] = ()
) -> Verdict:
    """What goes of these checkpoints, which are in the order in which they were saved.

    The newest always stays with its state, and so does what something refers to.
    """
    ids = [one.id for one in saved]
    staying = {*referred, *_newest(ids, kept.last)}
    scored = [
        (one.score, place, one.id)
        for place, one in enumerate(saved)
        if one.score is not None and math.isfinite(one.score)
    ]
    # Of equals the one that was trained longest.
    staying.update(name for _, _, name in _newest(sorted(scored), kept.best))
    if kept.every is None or kept.every == 1:
        staying.update(ids)
    elif kept.every:
        staying.update(ids[kept.every - 1 :: kept.every])
    with_state = [one.id for one in saved if one.has_state]
    states = {*referred, *_newest(with_state, kept.states)}
    going = frozenset(ids) - staying
    return Verdict(going, frozenset(with_state) - states - going)


def _newest(items: Sequence[T], count: int | None) -> Sequence[T]:
    if count is None:
        return items
    return items[-count:] if count else items[:0]

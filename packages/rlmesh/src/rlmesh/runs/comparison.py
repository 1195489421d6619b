"""Whether two records of the same seeds tell the same story, episode by episode."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Protocol


class EpisodeLike(Protocol):
    """What two episodes are compared by; a platform report's episodes have it too."""

    @property
    def index(self) -> int:
        """Its place in the run."""
        ...

    @property
    def seed(self) -> int | None:
        """What it was reset with."""
        ...

    @property
    def steps(self) -> int:
        """How many steps it took."""
        ...

    @property
    def reward(self) -> float | None:
        """The sum of its rewards, None without a score."""
        ...

    @property
    def outcome(self) -> str:
        """How it ended, as the text of an `Outcome`."""
        ...


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One field of one episode on which two records differ."""

    index: int
    seed: int | None
    field: str
    ours: object
    theirs: object

    def __str__(self) -> str:
        where = f"episode {self.index}" + ("" if self.seed is None else f" (seed {self.seed})")
        return f"{where}: {self.field} is {self.ours!r} here and {self.theirs!r} there"


def disagreements(
    ours: Iterable[EpisodeLike], theirs: Iterable[EpisodeLike], *, tolerance: float
) -> tuple[Disagreement, ...]:
    """Pair the episodes by their place and return every field that differs."""
    found: list[Disagreement] = []
    for mine, other in zip_longest(ours, theirs):
        if mine is None or other is None:
            present = mine or other
            assert present is not None  # zip_longest never pads both sides
            found.append(
                Disagreement(
                    present.index,
                    present.seed,
                    "episode",
                    "present" if mine else "missing",
                    "present" if other else "missing",
                )
            )
            continue
        found += [
            Disagreement(mine.index, mine.seed, name, one, two)
            for name, one, two, same in _fields(mine, other, tolerance)
            if not same
        ]
    return tuple(found)


def _fields(
    mine: EpisodeLike, other: EpisodeLike, tolerance: float
) -> Iterable[tuple[str, object, object, bool]]:
    yield "seed", mine.seed, other.seed, mine.seed == other.seed
    yield "steps", mine.steps, other.steps, mine.steps == other.steps
    yield "outcome", str(mine.outcome), str(other.outcome), str(mine.outcome) == str(other.outcome)
    yield "reward", mine.reward, other.reward, _close(mine.reward, other.reward, tolerance)


def _close(one: float | None, two: float | None, tolerance: float) -> bool:
    if one is None or two is None:
        return one is two
    if math.isnan(one) or math.isnan(two):
        return math.isnan(one) and math.isnan(two)
    return math.isclose(one, two, rel_tol=tolerance, abs_tol=tolerance)

"""People and machines, and evaluations that were made again: how far they say the same."""

from __future__ import annotations

from pydantic import Field

from rleaas.models.human import HumanEvalStepScore
from rleaas.models.shape import JsonObject, Moment, Shape


class Kappa(Shape):
    """Cohen's kappa of two raters over the same items; None where it is no number.

    `observed` is the share on which they say the same, `expected` what chance alone would give.
    """

    judged: int
    observed: float | None = None
    expected: float | None = None
    kappa: float | None = None
    interval: tuple[float, float] | None = None


class HumanVerdict(Shape):
    """What a person says of an episode of an evaluation."""

    episode: int
    passed: bool
    rater: str
    score: float | None = None
    comments: str | None = None
    step_scores: list[HumanEvalStepScore] = Field(default_factory=list[HumanEvalStepScore])
    timestamp: Moment | None = None


class KeptVerdict(Shape):
    """The answer to a verdict."""

    success: bool
    evaluation_id: str
    verdict: HumanVerdict
    total: int


class HumanAgreement(Shape):
    """How far people agree with the verifiers of an evaluation, and with each other."""

    evaluation_id: str
    human_evaluations: int
    episodes: int = 0
    raters: list[str] = Field(default_factory=list[str])
    machine: Kappa
    verifiers: dict[str, Kappa] = Field(default_factory=dict[str, Kappa])
    between_raters: list[JsonObject] = Field(default_factory=list[JsonObject])
    mean_score_difference: float | None = None
    disagreements: list[JsonObject] = Field(default_factory=list[JsonObject])


class Reproduction(Shape):
    """Whether an evaluation came out as another one: `same` or `different`, and what changed.

    `changes` are those of their provenance (`what`, `before`, `after`); `differences` the first
    hundred episodes of which they say something else.
    """

    original_id: str
    reproduction_id: str
    verdict: str
    changes: list[JsonObject] = Field(default_factory=list[JsonObject])
    episodes: int = 0
    episodes_differing: int = 0
    differences: list[JsonObject] = Field(default_factory=list[JsonObject])
    overall_score: dict[str, float | None] = Field(default_factory=dict[str, float | None])

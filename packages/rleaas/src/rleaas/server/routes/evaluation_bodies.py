"""What requests about evaluations that there are may say."""

from typing import Annotated, Literal

from pydantic import Field

from rleaas.server.routes.bodies import Body

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Rescore(Body):
    """Who judges the stored rollouts of an evaluation now."""

    verifier_ids: list[str] = Field(min_length=1, max_length=100)
    pass_threshold: float | None = Field(None, allow_inf_nan=False)
    name: str | None = Field(None, max_length=200)


class Reproduce(Body):
    """What to call the evaluation that plays another one again."""

    name: str | None = Field(None, max_length=200)


class StepWord(Body):
    """A word on one step of an episode."""

    step_index: int = Field(ge=0, le=10**9, strict=True)
    score: Literal["correct", "flawed", "critical_error"]
    comment: str | None = Field(None, max_length=10_000)


class HumanVerdict(Body):
    """What a person says of one episode; said again, it goes before what was said."""

    episode: int = Field(ge=0, le=10**9, strict=True)
    passed: bool = Field(strict=True)
    score: Share | None = None
    rater: str | None = Field(None, min_length=1, max_length=200)
    comments: str | None = Field(None, max_length=100_000)
    step_scores: list[StepWord] | None = Field(None, max_length=100_000)

"""What people say about what was trained."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from rleaas.models.shape import Moment, Shape


class HumanEvalStepScore(Shape):
    """A person's word on one step of an episode."""

    other_names: ClassVar = {"step_index": ("step",)}

    step_index: int = Field(ge=0)
    score: Literal["correct", "flawed", "critical_error"]
    comment: str | None = None


class HumanEvalRequest(Shape):
    """A person's verdict on a training job."""

    decision: Literal["yes", "no"]
    comments: str | None = None
    step_scores: list[HumanEvalStepScore] = Field(default_factory=list[HumanEvalStepScore])


class HumanEval(HumanEvalRequest):
    """A verdict as it is kept."""

    timestamp: Moment | None = None
    author: str | None = None


class HumanEvalReply(Shape):
    """The verdict that was kept, and whether it completed the job."""

    success: bool
    job_id: str
    evaluation: HumanEval
    total_evaluations: int
    training_completed: bool

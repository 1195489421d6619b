"""One episode while it is played: what was counted, and the record that becomes of it."""

from time import perf_counter
from typing import TYPE_CHECKING, Any

from rlmesh.runs.budget import Plan
from rlmesh.runs.grading import Grader
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.results import EpisodeResult

if TYPE_CHECKING:
    from rlmesh.models.policy import PolicyEpisode


class Episode:
    """Keeps count, so that an episode can be reported wherever it stops.

    Attributes:
        plan: what is played.
        place: where: the number of the environment, or of the lane.
        known: the episode as the policy knows it, from its first observation on.
        info: the last one that the environment gave.
    """

    __slots__ = (
        "info",
        "is_seeded",
        "known",
        "place",
        "plan",
        "predict_s",
        "reward",
        "started",
        "step_s",
        "steps",
        "terminated",
        "truncated",
    )

    def __init__(self, plan: Plan, place: int) -> None:
        self.plan = plan
        self.place = place
        self.known: PolicyEpisode | None = None
        self.started = perf_counter()
        self.steps = 0
        self.is_seeded = True
        self.reward = 0.0
        self.terminated = False
        self.truncated = False
        self.predict_s = 0.0
        self.step_s = 0.0
        self.info: dict[str, Any] = {}  # Any: whatever the environment says

    def finished(self, grader: Grader) -> EpisodeResult:
        """Return the record of an episode that was played to its end."""
        return grader.grade(self._result(Outcome.COMPLETED, error=None), self.info)

    def failed(self, outcome: Outcome, error: BaseException) -> EpisodeResult:
        """Return the record of an episode that has no score."""
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return self._result(outcome, error=text)

    def _result(self, outcome: Outcome, *, error: str | None) -> EpisodeResult:
        steps = self.steps
        return EpisodeResult(
            index=self.plan.index,
            seed=self.plan.seed if self.is_seeded else None,
            steps=steps,
            reward=self.reward,
            terminated=self.terminated,
            truncated=self.truncated,
            duration_s=perf_counter() - self.started,
            predict_ms=self.predict_s * 1000 / steps if steps else None,
            step_ms=self.step_s * 1000 / steps if steps else None,
            trial=self.plan.trial,
            outcome=outcome,
            error=error,
            attempts=self.plan.attempt,
        )

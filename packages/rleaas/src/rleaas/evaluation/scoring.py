"""What an episode is worth: what its verifiers say, else whether it was a success."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from rlmesh.runs.outcomes import Outcome, scored_outcome

from rleaas.evaluation.rollouts import RolloutRecord, trajectory_of
from rleaas.models.evaluation import EpisodeRecord
from rleaas.training.scenarios import Scenario
from rleaas.verify import Verdict, WeightedVerifier, decide

ScoreKind = Literal["verifiers", "success", "return"]
_JUDGED_AGAIN: Final = frozenset({Outcome.GRADER_ERROR.value})


@dataclass(frozen=True, slots=True)
class Scored:
    """An episode with what it is worth.

    Attributes:
        rollout: the episode with its verdicts.
        record: the same without steps, as reports have it.
        to_log: failures that their verifiers' policies want told.
    """

    rollout: RolloutRecord
    record: EpisodeRecord
    to_log: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """Who judges which episode, and what then counts.

    Attributes:
        kind: what a score is.
        verifiers: who judges episodes, unless their scenario has its own.
        of_scenarios: who judges those of some scenarios.
        scenarios: all of them, by id.
        pass_threshold: the score from which an episode passes; None: all verifiers pass it.
    """

    kind: ScoreKind = "return"
    verifiers: Sequence[WeightedVerifier] = ()
    of_scenarios: Mapping[str, Sequence[WeightedVerifier]] = field(
        default_factory=dict[str, Sequence[WeightedVerifier]]
    )
    scenarios: Mapping[str, Scenario] = field(default_factory=dict[str, Scenario])
    pass_threshold: float | None = None

    @property
    def looks_at_observations(self) -> bool:
        """Whether a verifier may ask for what was observed."""
        everybody = [*self.verifiers, *(one for some in self.of_scenarios.values() for one in some)]
        return any(one.judge.looks_at_observations for one in everybody)

    def of(self, rollout: RolloutRecord) -> Scored:
        """Judge an episode. One that failed has no score; nor has one that nobody could judge."""
        played = _played(rollout)
        if not Outcome(played.outcome).scored:
            return Scored(played, self._record(played, None, None))
        judges = self.of_scenarios.get(played.scenario_id or "", self.verifiers)
        if not judges:
            return self._by_itself(played)
        decision = decide(judges, trajectory_of(played))
        verdicts = tuple(one.to_dict() for one in decision.outcomes)
        if decision.score is None:
            why = "; ".join(f"{one.verifier}: {one.explanation}" for one in decision.ungraded)
            told = replace(
                played,
                verdicts=verdicts,
                score=None,
                outcome=Outcome.GRADER_ERROR.value,
                error=why,
            )
            return Scored(told, self._record(told, None, None))
        passed = decision.passed
        if self.pass_threshold is not None:
            passed = decision.score >= self.pass_threshold and not decision.failed_hard
        told = replace(played, verdicts=verdicts, score=decision.score)
        return Scored(told, self._record(told, decision.score, passed), decision.to_log)

    def _by_itself(self, played: RolloutRecord) -> Scored:
        score = played.reward
        passed = played.success
        if self.kind != "return":
            score = None if passed is None else float(passed)
        if self.pass_threshold is not None and score is not None:
            passed = score >= self.pass_threshold
        told = replace(played, verdicts=(), score=score)
        return Scored(told, self._record(told, score, passed))

    def _record(
        self, one: RolloutRecord, score: float | None, passed: bool | None
    ) -> EpisodeRecord:
        scenario = self.scenarios.get(one.scenario_id or "")
        return EpisodeRecord(
            index=one.index,
            seed=one.seed,
            steps=len(one.steps),
            reward=one.reward,
            outcome=one.outcome,
            success=one.success,
            truncated=one.truncated,
            error=one.error,
            duration_s=one.duration_s,
            scenario_id=one.scenario_id,
            scenario_version=one.scenario_version,
            tier=None if scenario is None else scenario.tier,
            repetition=one.repetition,
            score=score,
            passed=passed,
            actions_digest=one.actions_digest,
            verifier_results=[dict(verdict) for verdict in one.verdicts],
        )


def _played(rollout: RolloutRecord) -> RolloutRecord:
    """The episode as it was before anybody judged it."""
    if rollout.outcome not in _JUDGED_AGAIN or rollout.reward is None:
        return rollout
    outcome = scored_outcome(success=rollout.success, truncated=rollout.truncated)
    return replace(rollout, outcome=outcome.value, error=None)

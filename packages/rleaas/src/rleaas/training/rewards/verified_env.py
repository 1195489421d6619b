"""The environment with verifiers that judge each episode at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import gymnasium
from gymnasium import spaces
from rlcore import ConfigurationError, GraderError

from rleaas.training.ledger import SUCCESS_KEYS
from rleaas.training.rewards.python_verifier import load
from rleaas.training.rewards.remote_judge import RemoteJudge
from rleaas.verify import (
    Decision,
    Definition,
    EpisodeRecorder,
    Means,
    Ungraded,
    Verdict,
    WeightedVerifier,
    decide,
    definition_of,
    judge_of,
)
from rleaas.verify.episode import action_names

# Observations, actions and infos are whatever the environment's spaces say.
Value = Any

SCORES = "verifier_scores"
COMPOSITE = "composite_verifier_score"
PASSED = "verifiers_passed"
VERIFIER_REWARD = "verifier_reward"
GRADER_ERRORS = "grader_errors"
"""The info keys of an episode's last step: scores by id, their weighted mean, whether all passed,
what was added to the last reward, and why verifiers could not judge, by id."""
MOST_UNGRADED = 10
"""Episodes in a row without a verdict after which a training ends: it learns what nobody asked."""
_TELLS = 10
"""Failures of one verifier that the log tells; all count in the scores."""

Tell = Callable[[str], None]


def verifiers_of(definitions: Mapping[str, object]) -> tuple[WeightedVerifier, ...]:
    """The verifiers that a job was given: `{"weights": {id: weight}, "definitions": [...]}`.

    Python functions run here; those that a language model judges by ask the job's server, at its
    path `judge_at`.

    Raises:
        ConfigurationError: one is missing, or cannot judge.
        GraderError: the source of a function failed.
    """
    listed, weights = definitions.get("definitions"), definitions.get("weights")
    if not isinstance(listed, list | tuple) or not isinstance(weights, Mapping):
        raise ConfigurationError("a job's verifiers have weights and definitions")
    known: dict[str, Definition] = {}
    for record in cast("Sequence[Mapping[str, object]]", listed):
        definition = definition_of(record)
        known[definition.id] = definition
    path = definitions.get("judge_at")
    means = Means(
        load=load,
        remote=None
        if path is None
        else lambda id, version: RemoteJudge(path=str(path), verifier=id, version=version),
    )
    return tuple(
        WeightedVerifier(
            one,
            float(weight),
            judge_of(_find(known, one), lambda id: _find(known, id), means=means),
        )
        for one, weight in cast("Mapping[str, float]", weights).items()
    )


def _find(known: Mapping[str, Definition], verifier_id: str) -> Definition:
    if verifier_id not in known:
        raise ConfigurationError(f"the definition of verifier {verifier_id!r} did not come along")
    return known[verifier_id]


class VerifiedEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Steps whose last one is also worth what the verifiers say of the whole episode.

    Each adds its weight times its verdict's reward, the penalty of a failure included. An episode
    that fails one of them hard is no success; where the environment does not say what is one, it is
    one that passes them all. Where one could not judge, nothing is
    added, and the episode is neither a success nor a failure of theirs.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        verifiers: Sequence[WeightedVerifier],
        tell: Tell | None = None,
    ) -> None:
        super().__init__(env)
        self._verifiers = tuple(verifiers)
        self._tell = tell
        self._told: dict[str, int] = {}
        self._ungraded = 0
        first = env.action_space.start if isinstance(env.action_space, spaces.Discrete) else 0
        self._recorder = EpisodeRecorder(
            action_names=action_names(env.metadata, int(first)),
            observations=any(one.judge.looks_at_observations for one in verifiers),
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Value, dict[str, Any]]:
        """Start an episode, and its record."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._recorder.begin(info)
        return observation, info

    def step(self, action: Value) -> tuple[Value, float, bool, bool, dict[str, Any]]:
        """Step; when that ends the episode, let the verifiers judge it."""
        observation, given, terminated, truncated, info = self.env.step(action)
        reward = float(given)
        if info.get("aborted"):
            return observation, reward, terminated, truncated, info
        self._recorder.step(action, observation, reward, info, truncated=bool(truncated))
        if terminated or truncated:
            extra, told = self._judged(info)
            return observation, reward + extra, terminated, truncated, {**info, **told}
        return observation, reward, terminated, truncated, info

    def _judged(self, info: Mapping[str, Value]) -> tuple[float, dict[str, Value]]:
        decision = decide(self._verifiers, self._recorder.trajectory())
        for one, outcome in zip(self._verifiers, decision.outcomes, strict=True):
            if isinstance(outcome, Ungraded) or (not outcome.passed and outcome.policy.log_failure):
                self._note(one.id, outcome)
        told = self._told_of(decision)
        tells = [key for key in SUCCESS_KEYS if key in info]
        if decision.failed_hard:
            told.update(dict.fromkeys(tells or ["is_success"], False))
        elif not tells and decision.passed is not None:
            told["is_success"] = decision.passed
        self._require_verdicts(decision)
        return decision.reward or 0.0, told

    def _told_of(self, decision: Decision) -> dict[str, Value]:
        pairs = list(zip(self._verifiers, decision.outcomes, strict=True))
        verdicts = [(one, said) for one, said in pairs if isinstance(said, Verdict)]
        scores = {one.id: said.score for one, said in verdicts}
        errors = {one.id: said.reason for one, said in pairs if isinstance(said, Ungraded)}
        if errors:
            return {SCORES: scores, GRADER_ERRORS: errors}
        weights = sum(one.weight for one, _ in verdicts)
        return {
            SCORES: scores,
            COMPOSITE: sum(one.weight * said.score for one, said in verdicts) / weights,
            PASSED: decision.passed,
            VERIFIER_REWARD: decision.reward,
        }

    def _require_verdicts(self, decision: Decision) -> None:
        missing = decision.ungraded
        self._ungraded = self._ungraded + 1 if missing else 0
        if self._ungraded >= MOST_UNGRADED:
            raise GraderError(
                missing[0].verifier,
                missing[0].reason,
                f"{self._ungraded} episodes in a row had no verdict; the last: {missing[0].detail}",
                hint="Mend the verifier or its judge, and start the job from its last checkpoint",
            )

    def _note(self, verifier_id: str, outcome: Verdict | Ungraded) -> None:
        times = self._told[verifier_id] = self._told.get(verifier_id, 0) + 1
        if self._tell is None or times > _TELLS:
            return
        more = "; the log tells no more of its failures" if times == _TELLS else ""
        what = "could not judge" if isinstance(outcome, Ungraded) else "failed"
        self._tell(f"verifier {verifier_id} {what} an episode: {outcome.explanation[:500]}{more}")

"""The report of an evaluation, from its episodes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar, cast

from rlmesh.runs.outcomes import Outcome

from rleaas.evaluation.intervals import Evidence, Played, evidence_of
from rleaas.evaluation.pass_at_k import over_tasks
from rleaas.evaluation.scoring import ScoreKind
from rleaas.models.evaluation import EpisodeRecord
from rleaas.training.scenarios import Scenario
from rleaas.verify.verdict import usage_of

K = TypeVar("K")
_Said = tuple[EpisodeRecord, Mapping[str, object]]
"""What a verifier said, and of which episode."""
_SCORES = (0.0, 1.0)


def results_of(
    episodes: Sequence[EpisodeRecord],
    *,
    asked: int,
    kind: ScoreKind = "return",
    scenarios: Mapping[str, Scenario] | None = None,
) -> dict[str, object]:
    """An evaluation's `results`: coverage first, then numbers with intervals.

    Without a score there is no number: what failed counts into coverage, and into no average. The
    keys are those of `rleaas.models.EvaluationReport`; the server puts the episodes in, which were
    reported one by one.
    """
    played = [one for one in episodes if Outcome(one.outcome).scored]
    scored = [one for one in played if one.score is not None]
    returned = [one for one in played if one.reward is not None]
    returns = [one.reward for one in returned if one.reward is not None]
    evidence = _evidence(scored)
    return {
        "asked": asked,
        "scored": len(scored) if kind != "return" else len(played),
        "failed": len(episodes) - len(played),
        "coverage": (len(scored) / asked) if asked else None,
        "score_kind": kind,
        "overall_score": _mean(scores_of(scored)),
        "score_interval": _interval(
            evidence, scores_of(scored), None if kind == "return" else _SCORES
        ),
        **_rate("pass_rate", "pass_interval", evidence, [one.passed for one in scored]),
        **_rate(
            "success_rate", "success_interval", _evidence(played), [one.success for one in played]
        ),
        "mean_return": _mean(returns),
        "return_interval": _interval(_evidence(returned), returns),
        "std_return": statistics.stdev(returns) if len(returns) > 1 else None,
        "intervals": evidence.told() if scored else None,
        "pass_at_k": _pass_at_k(scored),
        "scenario_results": _by_scenario(episodes, scenarios or {}),
        "tier_results": _by_tier(episodes),
        "costs": costs_of(episodes),
    }


def breakdown_of(
    episodes: Sequence[EpisodeRecord], known: Mapping[str, Mapping[str, object]]
) -> dict[str, dict[str, object]]:
    """What each verifier said over all episodes.

    Args:
        episodes: with what verifiers said of them.
        known: of each verifier its `name`, `version` and whether it was `audited`.
    """
    said: dict[str, list[_Said]] = {one: [] for one in known}
    for episode in episodes:
        for result in episode.verifier_results:
            said.setdefault(str(result.get("verifier_id", "")), []).append((episode, result))
    return {one: {**known.get(one, {}), **_said(results)} for one, results in said.items()}


def costs_of(episodes: Sequence[EpisodeRecord]) -> dict[str, object]:
    """What playing took: steps, seconds of all episodes together, and what language models cost.

    `judge` has the calls and tokens of verdicts; answers that were none are in no verdict.
    """
    asked = usage_of(
        cast("Mapping[str, int] | None", said.get("usage"))
        for one in episodes
        for said in one.verifier_results
    )
    return {
        **({} if asked is None else {"judge": asked}),
        "steps": sum(one.steps for one in episodes),
        "episode_seconds": math.fsum(one.duration_s or 0.0 for one in episodes),
        "verdicts": sum(len(one.verifier_results) for one in episodes),
    }


def scores_of(episodes: Iterable[EpisodeRecord]) -> list[float]:
    """The scores that there are."""
    return [one.score for one in episodes if one.score is not None]


def _said(results: Sequence[_Said]) -> dict[str, object]:
    judged = [(episode, one) for episode, one in results if one.get("score") is not None]
    scores = [float(cast("float", one["score"])) for _, one in judged]
    passes = [one.get("passed") is True for _, one in judged]
    evidence = _evidence([episode for episode, _ in judged])
    return {
        "judged": len(judged),
        "errors": len(results) - len(judged),
        "mean_score": _mean(scores),
        "interval": _interval(evidence, scores, _SCORES),
        **_rate("pass_rate", "pass_interval", evidence, passes),
    }


def _by_scenario(
    episodes: Sequence[EpisodeRecord], scenarios: Mapping[str, Scenario]
) -> list[dict[str, object]]:
    groups = _grouped(episodes, lambda one: one.scenario_id)
    found: list[dict[str, object]] = []
    for scenario_id in [*scenarios, *(one for one in groups if one not in scenarios)]:
        group, scenario = groups.get(scenario_id, []), scenarios.get(scenario_id)
        scored = [one for one in group if _counts(one)]
        found.append(
            {
                "scenario_id": scenario_id,
                "name": None if scenario is None else scenario.name,
                "version": None if scenario is None else scenario.version,
                "tier": None if scenario is None else scenario.tier,
                **_group(group),
                "mean_return": _mean([one.reward for one in scored if one.reward is not None]),
                "mean_steps": _mean([float(one.steps) for one in scored]),
                "pass_at_k": _pass_at_k(scored),
            }
        )
    return found


def _by_tier(episodes: Sequence[EpisodeRecord]) -> list[dict[str, object]]:
    groups = _grouped(episodes, lambda one: one.tier)
    return [
        {
            "tier": tier,
            "scenarios": len({one.scenario_id for one in groups[tier]}),
            **_group(groups[tier]),
            "pass_at_k": _pass_at_k([one for one in groups[tier] if _counts(one)]),
        }
        for tier in sorted(groups)
    ]


def _group(group: Sequence[EpisodeRecord]) -> dict[str, object]:
    scored = [one for one in group if _counts(one)]
    scores, evidence = scores_of(scored), _evidence(scored)
    return {
        "episodes": len(group),
        "scored": len(scored),
        "failed": len(group) - len(scored),
        "mean_score": _mean(scores),
        "interval": _interval(evidence, scores),
        **_rate("pass_rate", "pass_interval", evidence, [one.passed for one in scored]),
    }


def _grouped(
    episodes: Sequence[EpisodeRecord], key: Callable[[EpisodeRecord], K | None]
) -> dict[K, list[EpisodeRecord]]:
    groups: dict[K, list[EpisodeRecord]] = {}
    for one in episodes:
        found = key(one)
        if found is not None:
            groups.setdefault(found, []).append(one)
    return groups


def _counts(one: EpisodeRecord) -> bool:
    return Outcome(one.outcome).scored and one.score is not None


def _pass_at_k(scored: Sequence[EpisodeRecord]) -> dict[str, float]:
    """Each scenario is a task, and its seeds and repetitions are attempts at it."""
    tasks = _grouped(scored, lambda one: one.scenario_id)
    if any(one.passed is None for group in tasks.values() for one in group):
        return {}
    return over_tasks({str(task): [one.passed is True for one in tasks[task]] for task in tasks})


def _rate(
    name: str, interval: str, evidence: Evidence, told: Sequence[bool | None]
) -> dict[str, object]:
    """A rate only where each says yes or no."""
    if not told or any(one is None for one in told):
        return {name: None, interval: None}
    passed = [one is True for one in told]
    return {name: sum(passed) / len(told), interval: evidence.of_rate(passed)}


def _mean(values: Sequence[float]) -> float | None:
    if not values:
        return None
    if not all(map(math.isfinite, values)):
        return None
    return math.fsum(values) / len(values)


def _interval(
    evidence: Evidence, values: Sequence[float], within: tuple[float, float] | None = None
) -> list[float] | None:
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return None
    return evidence.of_mean(values, within)


def _evidence(episodes: Sequence[EpisodeRecord]) -> Evidence:
    return evidence_of(
        [
            Played(
                one.scenario_id, one.seed, one.actions_digest, one.outcome, one.reward, one.score
            )
            for one in episodes
        ]
    )

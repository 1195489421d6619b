"""How two evaluations, or two single episodes, differ."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final, cast

from rleaas.evaluation.intervals import Played, evidence_of
from rleaas.server.pairs import paired
from rleaas.server.rules.json_values import items, number
from rleaas.server.store.tables import JsonObject

_SIDES: Final = ("baseline", "trained")
_WINNERS: Final = {"better": "trained", "worse": "baseline"}
Pair = tuple[str | None, int, int]


def comparison(environment: str, baseline: JsonObject, trained: JsonObject) -> JsonObject:
    """How they differ: over the episodes of the same scenario, seed and repetition.

    `delta` is the mean difference of these, and None where nothing has two scores. Of evaluations
    there is a `winner` only where the paired verdict has one, and a `tie` only where no pair
    differs; else, and without pairs, it is `inconclusive`. Of single rollouts it is the one with
    the higher score.
    """
    evaluations = "episodes" in baseline and "episodes" in trained
    pairs = _pairs(baseline, trained)
    deltas = [cast("float", one["delta"]) for one in pairs]
    verdict = paired(deltas, _clusters(pairs))
    delta = cast("float | None", verdict["mean_difference"])
    first, second = _score(baseline), _score(trained)
    if not evaluations and delta is None and first is not None and second is not None:
        delta = second - first
    winner = _winner(delta, deltas, str(verdict["verdict"]), evaluations=evaluations)
    ids = {"baseline": baseline["id"], "trained": trained["id"]}
    return {
        "environment_name": environment,
        "baseline": baseline,
        "pre_training": baseline,
        "trained": trained,
        "post_training": trained,
        "delta": delta,
        "improvement": delta,
        "winner": winner,
        "winner_id": ids.get(winner or ""),
        "per_scenario_diff": pairs,
        "scenario_breakdown": _by_scenario(pairs, baseline, trained) or pairs,
        "pass_at_k": {
            side: one.get("pass_at_k") or {}
            for side, one in zip(_SIDES, (baseline, trained), strict=True)
        },
        "paired": verdict,
        "warnings": _warnings(baseline, trained, len(pairs)) if evaluations else [],
    }


def _winner(
    delta: float | None, deltas: Sequence[float], verdict: str, *, evaluations: bool
) -> str | None:
    if delta is None:
        return "inconclusive" if evaluations else None
    if delta == 0 and not any(deltas):
        return "tie"
    if evaluations:
        return _WINNERS.get(verdict, "inconclusive")
    return "trained" if delta > 0 else "baseline"


def _pairs(baseline: JsonObject, trained: JsonObject) -> list[JsonObject]:
    before, after = _scores(baseline), _scores(trained)
    both = sorted(before.keys() & after.keys(), key=lambda pair: (pair[0] or "", *pair[1:]))
    return [
        {
            **({} if scenario is None else {"scenario_id": scenario}),
            "seed": seed,
            **({"repetition": repetition} if repetition else {}),
            "baseline": before[scenario, seed, repetition],
            "trained": after[scenario, seed, repetition],
            "delta": after[scenario, seed, repetition] - before[scenario, seed, repetition],
        }
        for scenario, seed, repetition in both
    ]


def _clusters(pairs: Sequence[JsonObject]) -> tuple[Hashable, ...]:
    """Which pairs are alike, as in a report (see `evaluation.intervals`)."""
    return evidence_of(
        [
            Played(
                cast("str | None", one.get("scenario_id")),
                cast("int", one["seed"]),
                *(None,) * 4,
            )
            for one in pairs
        ]
    ).clusters


def _by_scenario(
    pairs: Sequence[JsonObject], baseline: JsonObject, trained: JsonObject
) -> list[JsonObject]:
    groups: dict[str, list[JsonObject]] = {}
    for one in pairs:
        if "scenario_id" in one:
            groups.setdefault(str(one["scenario_id"]), []).append(one)
    chances = {side: _chances(one) for side, one in zip(_SIDES, (baseline, trained), strict=True)}
    found: list[JsonObject] = []
    for scenario, group in groups.items():
        told: JsonObject = {"scenario_id": scenario, "pairs": len(group)}
        for name in (*_SIDES, "delta"):
            told[name] = sum(cast("float", one[name]) for one in group) / len(group)
        judged = paired([cast("float", one["delta"]) for one in group], _clusters(group))
        told["interval"], told["verdict"] = judged["interval"], judged["verdict"]
        told["pass_at_k"] = {side: chances[side].get(scenario, {}) for side in _SIDES}
        found.append(told)
    return found


def _warnings(baseline: JsonObject, trained: JsonObject, pairs: int) -> list[str]:
    told: list[str] = []
    if not pairs:
        told.append("no episode has a score in both: nothing can be compared")
    for name, what in (
        ("score_kind", "scores are not of one kind"),
        ("verifier_ids", "they were not judged by the same verifiers"),
        ("contract_digest", "they were not played on the same environment"),
        ("scenario_suite_version", "they were not played on the same version of the suite"),
    ):
        if baseline.get(name) != trained.get(name):
            told.append(f"{what}: {baseline.get(name)!r} and {trained.get(name)!r}")
    for side, report in zip(_SIDES, (baseline, trained), strict=True):
        left = len(_scores(report)) - pairs
        if left:
            told.append(f"{left} scored episodes of the {side} have no counterpart")
    return told


def _chances(report: JsonObject) -> dict[str, object]:
    listed = [cast("JsonObject", one) for one in items(report.get("scenario_results"))]
    return {str(one.get("scenario_id")): one.get("pass_at_k") or {} for one in listed}


def _score(told: JsonObject) -> float | None:
    return number(told.get("score", told.get("overall_score")))


def _scores(report: JsonObject) -> dict[Pair, float]:
    found: dict[Pair, float] = {}
    for episode in items(report.get("episodes")):
        if not isinstance(episode, dict):
            continue
        one = cast("Mapping[str, object]", episode)
        seed, scenario, repetition = one.get("seed"), one.get("scenario_id"), one.get("repetition")
        # Evaluations of before scores were kept have returns.
        score = number(one.get("score") if "score" in one else one.get("reward"))
        if isinstance(seed, int) and score is not None:
            place = scenario if isinstance(scenario, str) else None
            found[place, seed, repetition if isinstance(repetition, int) else 0] = score
    return found

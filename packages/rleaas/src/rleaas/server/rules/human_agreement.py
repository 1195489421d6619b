"""How far people and verifiers say the same of the episodes of an evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from rleaas.evaluation.agreement import cohens_kappa
from rleaas.server.rules.json_values import items, number

JsonObject = dict[str, object]


def latest(verdicts: Iterable[Mapping[str, object]]) -> list[JsonObject]:
    """What each rater says now of each episode, in the order of the episodes."""
    said = {(str(one.get("rater")), one.get("episode")): dict(one) for one in verdicts}
    return sorted(said.values(), key=lambda one: (cast("int", one["episode"]), str(one["rater"])))


def agreement(
    verdicts: Sequence[Mapping[str, object]], episodes: Sequence[Mapping[str, object]]
) -> JsonObject:
    """Cohen's kappa of people and the machine, over what both have judged.

    Several people are several judgements of an episode. An episode without a machine's verdict
    counts as not judged.

    Args:
        verdicts: what people say now.
        episodes: of the evaluation's report.
    """
    by_index = {one.get("index"): one for one in episodes}
    pairs: list[tuple[bool, bool]] = []
    of_verifiers: dict[str, list[tuple[bool, bool]]] = {}
    apart: list[JsonObject] = []
    differences: list[float] = []
    for one in verdicts:
        episode = by_index.get(one.get("episode"), {})
        person, machine = one.get("passed") is True, episode.get("passed")
        if isinstance(machine, bool):
            pairs.append((person, machine))
            if person != machine:
                apart.append(
                    {
                        "episode": one["episode"],
                        "rater": one["rater"],
                        "human": person,
                        "machine": machine,
                        "comments": one.get("comments"),
                    }
                )
        theirs, score = number(one.get("score")), number(episode.get("score"))
        if theirs is not None and score is not None:
            differences.append(abs(theirs - score))
        for result in items(episode.get("verifier_results")):
            told = cast("JsonObject", result)
            if isinstance(told.get("passed"), bool):
                of_verifiers.setdefault(str(told.get("verifier_id")), []).append(
                    (person, told["passed"] is True)
                )
    return {
        "human_evaluations": len(verdicts),
        "episodes": len({one.get("episode") for one in verdicts}),
        "raters": sorted({str(one.get("rater")) for one in verdicts}),
        "machine": cohens_kappa(pairs).to_dict(),
        "verifiers": {key: cohens_kappa(told).to_dict() for key, told in of_verifiers.items()},
        "between_raters": _between(verdicts),
        "mean_score_difference": sum(differences) / len(differences) if differences else None,
        "disagreements": apart,
    }


def _between(verdicts: Sequence[Mapping[str, object]]) -> list[JsonObject]:
    said: dict[str, dict[object, bool]] = {}
    for one in verdicts:
        said.setdefault(str(one.get("rater")), {})[one.get("episode")] = one.get("passed") is True
    raters = sorted(said)
    return [
        {
            "raters": [first, second],
            **cohens_kappa(
                [
                    (said[first][key], said[second][key])
                    for key in said[first]
                    if key in said[second]
                ]
            ).to_dict(),
        }
        for place, first in enumerate(raters)
        for second in raters[place + 1 :]
    ]

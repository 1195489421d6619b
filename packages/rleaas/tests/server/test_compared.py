from typing import Any

import pytest
from rlcore import ConflictError
from rleaas.server.compared import comparison
from rleaas.server.reproductions import verdict
from rleaas.server.rules.human_agreement import agreement, latest

Episode = dict[str, Any]


def episode(index: int, score: float | None, **facts: Any) -> Episode:
    passed = None if score is None else score >= 0.5
    return {"index": index, "seed": index, "score": score, "passed": passed, **facts}


def report(name: str, episodes: list[Episode], **facts: Any) -> dict[str, object]:
    return {"id": name, "status": "completed", "episodes": episodes, **facts}


def played(name: str, scores: dict[str, list[float]], **facts: Any) -> dict[str, object]:
    episodes = [
        episode(place, score, seed=place, scenario_id=scenario)
        for scenario, some in scores.items()
        for place, score in enumerate(some)
    ]
    return report(name, episodes, **facts)


def test_episodes_are_paired_by_scenario_and_seed() -> None:
    before = played("a", {"wire": [0.0, 0.0, 1.0], "kyc": [1.0, 0.0]})
    after = played("b", {"wire": [1.0, 1.0, 1.0], "kyc": [1.0, 0.0]})

    told: Any = comparison("Fin", before, after)

    assert told["delta"] == pytest.approx(2 / 5)
    assert (told["paired"]["pairs"], told["winner"], told["winner_id"]) == (5, "inconclusive", None)
    by_scenario = {one["scenario_id"]: one for one in told["scenario_breakdown"]}
    assert by_scenario["wire"]["delta"] == pytest.approx(2 / 3)
    assert (by_scenario["kyc"]["baseline"], by_scenario["kyc"]["delta"]) == (0.5, 0.0)


def test_a_difference_in_every_pair_has_a_winner() -> None:
    before = played("a", {"wire": [0.0] * 10})
    after = played("b", {"wire": [1.0] * 10})

    told: Any = comparison("Fin", before, after)
    turned: Any = comparison("Fin", after, before)

    assert (told["winner"], told["winner_id"]) == ("trained", "b")
    assert (turned["winner"], turned["winner_id"]) == ("baseline", "b")
    assert told["scenario_breakdown"][0]["verdict"] == "better"


def test_what_has_no_score_is_no_pair_and_is_told() -> None:
    before = report("a", [episode(0, 1.0), episode(1, None), episode(2, 0.0)])
    after = report("b", [episode(0, 1.0), episode(1, 1.0)])

    told: Any = comparison("Fin", before, after)

    assert [one["seed"] for one in told["per_scenario_diff"]] == [0]
    assert told["winner"] == "tie"
    assert told["warnings"] == [
        "1 scored episodes of the baseline have no counterpart",
        "1 scored episodes of the trained have no counterpart",
    ]


def test_without_a_pair_nothing_is_compared() -> None:
    before = report("a", [episode(0, 1.0)], overall_score=1.0)
    after = report("b", [episode(1, 1.0)], overall_score=1.0)

    told: Any = comparison("Fin", before, after)

    assert (told["winner"], told["delta"], told["per_scenario_diff"]) == ("inconclusive", None, [])
    assert told["warnings"][0] == "no episode has a score in both: nothing can be compared"


def test_evaluations_by_other_judges_are_told_apart() -> None:
    before = report("a", [episode(0, 1.0)], verifier_ids=["v"], score_kind="verifiers")
    after = report("b", [episode(0, 1.0)], verifier_ids=["w"], score_kind="verifiers")

    told: Any = comparison("Fin", before, after)

    assert told["warnings"] == ["they were not judged by the same verifiers: ['v'] and ['w']"]


def test_a_reproduction_is_the_same_or_says_what_changed() -> None:
    where = {"environment": {"contract_digest": "sha256:1"}, "verifiers": {"v": 1}}
    other = {"environment": {"contract_digest": "sha256:1"}, "verifiers": {"v": 2}}
    first = report("a", [episode(0, 1.0), episode(1, 0.0)], provenance=where)
    same = report("b", [episode(0, 1.0), episode(1, 0.0)], provenance=where)
    changed = report("c", [episode(0, 1.0), episode(1, 1.0)], provenance=other)

    told, differs = verdict(first, same), verdict(first, changed)

    assert (told["verdict"], told["changes"], told["episodes_differing"]) == ("same", [], 0)
    assert (differs["verdict"], differs["episodes_differing"]) == ("different", 1)
    assert differs["changes"] == [{"what": "verifiers.v", "before": 1, "after": 2}]
    some: Any = differs["differences"]
    assert (some[0]["seed"], some[0]["differs"]) == (1, ["score", "passed"])
    with pytest.raises(ConflictError):
        verdict(first, {**same, "status": "running"})


def test_people_are_held_against_the_machine_and_each_other() -> None:
    # The fifty proposals of Wikipedia's "Cohen's kappa": people say the rows.
    cells = [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15
    episodes = [
        {
            "index": index,
            "passed": machine,
            "score": float(machine),
            "verifier_results": [{"verifier_id": "v", "passed": machine}],
        }
        for index, (_, machine) in enumerate(cells)
    ]
    said: list[Episode] = [
        {"rater": "ana", "episode": index, "passed": person, "score": 0.5}
        for index, (person, _) in enumerate(cells)
    ]
    said.append({"rater": "bob", "episode": 0, "passed": True})

    told: Any = agreement(said, episodes)

    assert told["raters"] == ["ana", "bob"]
    only_ana: Any = agreement(said[:-1], episodes)
    assert only_ana["machine"]["kappa"] == pytest.approx(0.4)
    assert only_ana["verifiers"]["v"]["kappa"] == pytest.approx(0.4)
    assert only_ana["mean_score_difference"] == 0.5
    assert len(only_ana["disagreements"]) == 15
    assert told["between_raters"][0]["judged"] == 1


def test_what_a_rater_says_later_counts() -> None:
    said = [
        {"rater": "ana", "episode": 3, "passed": True},
        {"rater": "ana", "episode": 1, "passed": True},
        {"rater": "ana", "episode": 3, "passed": False},
    ]
    assert [(one["episode"], one["passed"]) for one in latest(said)] == [(1, True), (3, False)]

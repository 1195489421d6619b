from __future__ import annotations

import random
from typing import cast

import pytest
from rleaas.evaluation.intervals import Played, evidence_of
from rleaas.evaluation.report import results_of
from rleaas.models.evaluation import EpisodeRecord
from rlmesh.runs.statistics import bootstrap_mean_interval, wilson_interval


def episode(index: int, *, passed: bool, **facts: object) -> EpisodeRecord:
    told = {"index": index, "seed": index, "outcome": "success", "reward": 1.0, **facts}
    return EpisodeRecord.model_validate(
        {**told, "passed": passed, "success": passed, "score": float(passed)}
    )


def test_seeds_of_one_scenario_are_no_more_than_one_scenario() -> None:
    # Ten scenarios with ten seeds each, and the seeds change nothing: six are passed.
    episodes = [
        episode(at, passed=at % 10 < 6, scenario_id=f"s{at % 10}", seed=at // 10)
        for at in range(100)
    ]

    told = results_of(episodes, asked=100, kind="success")

    assert told["pass_rate"] == 0.6
    assert told["intervals"] == {
        "confidence": 0.95,
        "clustered_by": "scenario",
        "clusters": 10,
        "episodes": 100,
        "distinct_episodes": 100,
    }
    low, high = interval(told["pass_interval"])
    alone = wilson_interval(6, 10)
    assert low < alone.low < 0.6 < alone.high < high
    assert told["score_interval"] == told["pass_interval"]


def test_without_scenarios_and_copies_intervals_are_the_plain_ones() -> None:
    episodes = [
        episode(at, passed=at < 15, reward=float(at), actions_digest=f"d{at}") for at in range(20)
    ]

    told = results_of(episodes, asked=20)

    assert told["pass_interval"] == list(wilson_interval(15, 20))
    assert told["return_interval"] == list(bootstrap_mean_interval(list(map(float, range(20)))))


def test_episodes_that_are_the_same_to_the_letter_are_one() -> None:
    same = [episode(at, passed=True, actions_digest="d") for at in range(30)]
    others = [episode(30 + at, passed=at < 1, actions_digest=f"d{at}") for at in range(2)]

    told = results_of([*same, *others], asked=32)

    assert told["pass_rate"] == 31 / 32
    low, _ = interval(told["pass_interval"])
    assert low < 0.5  # three trials, of which two passed, are no 32


def test_what_does_not_differ_has_no_interval() -> None:
    episodes = [episode(at, passed=True, reward=500.0, actions_digest=f"d{at}") for at in range(50)]

    told = results_of(episodes, asked=50)

    assert (told["mean_return"], told["return_interval"]) == (500.0, None)
    assert told["pass_interval"] == list(wilson_interval(50, 50))


def test_intervals_of_scores_stay_within_what_scores_can_be() -> None:
    scores = [0.9, 1.0, 0.95, 1.0, 0.2, 0.3]
    episodes = [
        episode(at, passed=True, scenario_id=f"s{at // 2}", seed=at % 2).model_copy(
            update={"score": score}
        )
        for at, score in enumerate(scores)
    ]

    told = results_of(episodes, asked=6, kind="verifiers")

    assert interval(told["score_interval"]) == (0.0, 1.0)


def test_repeated_seeds_are_clusters_where_there_is_one_scenario() -> None:
    played = [
        Played("s", seed, f"{seed}{time}", "success", 1.0, 1.0) for seed in (1, 2) for time in "ab"
    ]

    evidence = evidence_of(played)

    assert (evidence.by, evidence.clusters, evidence.distinct) == ("seed", (1, 1, 2, 2), 4)


def interval(told: object) -> tuple[float, float]:
    assert isinstance(told, list)
    low, high = cast("list[float]", told)
    return low, high


@pytest.mark.parametrize("tasks", [12, 40])
def test_nineteen_of_twenty_intervals_hold_the_rate_of_all_tasks(tasks: int) -> None:
    """Tasks are hard or easy for an agent; five seeds of one come out mostly alike."""
    draw = random.Random(3)
    held = plain = 0
    tries = 400
    for _ in range(tries):
        played: list[Played] = []
        passed: list[bool] = []
        for task in range(tasks):
            chance = 0.95 if draw.random() < 0.6 else 0.05  # 0.59 over all tasks there could be
            for seed in range(5):
                passed.append(draw.random() < chance)
                played.append(Played(str(task), seed, None, None, None, None))
        found = evidence_of(played).of_rate(passed)
        assert found is not None
        held += found[0] <= 0.59 <= found[1]
        low, high = wilson_interval(sum(passed), len(passed))
        plain += low <= 0.59 <= high

    assert held / tries >= 0.93
    assert plain / tries < 0.75

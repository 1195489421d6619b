from __future__ import annotations

import random

import pytest
from rleaas.server.pairs import paired


def test_a_difference_in_each_pair_is_a_verdict() -> None:
    told = paired([4.0, 5.0, 6.0, 5.0, 4.0, 6.0, 5.0, 5.0])
    assert (told["verdict"], told["pairs"], told["mean_difference"]) == ("better", 8, 5.0)
    assert paired([-4.0, -5.0, -6.0, -5.0, -4.0, -6.0, -5.0, -5.0])["verdict"] == "worse"


@pytest.mark.parametrize("differences", [[], [3.0], [1.0, -1.0], [0.0] * 30, [8.0, 4.0]])
def test_too_few_or_no_differences_are_inconclusive(differences: list[float]) -> None:
    told = paired(differences)
    assert told["verdict"] == "inconclusive"
    assert (told["interval"] is None) == (len(differences) < 2)
    assert told["pairs"] == len(differences)


def test_many_pairs_are_told_alike_by_either_reckoning() -> None:
    draw = random.Random(7)
    differences = [draw.gauss(0.05, 1.0) for _ in range(2001)]
    many, fewer = paired(differences), paired(differences[:-1])
    assert many["p"] == pytest.approx(fewer["p"], abs=0.02)
    assert many["verdict"] == fewer["verdict"]


def test_seven_seeds_of_a_scenario_are_no_seven_scenarios() -> None:
    # One scenario of four got better by 1, the others are as they were: seven times over.
    differences, scenarios = [1.0, 0.0, 0.0, 0.0] * 7, ["a", "b", "c", "d"] * 7

    alone, told = paired(differences), paired(differences, scenarios)

    assert (alone["verdict"], told["verdict"]) == ("better", "inconclusive")
    assert (told["pairs"], told["clusters"], told["mean_difference"]) == (28, 4, 0.25)
    # As with one pair of each: scipy.stats.t.interval(0.95, 3, 0.25, 0.25).
    assert told["interval"] == pytest.approx([-0.5456115, 1.0456115])
    assert told["p"] == 1.0


def test_scenarios_that_all_got_better_are_a_verdict_with_each_counted_once() -> None:
    differences = [0.9, 1.1, 1.0, 1.0, 0.8, 1.2, 1.1, 0.9] * 2

    told = paired(differences, list("abcdefgh") * 2)

    # All eight signs the same way: 2 of 2**8.
    assert (told["verdict"], told["p"]) == ("better", 2 / 2**8)


@pytest.mark.parametrize(("scenarios", "verdict"), [(19, "better"), (3, "inconclusive")])
def test_where_all_differ_by_the_same_the_test_alone_decides(scenarios: int, verdict: str) -> None:
    """As of an agent that always does it and one that never does."""
    told = paired([1.0] * 2 * scenarios, [at % scenarios for at in range(2 * scenarios)])

    assert (told["verdict"], told["interval"]) == (verdict, None)

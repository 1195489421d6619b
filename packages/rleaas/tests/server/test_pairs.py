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

from __future__ import annotations

import math

import pytest
from rlcore import ConfigurationError
from rlmesh.runs.clustered import clustered_mean_interval, clustered_rate_interval, student_t
from rlmesh.runs.statistics import wilson_interval


@pytest.mark.parametrize(
    ("degrees", "confidence", "value"),
    # A table of Student's t, as in any textbook of statistics.
    [
        (1, 0.95, 12.706),
        (2, 0.95, 4.303),
        (3, 0.99, 5.841),
        (4, 0.90, 2.132),
        (10, 0.95, 2.228),
        (19, 0.95, 2.093),
        (30, 0.99, 2.750),
        (120, 0.95, 1.980),
        (5000, 0.95, 1.960),
    ],
)
def test_students_t_is_that_of_the_tables(degrees: int, confidence: float, value: float) -> None:
    assert student_t(degrees, confidence) == pytest.approx(value, abs=6e-4)


def test_a_mean_rests_on_how_its_clusters_differ() -> None:
    # Means of the clusters are 2, 3 and 7: their mean is 4, its error sqrt(7 / 3).
    values, clusters = [1.0, 3.0, 2.0, 4.0, 6.0, 8.0], list("aabbcc")

    found = clustered_mean_interval(values, clusters)

    assert found is not None
    half = 4.302653 * math.sqrt(7 / 3)
    assert found == pytest.approx((4 - half, 4 + half), rel=1e-6)


def test_more_of_the_same_in_each_cluster_tells_no_more() -> None:
    values, clusters = [1.0, 3.0, 2.0, 4.0, 6.0, 8.0], list("aabbcc")

    once = clustered_mean_interval(values, clusters)
    often = clustered_mean_interval(values * 20, clusters * 20)

    assert once is not None
    assert often == pytest.approx(once)


@pytest.mark.parametrize(
    ("values", "clusters"),
    [([], []), ([1.0, 2.0], "aa"), ([1.0, 1.0], "ab"), ([0.1] * 9, "abcabcabc")],
)
def test_one_cluster_or_no_difference_has_no_interval(values: list[float], clusters: str) -> None:
    assert clustered_mean_interval(values, clusters) is None


def test_clusters_of_one_are_about_as_good_as_independent_trials() -> None:
    found = clustered_rate_interval([True] * 140 + [False] * 60, range(200))

    assert found == pytest.approx(wilson_interval(140, 200), abs=0.005)


def test_trials_that_all_pass_are_worth_one_for_each_cluster() -> None:
    assert clustered_rate_interval([True] * 95, [at % 19 for at in range(95)]) == pytest.approx(
        wilson_interval(19, 19)
    )
    assert clustered_rate_interval([False] * 4, "aaaa") == pytest.approx(wilson_interval(0, 1))


def test_a_rate_is_worth_its_trials_over_the_design_effect() -> None:
    # Four clusters of five, two of them passed in whole: as good as two of four, with t of 3.
    found = clustered_rate_interval([True] * 10 + [False] * 10, [at // 5 for at in range(20)])

    trials = 3 * (1.959964 / 3.182446) ** 2  # the deviation is that of a sample of four
    z2 = 1.959964**2
    half = math.sqrt(z2 * 0.25 / trials + z2 * z2 / (4 * trials**2)) / (1 + z2 / trials)
    assert found == pytest.approx((0.5 - half, 0.5 + half), rel=1e-5)


def test_no_more_than_the_distinct_trials_count() -> None:
    passed, clusters = [True, False] * 30, list(range(60))

    few = clustered_rate_interval(passed, clusters, distinct=4)

    assert few == pytest.approx(wilson_interval(2, 4))


@pytest.mark.parametrize(
    "ask",
    [
        lambda: clustered_rate_interval([], []),
        lambda: clustered_rate_interval([True], "ab"),
        lambda: clustered_mean_interval([1.0], "ab"),
        lambda: clustered_mean_interval([1.0, 2.0], "ab", 1.0),
        lambda: student_t(0),
    ],
)
def test_what_cannot_be_told_is_refused(ask: object) -> None:
    assert callable(ask)
    with pytest.raises(ConfigurationError):
        ask()

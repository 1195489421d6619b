import functools
import importlib
from typing import Any

import numpy as np
import pytest
from rlcore import ConfigurationError
from rlmesh.runs.statistics import (
    bootstrap_interval,
    bootstrap_mean_interval,
    interquartile_mean,
    wilson_interval,
)

stats: Any = importlib.import_module("scipy.stats")  # Any: scipy ships no types


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(
    ("successes", "n"), [(0, 1), (1, 1), (0, 20), (7, 20), (48, 50), (500, 500)]
)
def test_wilson_interval_is_scipys(successes: int, n: int, confidence: float) -> None:
    expected = stats.binomtest(successes, n).proportion_ci(confidence, method="wilson")

    interval = wilson_interval(successes, n, confidence)

    assert interval == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_wilson_interval_of_all_successes_ends_at_exactly_one() -> None:
    assert wilson_interval(50, 50).high == 1.0
    assert wilson_interval(0, 50).low == 0.0


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (3, 2), (-1, 5)])
def test_what_is_no_rate_has_no_wilson_interval(successes: int, n: int) -> None:
    with pytest.raises(ConfigurationError, match=f"{successes} successes out of {n}"):
        wilson_interval(successes, n)


def test_confidence_in_percent_is_refused_with_the_remedy() -> None:
    with pytest.raises(ConfigurationError, match=r"95 % is 0\.95"):
        wilson_interval(1, 2, 95)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("n", [12, 60, 400])
def test_bootstrap_interval_of_a_mean_is_close_to_scipys(n: int, confidence: float) -> None:
    values = np.random.default_rng(n).exponential(10.0, n)
    expected = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=20_000,
        confidence_level=confidence,
        method="BCa",
        rng=np.random.default_rng(1),
    ).confidence_interval

    interval = bootstrap_mean_interval(values.tolist(), confidence, resamples=20_000)

    tolerance = 0.05 * (expected.high - expected.low)
    assert interval == pytest.approx((expected.low, expected.high), abs=tolerance)


def test_bootstrap_interval_of_an_interquartile_mean_is_close_to_scipys() -> None:
    values = np.random.default_rng(8).exponential(10.0, 50)
    expected = stats.bootstrap(
        (values,),
        functools.partial(stats.trim_mean, proportiontocut=0.25),
        n_resamples=20_000,
        method="BCa",
        rng=np.random.default_rng(1),
    ).confidence_interval

    interval = bootstrap_interval(values.tolist(), interquartile_mean, resamples=20_000)

    tolerance = 0.05 * (expected.high - expected.low)
    assert interval == pytest.approx((expected.low, expected.high), abs=tolerance)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 100, 101, 102, 103])
def test_the_interquartile_mean_is_scipys_trimmed_mean(n: int) -> None:
    values = np.random.default_rng(n).normal(size=(3, n))

    assert interquartile_mean(values) == pytest.approx(stats.trim_mean(values, 0.25, axis=1))


def test_an_interval_of_skewed_values_reaches_further_to_their_side() -> None:
    values = [0.0] * 18 + [1.0, 50.0]
    low, high = bootstrap_mean_interval(values)

    # The middle of a symmetric interval would be the mean, 2.55.
    assert (low + high) / 2 > 2.55 * 1.3


def test_bootstrap_interval_covers_the_true_mean_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(7)
    intervals = [
        bootstrap_mean_interval(generator.normal(3.0, 1.0, 40).tolist(), resamples=400, seed=trial)
        for trial in range(200)
    ]

    covered = sum(interval.low <= 3.0 <= interval.high for interval in intervals)

    assert 176 <= covered <= 199


def test_bootstrap_interval_is_the_same_for_the_same_seed_only() -> None:
    values = [1.0, 2.7, 5.1, 9.9, 11.3, 20.2, 31.7]
    assert bootstrap_mean_interval(values, seed=3) == bootstrap_mean_interval(values, seed=3)
    assert bootstrap_mean_interval(values, seed=3) != bootstrap_mean_interval(values, seed=4)


def test_bootstrap_interval_of_equal_values_has_no_width() -> None:
    assert bootstrap_mean_interval([500.0] * 50) == (500.0, 500.0)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, float("nan")]])
def test_bootstrap_refuses_what_has_no_interval(values: list[float]) -> None:
    with pytest.raises(ConfigurationError, match="a bootstrap needs"):
        bootstrap_mean_interval(values)


def test_a_bootstrap_without_resamples_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="resamples is 0"):
        bootstrap_mean_interval([1.0, 2.0], resamples=0)

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rlcore import ConfigurationError
from rlmesh.runs.paired import (
    fewest_pairs,
    mcnemar_p,
    pairs_for_means,
    pairs_for_rates,
    rate_difference_interval,
    sign_flip_p,
)

stats: Any = importlib.import_module("scipy.stats")  # Any: scipy ships no types


@pytest.mark.parametrize(
    ("only_first", "only_second"), [(0, 1), (0, 6), (3, 3), (5, 12), (40, 61), (900, 1011)]
)
def test_mcnemars_p_is_the_binomial_tests(only_first: int, only_second: int) -> None:
    expected = stats.binomtest(only_first, only_first + only_second, 0.5).pvalue

    assert mcnemar_p(only_first, only_second) == pytest.approx(expected, rel=1e-9)
    assert mcnemar_p(only_second, only_first) == mcnemar_p(only_first, only_second)


def test_where_no_pair_differs_nothing_was_found() -> None:
    assert mcnemar_p(0, 0) == 1.0
    assert sign_flip_p([0.0] * 10) == 1.0
    assert sign_flip_p([]) == 1.0


@pytest.mark.parametrize("n", [3, 8, 12])
def test_the_p_of_few_pairs_is_exactly_scipys_permutation_test(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.5, 1.0, n)
    expected = stats.permutation_test(
        (differences,), np.sum, permutation_type="samples", n_resamples=np.inf
    ).pvalue

    assert sign_flip_p(differences.tolist()) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n", [30, 200])
def test_the_p_of_many_pairs_is_close_to_the_t_tests(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.25, 1.0, n)

    found = sign_flip_p(differences.tolist())

    assert found == pytest.approx(stats.ttest_1samp(differences, 0.0).pvalue, abs=0.02)
    assert found == sign_flip_p(differences.tolist())


def test_six_pairs_are_the_fewest_that_can_tell_at_95_percent() -> None:
    assert fewest_pairs(0.95) == 6
    assert mcnemar_p(0, 6) < 0.05 < mcnemar_p(0, 5)
    assert sign_flip_p([1.0] * 6) < 0.05 < sign_flip_p([1.0] * 5)


def test_the_interval_of_a_difference_of_rates_is_that_of_its_formula() -> None:
    # Bonett & Price (2012): p = (count + 1) / (n + 2) in both cells, then Wald's formula.
    first, second, n, z = (3 + 1) / 52, (12 + 1) / 52, 52, stats.norm.ppf(0.975)
    half = z * ((first + second - (second - first) ** 2) / n) ** 0.5

    interval = rate_difference_interval(3, 12, 50)

    assert interval == pytest.approx((second - first - half, second - first + half))


def test_the_interval_of_a_difference_of_many_rates_is_the_t_tests() -> None:
    signs = np.array([-1] * 300 + [1] * 450 + [0] * 4250)
    expected = stats.ttest_1samp(signs, 0.0).confidence_interval()

    assert rate_difference_interval(300, 450, 5000) == pytest.approx(tuple(expected), abs=2e-4)


def test_the_interval_of_a_difference_of_rates_covers_it_as_often_as_it_says() -> None:
    generator = np.random.default_rng(3)
    cells = generator.multinomial(40, (0.1, 0.25, 0.65), 2000)

    intervals = [rate_difference_interval(int(a), int(b), 40) for a, b, _ in cells]

    covered = np.mean([low <= 0.15 <= high for low, high in intervals])
    assert 0.94 <= covered <= 0.975


@pytest.mark.parametrize("counts", [(0, 0, 0), (2, 2, 3), (-1, 1, 5)])
def test_counts_that_cannot_be_are_refused(counts: tuple[int, int, int]) -> None:
    with pytest.raises(ConfigurationError, match="cannot differ"):
        rate_difference_interval(*counts)


@pytest.mark.parametrize(("effect", "n"), [(0.3, 40), (0.5, 25), (1.0, 20)])
def test_that_many_pairs_give_a_paired_t_test_its_power(effect: float, n: int) -> None:
    noise = np.random.default_rng(1).normal(size=n)
    values = effect + (noise - noise.mean()) / noise.std(ddof=1)

    size = pairs_for_means(values.tolist())

    assert size is not None
    assert power_of_t(size, effect) >= 0.795
    assert power_of_t(size - 2, effect) < 0.8


def power_of_t(n: int, effect: float) -> float:
    """The power of scipy's two-sided t-test, from the noncentral t distribution."""
    limit = stats.t.ppf(0.975, n - 1)
    shifted = stats.nct(n - 1, effect * n**0.5)
    return float(shifted.sf(limit) + shifted.cdf(-limit))


def test_ttest_rel_finds_such_a_difference_in_about_80_of_100_samples() -> None:
    generator = np.random.default_rng(2)
    seen = generator.normal(0.4, 1.0, 50)
    seen = 0.4 + (seen - seen.mean()) / seen.std(ddof=1)
    size = pairs_for_means(seen.tolist())
    assert size is not None

    first = generator.normal(0.0, 3.0, (2000, size))
    second = first + generator.normal(0.4, 1.0, (2000, size))
    found = stats.ttest_rel(second, first, axis=1).pvalue < 0.05

    assert 0.77 <= found.mean() <= 0.84


@pytest.mark.parametrize("cells", [(5, 15, 100), (2, 10, 40)])
def test_mcnemars_test_finds_such_a_difference_in_about_80_of_100_samples(
    cells: tuple[int, int, int],
) -> None:
    size = pairs_for_rates(*cells)
    assert size is not None
    shares = np.array([cells[0], cells[1], cells[2] - cells[0] - cells[1]]) / cells[2]

    drawn = np.random.default_rng(4).multinomial(size, shares, 2000)
    found = [mcnemar_p(int(a), int(b)) < 0.05 for a, b, _ in drawn]

    # The exact test is a little more careful than the formula's.
    assert 0.70 <= np.mean(found) <= 0.85


@pytest.mark.parametrize(
    "size", [lambda: pairs_for_means([1.0, -1.0]), lambda: pairs_for_rates(3, 3, 10)]
)
def test_no_number_of_pairs_finds_nothing(size: Callable[[], int | None]) -> None:
    assert size() is None


def test_a_power_in_percent_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="power is 80"):
        pairs_for_means([1.0, 2.0], power=80)

from math import comb

import pytest
from rlcore import ConfigurationError
from rleaas.evaluation.pass_at_k import over_tasks, pass_at_k


def test_two_successes_in_five_attempts_make_seven_tenths_for_two() -> None:
    # By hand: 1 - C(3, 2) / C(5, 2) = 1 - 3 / 10.
    assert pass_at_k(5, 2, 2) == pytest.approx(0.7)


@pytest.mark.parametrize(("n", "c", "k"), [(200, 13, 100), (10, 3, 5), (7, 1, 7), (4, 4, 1)])
def test_it_is_the_share_of_draws_with_a_success(n: int, c: int, k: int) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(1 - comb(n - c, k) / comb(n, k))


def test_nothing_passes_where_nothing_succeeded() -> None:
    assert pass_at_k(10, 0, 10) == 0.0


@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, 1, 4), (3, 1, 0), (3, -1, 1), (0, 0, 1)])
def test_what_is_no_chance_is_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(ConfigurationError, match="no chance"):
        pass_at_k(n, c, k)


def test_over_tasks_it_is_the_mean_for_as_many_attempts_as_each_has() -> None:
    found = over_tasks({"a": [True, False, False], "b": [False, False]})

    assert found == {"1": pytest.approx(1 / 6), "2": pytest.approx(1 / 3)}
    assert over_tasks({}) == {}

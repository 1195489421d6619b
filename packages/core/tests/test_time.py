from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlcore import Backoff, ConfigurationError, Deadline


class Clock:
    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_a_deadline_counts_down_to_zero_and_stays_there() -> None:
    clock = Clock(100.0)
    deadline = Deadline.after(5.0, clock=clock)

    assert (deadline.remaining(), deadline.expired()) == (5.0, False)
    clock.now = 105.0
    assert (deadline.remaining(), deadline.expired()) == (0.0, True)
    clock.now = 200.0
    assert deadline.remaining() == 0.0


def test_a_wait_is_cut_short_by_the_deadline() -> None:
    clock = Clock()
    deadline = Deadline.after(5.0, clock=clock)

    assert deadline.at_most(2.0) == 2.0
    clock.now = 4.0
    assert deadline.at_most(2.0) == 1.0


def test_without_a_limit_a_deadline_never_comes() -> None:
    deadline = Deadline.after(None)

    assert deadline.remaining() is None
    assert not deadline.expired()
    assert deadline.at_most(3.0) == 3.0


def test_delays_grow_to_the_cap() -> None:
    backoff = Backoff(first=1.0, factor=2.0, cap=5.0, jitter=0.0)

    assert list(islice(backoff.delays(), 5)) == [1.0, 2.0, 4.0, 5.0, 5.0]


@given(st.integers())
def test_jitter_only_shortens_and_a_seed_repeats_it(seed: int) -> None:
    backoff = Backoff(first=1.0, factor=2.0, cap=4.0, jitter=0.5)

    delays = list(islice(backoff.delays(Random(seed)), 4))

    assert delays == list(islice(backoff.delays(Random(seed)), 4))
    for delay, longest in zip(delays, (1.0, 2.0, 4.0, 4.0), strict=True):
        assert longest / 2 < delay <= longest


@pytest.mark.parametrize(
    ("first", "factor", "cap", "jitter"),
    [(0.0, 2.0, 5.0, 0.0), (1.0, 0.5, 5.0, 0.0), (1.0, 2.0, 0.5, 0.0), (1.0, 2.0, 5.0, 1.5)],
)
def test_numbers_that_describe_no_delays_are_refused(
    first: float, factor: float, cap: float, jitter: float
) -> None:
    with pytest.raises(ConfigurationError, match="does not describe delays"):
        Backoff(first, factor, cap, jitter)

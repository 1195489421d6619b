"""Intervals for rates and means: how sure a number of episodes lets us be."""

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from rlcore import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Statistic = Callable[[Floats], Floats]
    """From samples in rows to one number for each row."""

RESAMPLES = 4000
FEWEST_RESAMPLES = 1000
_NUMBERS_PER_BLOCK = 1_000_000
_MOST_LEFT_OUT = 2000
_NORMAL = NormalDist()


class Interval(NamedTuple):
    """A confidence interval, both ends included."""

    low: float
    high: float


def wilson_interval(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Return the Wilson score interval of a success rate.

    Raises:
        ConfigurationError: there are no trials, more successes than trials, or the confidence is
            not strictly between 0 and 1.
    """
    require_confidence(confidence)
    if n < 1 or not 0 <= successes <= n:
        message = f"{successes} successes out of {n} trials is not a rate"
        raise ConfigurationError(message, hint="give 0 <= successes <= n and n >= 1")
    z = _NORMAL.inv_cdf(0.5 + confidence / 2)
    rate = successes / n
    spread = 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / spread
    half = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / spread
    # At the edges the bound is exact; floating point would miss it by an ulp.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(low, high)


def bootstrap_mean_interval(
    values: Sequence[float], confidence: float = 0.95, resamples: int | None = None, seed: int = 0
) -> Interval:
    """Return the bootstrap interval (BCa) of a mean; the same seed gives the same interval.

    Raises:
        ConfigurationError: there are fewer than two values, a value is not finite, or an argument
            is out of range.
    """
    return bootstrap_interval(values, mean, confidence, resamples, seed)


def bootstrap_interval(
    values: Sequence[float],
    statistic: "Statistic",
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
) -> Interval:
    """Return the bias-corrected and accelerated bootstrap interval of a statistic.

    The method is that of Efron (1987), "Better Bootstrap Confidence Intervals". With few values
    (below about twenty) such an interval is a little too narrow.

    Args:
        values: at least two finite numbers.
        statistic: from samples in the rows of an array to a number for each row.
        confidence: strictly between 0 and 1.
        resamples: how often values are drawn anew; by default 4000 times, and fewer times for more
            than 5000 values, down to 1000: such an interval is narrow, and its ends well known.
        seed: which draws; the same seed gives the same interval.

    Raises:
        ConfigurationError: there are fewer than two values, a value is not finite, or an argument
            is out of range.
    """
    require_confidence(confidence)
    if resamples is not None and resamples < 1:
        raise ConfigurationError(f"resamples is {resamples}", hint="give at least 1")
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or sample.size < 2:
        message = f"a bootstrap needs at least two values, got {sample.size}"
        raise ConfigurationError(message)
    if not np.isfinite(sample).all():
        raise ConfigurationError("a bootstrap needs finite values, and one of them is not")
    if (sample == sample[0]).all():
        return Interval(float(sample[0]), float(sample[0]))
    times = _resamples_for(sample.size) if resamples is None else resamples
    drawn = np.concatenate(
        [statistic(rows) for rows in _resampled(sample, times, np.random.default_rng(seed))]
    )
    low, high = np.quantile(drawn, _shares(sample, drawn, statistic, confidence))
    return Interval(float(low), float(high))


def mean(rows: "Floats") -> "Floats":
    """Return the mean of each row."""
    return cast("Floats", rows.mean(axis=-1))


def interquartile_mean(rows: "Floats") -> "Floats":
    """Return the mean of the middle half of each row.

    Of n values, the n // 4 smallest and largest are left out. Fewer outliers decide it than a
    mean, and more values than a median: Agarwal et al. (2021), "Deep RL at the Edge of the
    Statistical Precipice".
    """
    count = rows.shape[-1]
    cut = count // 4
    middle = np.partition(rows, (cut, count - cut - 1), axis=-1)[..., cut : count - cut]
    return cast("Floats", middle.mean(axis=-1))


def require_confidence(confidence: float) -> None:
    """Do nothing for a confidence.

    Raises:
        ConfigurationError: it is not strictly between 0 and 1.
    """
    if not 0 < confidence < 1:
        message = f"confidence is {confidence!r}, which is not between 0 and 1"
        raise ConfigurationError(message, hint="95 % is 0.95")


def _resamples_for(size: int) -> int:
    return min(RESAMPLES, max(FEWEST_RESAMPLES, 20_000_000 // size))


def _resampled(
    sample: "Floats", resamples: int, generator: np.random.Generator
) -> "Iterator[Floats]":
    rows = max(1, _NUMBERS_PER_BLOCK // sample.size)
    for start in range(0, resamples, rows):
        shape = (min(rows, resamples - start), sample.size)
        yield sample[generator.integers(0, sample.size, shape)]


def _shares(
    sample: "Floats", drawn: "Floats", statistic: "Statistic", confidence: float
) -> tuple[float, float]:
    """Which quantiles of what was drawn are the ends of the interval."""
    found = statistic(sample[None, :])[0]
    below = float(((drawn < found).mean() + (drawn <= found).mean()) / 2)
    # All on one side would shift the interval infinitely far; this many draws cannot tell.
    edge = 0.5 / drawn.size
    bias = _NORMAL.inv_cdf(min(max(below, edge), 1 - edge))
    acceleration = _acceleration(sample, statistic)

    def share(z: float) -> float:
        shifted = bias + z
        rest = 1 - acceleration * shifted
        if rest <= 0:
            return 1.0 if shifted > 0 else 0.0
        return _NORMAL.cdf(bias + shifted / rest)

    z = _NORMAL.inv_cdf(0.5 + confidence / 2)
    return share(-z), share(z)


def _acceleration(sample: "Floats", statistic: "Statistic") -> float:
    """How fast the statistic's spread changes with its value, from leaving out one value each."""
    if statistic is mean:  # leaving one out moves a mean in proportion to that value
        influence = sample - sample.mean()
    elif sample.size > _MOST_LEFT_OUT:  # its pull fades with the root of the size, its price grows
        return 0.0
    else:
        left_out = np.concatenate([statistic(rows) for rows in _each_left_out(sample)])
        influence = left_out.mean() - left_out
    size = float(np.abs(influence).max())
    if size == 0:
        return 0.0
    influence = influence / size  # so that no power of it leaves the range of numbers
    squares = float((influence**2).sum())
    cubes = float((influence**3).sum())
    return cubes / (6 * float(squares**1.5))


def _each_left_out(sample: "Floats") -> "Iterator[Floats]":
    size = sample.size
    rows = max(1, _NUMBERS_PER_BLOCK // size)
    for start in range(0, size, rows):
        which = np.arange(start, min(start + rows, size))[:, None]
        places = np.arange(size - 1)[None, :]
        yield sample[places + (places >= which)]

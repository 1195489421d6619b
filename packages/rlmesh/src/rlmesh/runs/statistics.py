"""Intervals for rates and means: how sure a number of episodes lets us be."""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from rlcore import ConfigurationError

_DRAWS_PER_BLOCK = 1_000_000


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
    _require_confidence(confidence)
    if n < 1 or not 0 <= successes <= n:
        message = f"{successes} successes out of {n} trials is not a rate"
        raise ConfigurationError(message, hint="give 0 <= successes <= n and n >= 1")
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    rate = successes / n
    spread = 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / spread
    half = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / spread
    # At the edges the bound is exact; floating point would miss it by an ulp.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(low, high)


def bootstrap_mean_interval(
    values: Sequence[float], confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Interval:
    """Return the percentile bootstrap interval of a mean; the same seed gives the same interval.

    Raises:
        ConfigurationError: there are fewer than two values, a value is not finite, or an argument
            is out of range.
    """
    _require_confidence(confidence)
    if resamples < 1:
        raise ConfigurationError(f"resamples is {resamples}", hint="give at least 1")
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or sample.size < 2:
        message = f"a bootstrap needs at least two values, got {sample.size}"
        raise ConfigurationError(message)
    if not np.isfinite(sample).all():
        raise ConfigurationError("a bootstrap needs finite values, and one of them is not")
    if (sample == sample[0]).all():
        return Interval(float(sample[0]), float(sample[0]))
    generator = np.random.default_rng(seed)
    rows = max(1, _DRAWS_PER_BLOCK // sample.size)
    means = np.concatenate(
        [
            sample[
                generator.integers(0, sample.size, (min(rows, resamples - start), sample.size))
            ].mean(axis=1)
            for start in range(0, resamples, rows)
        ]
    )
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, (tail, 1 - tail))
    return Interval(float(low), float(high))


def _require_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        message = f"confidence is {confidence!r}, which is not between 0 and 1"
        raise ConfigurationError(message, hint="95 % is 0.95")

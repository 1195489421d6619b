"""What paired numbers tell about a difference: tests, an interval for rates, and sizes."""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from rlcore import ConfigurationError

from rlmesh.runs.statistics import Interval, require_confidence

if TYPE_CHECKING:
    from numpy.typing import NDArray

DRAWS = 9999
_EXACT_UP_TO = 14
_ROWS = 4096
_NORMAL = NormalDist()


def mcnemar_p(only_first: int, only_second: int) -> float:
    """Return the exact two-sided p of McNemar's test, a sign test on the pairs that differ.

    Args:
        only_first: in how many pairs only the first succeeded.
        only_second: in how many pairs only the second did.
    """
    n, fewer = only_first + only_second, min(only_first, only_second)
    logs = [
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2)
        for k in range(fewer + 1)
    ]
    return min(1.0, 2 * math.fsum(map(math.exp, logs)))


def sign_flip_p(differences: Sequence[float], seed: int = 0) -> float:
    """Return the two-sided p of the paired permutation test of a mean difference.

    Were there no difference, each pair could as well have been the other way round. All ways
    are looked at for up to 14 pairs that differ, 9999 random ones beyond; the same seed gives the
    same p.
    """
    values = np.asarray([value for value in differences if value != 0], np.float64)
    if values.size == 0:
        return 1.0
    # As far as the sum that was seen, up to what rounding does to the order of addition.
    threshold = abs(float(values.sum())) * (1 - 1e-9)
    if values.size <= _EXACT_UP_TO:
        ways = np.indices((2,) * values.size, np.int8).reshape(values.size, -1).T
        signs = 2.0 * ways - 1.0
        return float((np.abs(signs @ values) >= threshold).mean())
    generator = np.random.default_rng(seed)
    extreme = 0
    for start in range(0, DRAWS, _ROWS):
        flips = generator.integers(0, 2, (min(_ROWS, DRAWS - start), values.size), np.int8)
        extreme += int((np.abs((2 * flips - 1) @ values) >= threshold).sum())
    # What was seen is one of the ways (Phipson & Smyth 2010): no p is ever zero.
    return (extreme + 1) / (DRAWS + 1)


def rate_difference_interval(
    only_first: int, only_second: int, pairs: int, confidence: float = 0.95
) -> Interval:
    """Return the interval of the second rate minus the first, over the same pairs.

    The adjusted Wald interval of Bonett & Price (2012); unlike a bootstrap, it has a width when no
    pair differs.

    Raises:
        ConfigurationError: there are fewer pairs than ones that differ, none at all, or the
            confidence is not strictly between 0 and 1.
    """
    require_confidence(confidence)
    if pairs < 1 or min(only_first, only_second) < 0 or only_first + only_second > pairs:
        message = f"{only_first} and {only_second} of {pairs} pairs cannot differ"
        raise ConfigurationError(message)
    first, second = (only_first + 1) / (pairs + 2), (only_second + 1) / (pairs + 2)
    difference = second - first
    spread = math.sqrt((first + second - difference**2) / (pairs + 2))
    half = _NORMAL.inv_cdf(0.5 + confidence / 2) * spread
    return Interval(max(-1.0, difference - half), min(1.0, difference + half))


def pairs_for_means(
    differences: Sequence[float], confidence: float = 0.95, power: float = 0.8
) -> int | None:
    """Return how many pairs a paired t-test needs to find a mean difference such as this one.

    The normal approximation with the correction of Guenther (1981) for an estimated spread. None
    where the mean difference is zero: no number of pairs finds nothing.
    """
    values: NDArray[np.float64] = np.asarray(differences, np.float64)
    mean = float(values.mean()) if values.size else 0.0
    if mean == 0 or values.size < 2:
        return None
    z, z_power = _quantiles(confidence, power)
    size = (z + z_power) ** 2 * float(values.var(ddof=1)) / mean**2 + z**2 / 2
    return max(fewest_pairs(confidence), math.ceil(size))


def pairs_for_rates(
    only_first: int, only_second: int, pairs: int, confidence: float = 0.95, power: float = 0.8
) -> int | None:
    """Return how many pairs McNemar's test needs to find a difference of rates such as this one.

    The formula of Connor (1987). None where the rates are equal.
    """
    if only_first == only_second:
        return None
    z, z_power = _quantiles(confidence, power)
    differing, difference = (only_first + only_second) / pairs, (only_second - only_first) / pairs
    root = z * math.sqrt(differing) + z_power * math.sqrt(differing - difference**2)
    return max(fewest_pairs(confidence), math.ceil((root / difference) ** 2))


def fewest_pairs(confidence: float = 0.95) -> int:
    """Return how many pairs it takes before any exact paired test can find a difference."""
    require_confidence(confidence)
    return math.floor(1 - math.log2(1 - confidence)) + 1


def _quantiles(confidence: float, power: float) -> tuple[float, float]:
    require_confidence(confidence)
    if not 0 < power < 1:
        raise ConfigurationError(f"power is {power!r}, which is not between 0 and 1")
    return _NORMAL.inv_cdf(0.5 + confidence / 2), _NORMAL.inv_cdf(power)

"""Intervals where numbers come in clusters that say much the same: tasks that are tried often.

Five seeds of one task are not five tasks. Taken for independent, they make an interval too narrow;
what is told of other tasks of the kind rests on how the clusters differ (Miller 2024, "Adding
Error Bars to Evals", arXiv 2411.00640, section 3.2).
"""

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache
from statistics import NormalDist

from rlcore import ConfigurationError

from rlmesh.runs.statistics import Interval, require_confidence

_NORMAL = NormalDist()
_AS_NORMAL_FROM = 2_000
"""Degrees of freedom from which Student's t differs from the normal by less than 0.1 %."""
_HALVINGS = 80


def clustered_mean_interval(
    values: Sequence[float], clusters: Sequence[Hashable], confidence: float = 0.95
) -> Interval | None:
    """Return the interval of a mean whose values come in clusters; None where it is not known.

    The mean is that of all values; its standard error is the cluster-robust one of a ratio
    estimator (Cochran 1977, "Sampling Techniques", section 9A.2), with Student's t of one degree
    of freedom less than there are clusters. One cluster, or ones that do not differ, tell nothing.

    Args:
        values: finite numbers.
        clusters: of which cluster each of them is.
        confidence: strictly between 0 and 1.

    Raises:
        ConfigurationError: there are not as many clusters named as values, or the confidence is
            out of range.
    """
    require_confidence(confidence)
    groups = _sums(values, clusters)
    if len(groups) < 2:
        return None
    mean = math.fsum(values) / len(values)
    error = math.sqrt(_variance(groups, mean, len(values)))
    if error <= abs(mean) * 1e-12:
        return None
    half = student_t(len(groups) - 1, confidence) * error
    return Interval(mean - half, mean + half)


def clustered_rate_interval(
    passed: Sequence[bool],
    clusters: Sequence[Hashable],
    confidence: float = 0.95,
    *,
    distinct: int | None = None,
) -> Interval:
    """Return the Wilson interval of a rate, of as many trials as the clustered ones are worth.

    Their number is divided by the design effect, and by the square of Student's t over the normal's
    quantile, as is done for proportions of surveys (Korn & Graubard 1998, "Confidence intervals for
    proportions with small expected number of positive counts estimated from survey data"). Where
    all or none passed, the design effect is not known: then a cluster is worth one trial.

    Args:
        passed: one for each trial.
        clusters: of which cluster each of them is.
        confidence: strictly between 0 and 1.
        distinct: how many trials are no repetition of another one, to the letter; so many are the
            most that they are worth.

    Raises:
        ConfigurationError: there are no trials, not as many clusters named as trials, or the
            confidence is out of range.
    """
    require_confidence(confidence)
    count = len(passed)
    groups = _sums([float(one) for one in passed], clusters)
    if not count:
        raise ConfigurationError("a rate of no trials has no interval")
    most = count if distinct is None else max(1, min(distinct, count))
    rate = sum(passed) / count
    if rate in (0.0, 1.0):
        worth = float(len(groups))
    elif len(groups) < 2:
        worth = 1.0
    else:
        effect = _variance(groups, rate, count) * count / (rate * (1 - rate))
        t, z = student_t(len(groups) - 1, confidence), _NORMAL.inv_cdf(0.5 + confidence / 2)
        worth = (count / effect if effect > 0 else count) * (z / t) ** 2
    return _wilson(rate, min(max(worth, 1.0), float(most)), confidence)


@lru_cache(maxsize=256)
def student_t(degrees: int, confidence: float = 0.95) -> float:
    """Return the number that Student's t of so many degrees stays within, both ways.

    Raises:
        ConfigurationError: there is no degree of freedom, or the confidence is out of range.
    """
    require_confidence(confidence)
    if degrees < 1:
        raise ConfigurationError(f"Student's t needs a degree of freedom, not {degrees}")
    if degrees >= _AS_NORMAL_FROM:
        return _NORMAL.inv_cdf(0.5 + confidence / 2)
    # t = sqrt(degrees) tan(angle), and what lies within is a finite sum of powers of the cosine.
    low, high = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        angle = (low + high) / 2
        if _within(angle, degrees) < confidence:
            low = angle
        else:
            high = angle
    return math.sqrt(degrees) * math.tan((low + high) / 2)


def _within(angle: float, degrees: int) -> float:
    """Abramowitz & Stegun (1964), 26.7.3 and 26.7.4."""
    sine, square = math.sin(angle), math.cos(angle) ** 2
    if degrees == 1:
        return 2 * angle / math.pi
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    total = term
    for above in range(2, degrees - 1, 2):
        term *= square * (above / (above + 1) if odd else (above - 1) / above)
        total += term
    return 2 * (angle + sine * total) / math.pi if odd else sine * total


def _sums(values: Sequence[float], clusters: Sequence[Hashable]) -> list[tuple[float, int]]:
    """Of each cluster the sum of its values and how many they are."""
    if len(values) != len(clusters):
        raise ConfigurationError(f"{len(values)} values are of {len(clusters)} clusters")
    groups: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        groups.setdefault(cluster, []).append(value)
    return [(math.fsum(some), len(some)) for some in groups.values()]


def _variance(groups: Sequence[tuple[float, int]], mean: float, count: int) -> float:
    squares = math.fsum((total - mean * size) ** 2 for total, size in groups)
    return len(groups) / (len(groups) - 1) * squares / count**2


def _wilson(rate: float, trials: float, confidence: float) -> Interval:
    z = _NORMAL.inv_cdf(0.5 + confidence / 2)
    spread = 1 + z * z / trials
    centre = (rate + z * z / (2 * trials)) / spread
    half = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials)) / spread
    low = 0.0 if rate == 0 else max(0.0, centre - half)
    high = 1.0 if rate == 1 else min(1.0, centre + half)
    return Interval(low, high)

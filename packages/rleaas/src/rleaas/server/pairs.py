"""Whether the differences of paired episodes say that one side is better."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Final

from rleaas.server.store.tables import JsonObject

CONFIDENCE: Final = 0.95
_FLIPPED_UP_TO: Final = 2000
"""Pairs beyond that are so many that the sum of flipped signs is normal, and quickly reckoned."""


def paired(differences: Sequence[float], clusters: Sequence[Hashable] | None = None) -> JsonObject:
    """The mean difference with its interval, and a verdict on the second side.

    As with `rlmesh.compare`, a verdict needs both the interval (BCa bootstrap) to leave out zero
    and the paired test (changes of sign) to agree; else it is `inconclusive`. Pairs of one cluster,
    such as a scenario's, are no evidence of their own: the interval is then cluster-robust, and the
    signs of a cluster change together.

    Args:
        differences: of each pair.
        clusters: of which cluster each pair is; None: each is one of its own.
    """
    # Takes numpy along, which a server that compares nothing has no use for.
    from rlmesh.runs.clustered import clustered_mean_interval
    from rlmesh.runs.statistics import bootstrap_mean_interval

    count = len(differences)
    mean = sum(differences) / count if count else None
    groups = set(clusters or ())
    if clusters is None or len(groups) == count:
        interval = bootstrap_mean_interval(differences, CONFIDENCE) if count > 1 else None
        p = _p(differences)
    else:
        interval = clustered_mean_interval(differences, clusters, CONFIDENCE)
        p = _p(_sums(differences, clusters))
    # Where all differ by the same there is no interval, and the test alone decides.
    low, high = interval or (min(differences, default=0.0), max(differences, default=0.0))
    beside_zero = count > 1 and (low > 0 or high < 0)
    verdict = "inconclusive"
    if mean is not None and beside_zero and p < 1 - CONFIDENCE:
        verdict = "better" if mean > 0 else "worse"
    return {
        "pairs": count,
        "clusters": count if clusters is None else len(groups),
        "mean_difference": mean,
        "interval": None if interval is None else [interval.low, interval.high],
        "p": p,
        "confidence": CONFIDENCE,
        "verdict": verdict,
    }


def _sums(differences: Sequence[float], clusters: Sequence[Hashable]) -> list[float]:
    groups: dict[Hashable, list[float]] = {}
    for difference, cluster in zip(differences, clusters, strict=True):
        groups.setdefault(cluster, []).append(difference)
    return [math.fsum(some) for some in groups.values()]


def _p(differences: Sequence[float]) -> float:
    from rlmesh.runs.paired import sign_flip_p

    if len(differences) <= _FLIPPED_UP_TO:
        return sign_flip_p(differences)
    spread = math.sqrt(sum(one * one for one in differences))
    return math.erfc(abs(sum(differences)) / spread / math.sqrt(2)) if spread else 1.0

"""How often somebody may ask: a bucket of requests that fills up again at an even pace."""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass

MOST_BUCKETS = 10_000


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class Rates:
    """The requests that are left to each caller; a minute's worth may come at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._buckets: dict[str, _Bucket] = {}

    def take(self, limits: Sequence[tuple[str, float]], now: float) -> float | None:
        """Take one request from every bucket, or from none.

        Args:
            limits: the name of each bucket, and how many requests a minute it gives.
            now: monotonic seconds.

        Returns:
            None when it was taken, else the whole seconds after which there will be one.
        """
        with self._lock:
            if len(self._buckets) > MOST_BUCKETS:
                self._buckets.clear()
            found = [(self._filled(name, rate, now), rate) for name, rate in limits]
            waits = [_wait(bucket, rate) for bucket, rate in found if bucket.left < 1]
            if waits:
                return max(waits)
            for bucket, _ in found:
                bucket.left -= 1
        return None

    def _filled(self, name: str, rate: float, now: float) -> _Bucket:
        size = max(rate, 1.0) if rate > 0 else 0.0
        bucket = self._buckets.setdefault(name, _Bucket(size, now))
        bucket.left = min(size, bucket.left + (now - bucket.at) * rate / 60)
        bucket.at = now
        return bucket


def _wait(bucket: _Bucket, rate: float) -> float:
    return 3600.0 if rate <= 0 else float(math.ceil((1 - bucket.left) * 60 / rate))

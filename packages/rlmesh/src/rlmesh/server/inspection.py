"""What a server tells about its work."""

from __future__ import annotations

import time

from rlmesh.build import build_info
from rlmesh.server.sessions import Registry


class Inspection:
    """Tells what the sessions of a server are doing, from counters that they keep anyway."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._started = time.monotonic()

    def status(self) -> dict[str, object]:
        """Return it as plain data; `EnvServer.inspect` says what is in it."""
        registry = self._registry
        contract = registry.environments.contract
        sessions = [session.to_dict() for session in registry.all()]
        return {
            "environment": contract.id,
            "digest": contract.digest,
            "version": build_info().version,
            "uptime_seconds": time.monotonic() - self._started,
            "private_sessions": registry.environments.private,
            "lease_seconds": registry.lease_seconds,
            "places": registry.places.count,
            "places_taken": registry.places.taken,
            "waiting": registry.places.waiting,
            "sessions": sessions,
            "total": _whole(registry.statistics().to_dict()),
        }


def _whole(statistics: dict[str, object]) -> dict[str, object]:
    # All sessions together have no age: the server's is told beside them.
    return {name: value for name, value in statistics.items() if name != "age_seconds"}

"""A client of a served environment, as the checks want it."""

from __future__ import annotations

from rlmesh.conformance.subject import Env
from rlmesh.numpy import RemoteEnv


def dial(address: object, *, seconds: float, dial_seconds: float, wait: float) -> Env:
    """Return a client with NumPy values.

    Raises:
        Error: nothing answers there, or something else than a served environment does.
    """
    return RemoteEnv(
        address,
        connect_timeout_seconds=dial_seconds,
        request_timeout_seconds=seconds,
        wait_for_server_seconds=wait,
    )

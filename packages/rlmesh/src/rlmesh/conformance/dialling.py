"""A client of a served environment, as the checks want it."""

from __future__ import annotations

from rlmesh.client.options import ConnectOptions
from rlmesh.conformance.subject import Env
from rlmesh.numpy import RemoteEnv, RemoteVectorEnv

# Long enough for a place that was just given back; a full server is not worth a long wait.
QUEUE_SECONDS = 2.0


def dial(address: object, *, seconds: float, connect: ConnectOptions) -> Env:
    """Return a client with NumPy values, of all lanes where several are served.

    Raises:
        Error: nothing answers there, or something else than a served environment does.
    """
    options: ConnectOptions = {
        "queue_timeout_seconds": min(QUEUE_SECONDS, seconds / 2),
        **connect,
        "request_timeout_seconds": seconds,
    }
    # Only the handshake tells how many lanes there are; a client of lanes takes any number.
    lanes = RemoteVectorEnv(address, **options)
    if lanes.num_envs > 1:
        return lanes
    lanes.close()
    return RemoteEnv(address, **options)

"""A gRPC server as all of ours are: its limits, its gate, and a thread for each call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent import futures
from typing import ParamSpec, TypeVar

import grpc

from rlmesh.transport.access import Access
from rlmesh.transport.gate import Gate
from rlmesh.transport.limits import keepalive_options, message_options

P = ParamSpec("P")
R = TypeVar("R")

# Calls beside the streams: handshakes, health checks, shutdowns.
SPARE_CALLS = 64
# Whoever connects and says nothing holds a descriptor for no longer than this.
STRANGER_MS = 10_000


def grpc_server(
    access: Access, *, message_limit: int, silent_seconds: float, streams: int
) -> grpc.Server:
    """Return a server that nothing is bound to yet.

    Args:
        access: who may come in.
        message_limit: bytes of a message, either way.
        silent_seconds: how long a client may be silent until it counts as gone.
        streams: how many streams there may be at once.
    """
    return grpc.server(
        CallThreads(),
        options=[
            *message_options(message_limit),
            *keepalive_options(silent_seconds),
            # With it, two servers could bind one port and clients would land on either.
            ("grpc.so_reuseport", 0),
            ("grpc.server_handshake_timeout_ms", STRANGER_MS),
        ],
        interceptors=[Gate(access)],
        maximum_concurrent_rpcs=streams + SPARE_CALLS,
    )


class CallThreads(futures.ThreadPoolExecutor):
    """Runs each call on a daemon thread of its own.

    A session keeps its thread for as long as it lives, so that its environment is always called
    from the same one. A thread that hangs inside an environment does not keep the process from
    ending, as a pool's would.
    """

    def __init__(self) -> None:
        super().__init__(max_workers=1)  # never used, and gRPC insists on this class

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> futures.Future[R]:
        """Run the call at once."""
        future: futures.Future[R] = futures.Future()

        def run() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, name="rlmesh-call", daemon=True).start()
        return future

"""The standard health service, grpc.health.v1."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import grpc
from google.protobuf.message import DecodeError

# The standard messages hold a string and an enum in field 1, and so do these two in bytes.
from google.protobuf.wrappers_pb2 import Int32Value, StringValue

from rlmesh.transport.methods import ENV_SERVICE, HEALTH_SERVICE

SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3
# A watcher shows no token and stays: more of them would take the places of calls and sessions.
MAX_WATCHERS = 16


class Health:
    """Answers whether the server serves, by the empty name and by its service's."""

    def __init__(self, service: str = ENV_SERVICE) -> None:
        self._services = ("", service)
        self._serving = True
        self._changed = threading.Condition()
        self._places = threading.Semaphore(MAX_WATCHERS)

    def stop_serving(self) -> None:
        """Say from now on that the server does not serve."""
        with self._changed:
            self._serving = False
            self._changed.notify_all()

    def handler(self) -> grpc.GenericRpcHandler:
        """Return the service's handler."""
        return grpc.method_handlers_generic_handler(
            HEALTH_SERVICE,
            {
                "Check": grpc.unary_unary_rpc_method_handler(
                    self._check, response_serializer=Int32Value.SerializeToString
                ),
                "Watch": grpc.unary_stream_rpc_method_handler(
                    self._watch, response_serializer=Int32Value.SerializeToString
                ),
            },
        )

    def _check(self, request: bytes, context: grpc.ServicerContext) -> Int32Value:
        service = _service_in(request, context)
        if service not in self._services:
            context.abort(grpc.StatusCode.NOT_FOUND, f"unknown service {service[:100]!r}")
        return Int32Value(value=SERVING if self._serving else NOT_SERVING)

    def _watch(self, request: bytes, context: grpc.ServicerContext) -> Iterator[Int32Value]:
        if _service_in(request, context) not in self._services:
            yield Int32Value(value=SERVICE_UNKNOWN)
            return
        if not self._places.acquire(blocking=False):
            context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"{MAX_WATCHERS} watchers are here already; use Check",
            )
        try:
            yield from self._follow(context)
        finally:
            self._places.release()

    def _follow(self, context: grpc.ServicerContext) -> Iterator[Int32Value]:
        context.add_callback(self._wake)
        told: bool | None = None
        while context.is_active():
            with self._changed:
                while self._serving == told and context.is_active():
                    self._changed.wait()
                told = self._serving
            yield Int32Value(value=SERVING if told else NOT_SERVING)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


def _service_in(request: bytes, context: grpc.ServicerContext) -> str:
    # Not gRPC's deserializer, which would log a traceback for whatever a stranger sends.
    try:
        return StringValue.FromString(request).value
    except DecodeError:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not a request for health")

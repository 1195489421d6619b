"""Sends away who may not come in, before anything that they send is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar, cast

import grpc

from rlmesh.transport.access import Access
from rlmesh.transport.methods import HEALTH_SERVICE

Q = TypeVar("Q")
R = TypeVar("R")


class Gate(grpc.ServerInterceptor):
    """Asks every caller but those of the health service for its token.

    A handler gets a request only when all of it has arrived: without this, anybody could make a
    server hold messages as large as messages may be.
    """

    def __init__(self, access: Access) -> None:
        self._access = access

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler[Q, R] | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Q, R] | None:
        """Return the handler of the call, or one that refuses it."""
        if handler_call_details.method.startswith(f"/{HEALTH_SERVICE}/"):
            return continuation(handler_call_details)
        sent = dict(handler_call_details.invocation_metadata or ()).get("authorization")
        refusal = self._access.refusal(sent if isinstance(sent, str) else None)
        if refusal is None:
            return continuation(handler_call_details)

        def refuse(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, refusal)

        # It reads nothing and writes nothing, so it may stand for a handler of any messages.
        return cast("grpc.RpcMethodHandler[Q, R]", grpc.stream_stream_rpc_method_handler(refuse))

"""The service that tells what a server is doing, and its messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from rlcore import ProtocolException

from rlmesh.codec.metadata import decode_meta, encode_meta
from rlmesh.transport.methods import OPS_SERVICE
from rlmesh.wire.ops.v1 import ops_pb2

Status = Mapping[str, object]


def ops_handler(inspect: Callable[[], Status]) -> grpc.GenericRpcHandler:
    """Return the service's handler; who may call it is decided before it is asked."""

    def answer(_: bytes, context: grpc.ServicerContext) -> bytes:
        return write_status(inspect())

    return grpc.method_handlers_generic_handler(
        OPS_SERVICE, {"Inspect": grpc.unary_unary_rpc_method_handler(answer)}
    )


def write_inspect() -> bytes:
    """Return the request as bytes."""
    return ops_pb2.InspectRequest().SerializeToString()


def write_status(status: Status) -> bytes:
    """Return a status as bytes."""
    return ops_pb2.InspectResponse(status=encode_meta(status)).SerializeToString()


def read_status(data: bytes) -> dict[str, Any]:  # Any: plain data, by name
    """Return a status.

    Raises:
        ProtocolException: it is none.
    """
    try:
        return decode_meta(ops_pb2.InspectResponse.FromString(data).status)
    except DecodeError as error:
        raise ProtocolException(f"not a server's status: {error}") from error

"""One call of gRPC, or one stream, and what counts as a clean answer to it."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import grpc
from fuzz_table import PATIENCE_SECONDS, Target, TurnedAway, Unclean
from rlmesh.wire.env.v1 import env_pb2

SERVICE = "/rlmesh.env.v1.EnvService/"
Metadata = Sequence[tuple[str, str | bytes]]
Channel = grpc.Channel
Code = grpc.StatusCode

# How a server says no. UNKNOWN is what gRPC makes of an exception that nobody caught.
CLEAN = {
    Code.ALREADY_EXISTS,
    Code.FAILED_PRECONDITION,
    Code.INVALID_ARGUMENT,
    Code.NOT_FOUND,
    Code.PERMISSION_DENIED,
    Code.RESOURCE_EXHAUSTED,
    Code.UNAUTHENTICATED,
    Code.UNIMPLEMENTED,
}
# What gRPC itself answers to headers and encodings that it does not take.
GRPC_ITSELF = {Code.INTERNAL, Code.UNAVAILABLE, Code.CANCELLED}


@contextmanager
def dialled(target: Target) -> Generator[Channel]:
    """Open a channel, with TLS where the server has it."""
    options: list[tuple[str, int | str]] = [
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_receive_message_length", -1),
    ]
    trust, place = target.trust(), f"{target.host}:{target.port}"
    if trust is None:
        channel = grpc.insecure_channel(place, options=options)
    else:
        options.append(("grpc.ssl_target_name_override", trust.server_name or ""))
        channel = grpc.secure_channel(place, trust.grpc_credentials(), options=options)
    try:
        yield channel
    finally:
        channel.close()


def outcome_of(error: grpc.RpcError, *, also: set[grpc.StatusCode] | None = None) -> str:
    """Return a refusal's name.

    Raises:
        TurnedAway: gRPC had more calls waiting than it takes.
        Unclean: it is none that a server of good manners gives.
    """
    code: grpc.StatusCode = error.code()
    details: str = error.details() or ""
    if code is Code.CANCELLED and code not in (also or set()):
        raise TurnedAway(details)
    if code not in CLEAN and code not in (also or set()):
        raise Unclean(f"{code.name}: {details[:200]}")
    if "Traceback" in details or "Exception" in details:
        raise Unclean(f"{code.name} shows what is inside: {details[:200]}")
    return code.name


def ask(
    channel: Channel,
    method: str,
    data: bytes,
    *,
    metadata: Metadata = (),
    also: set[grpc.StatusCode] | None = None,
    compression: grpc.Compression | None = None,
) -> tuple[str, bytes]:
    """Make one call and return how it ended, with the reply."""
    call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method)
    try:
        reply = call(
            data, timeout=PATIENCE_SECONDS, metadata=tuple(metadata), compression=compression
        )
    except grpc.RpcError as error:
        return outcome_of(error, also=also), b""
    return "answered", reply


class Joined(Protocol):
    """The stream of a session."""

    def __iter__(self) -> Iterator[bytes]:
        """Read the answers."""
        ...

    def cancel(self) -> object:
        """Leave."""
        ...

    def code(self) -> object:
        """Wait for the end."""
        ...

    def initial_metadata(self) -> object:
        """Wait until the server has taken the call."""
        ...


def join(
    channel: Channel,
    messages: Iterator[bytes],
    *,
    seconds: float = PATIENCE_SECONDS,
    metadata: Metadata = (),
) -> Joined:
    """Open the stream of a session."""
    method: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(f"{SERVICE}Join")
    return method(messages, timeout=seconds, metadata=tuple(metadata))


def converse(target: Target, messages: Sequence[bytes], *, metadata: Metadata = ()) -> str:
    """Join, send all of them at once, and read every answer."""
    with dialled(target) as channel:
        call = join(channel, iter(messages), metadata=metadata)
        answered = 0
        try:
            for reply in call:
                answered += 1
                _check_reply(reply)
        except grpc.RpcError as error:
            return f"{'some answers, then ' if answered else ''}{outcome_of(error)}"
        return "answered"


def _check_reply(data: bytes) -> None:
    reply = env_pb2.JoinResponse.FromString(data)
    if reply.WhichOneof("kind") == "error":
        text = reply.error.message + reply.error.debug_info
        if "Traceback" in text and "fuzz_world" not in text:
            raise Unclean(f"a fault shows what is inside the server: {text[-300:]}")

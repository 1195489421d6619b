"""Attacks in the words of gRPC: messages that are wrong, too large, too many, or out of order."""

from __future__ import annotations

import itertools
import queue
import random
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

import grpc
from fuzz_table import PATIENCE_SECONDS, Attack, Target, TurnedAway, Unclean, damaged, some_bytes
from rlmesh.transport.methods import HANDSHAKE, INSPECT, LEAVE, SHUTDOWN
from rlmesh.wire.core.v1 import core_pb2
from rlmesh.wire.env.v1 import env_pb2
from rlmesh.wire.spaces.v1 import spaces_pb2

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


def hello(generation: str = "rlmesh-wire-v1", edition: str = "2026.06") -> bytes:
    """Return a handshake."""
    base = core_pb2.HandshakeRequest(
        protocol_generation=generation, supported_workflow_editions=[edition]
    )
    return env_pb2.HandshakeRequest(base=base).SerializeToString()


def requests(chance: random.Random) -> list[bytes]:
    """Return requests that are each well formed, in an order of chance, with fields of chance."""
    return [_request(chance).SerializeToString() for _ in range(chance.randint(1, 12))]


def _request(chance: random.Random) -> env_pb2.JoinRequest:
    message = env_pb2.JoinRequest(request_id=str(chance.randrange(10)))
    match chance.randrange(6):
        case 0:
            message.reset.SetInParent()
            if chance.random() < 0.5:
                message.reset.seeds.extend(_numbers(chance, -(2**31), 2**31))
            if chance.random() < 0.5:
                message.reset.options.CopyFrom(_meta(chance, 0))
            message.reset.env_indices.extend(_lanes(chance))
        case 1:
            message.step.action.SetInParent()
            for _ in range(chance.choice((0, 1, 7, 7, 7, 8, 200))):
                message.step.action.leaves.append(some_bytes(chance, 64))
            message.step.env_indices.extend(_lanes(chance))
        case 2:
            message.render.env_indices.extend(_lanes(chance))
            message.render.timeout_ms = chance.randrange(2**31)
        case 3:
            message.configure.selected_workflow_edition = chance.choice(("2026.06", "1999.01", "ü"))
        case 4:
            message.close.reason = "x" * chance.randrange(100)
        case _:
            pass  # a request for nothing
    return message


def _numbers(chance: random.Random, low: int, high: int) -> list[int]:
    return [chance.randrange(low, high) for _ in range(chance.randrange(3))]


def _lanes(chance: random.Random) -> list[int]:
    return [] if chance.random() < 0.7 else _numbers(chance, 0, 5)


def _meta(chance: random.Random, depth: int) -> spaces_pb2.MetaMap:
    message = spaces_pb2.MetaMap()
    for _ in range(chance.randrange(4)):
        entry = message.entries[str(chance.randrange(100))]
        match chance.randrange(5):
            case 4:
                entry.tensor.shape.extend(_numbers(chance, -1, 2**40))
                entry.tensor.data = some_bytes(chance, 100)
                entry.tensor.ParseFromString(
                    entry.tensor.SerializeToString() + bytes([8, chance.randrange(16)])
                )
            case 0:
                entry.number = chance.choice((float("nan"), float("inf"), -0.0, 1e308))
            case 1:
                entry.data = some_bytes(chance, 1000)
            case 2 if depth < 20:
                entry.map.CopyFrom(_meta(chance, depth + 1))
            case _:
                entry.integer = chance.choice((2**63 - 1, -(2**63), 0))
    return message


def deep_options(depth: int) -> bytes:
    """Return a reset whose options are nested deeper than any reader goes."""
    inner = b""
    for _ in range(depth):
        entry = b"\x12" + _sized(b"\x3a" + _sized(inner))
        inner = b"\x0a" + _sized(entry)
    return b"\x0a" + _sized(b"\x12" + _sized(inner))


def _sized(data: bytes) -> bytes:
    number, out = len(data), bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number]) + data


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


def random_handshake(target: Target, chance: random.Random) -> str:
    with dialled(target) as channel:
        return ask(channel, f"{SERVICE}Handshake", some_bytes(chance, 10_000))[0]


def damaged_handshake(target: Target, chance: random.Random) -> str:
    with dialled(target) as channel:
        return ask(channel, f"{SERVICE}Handshake", damaged(hello(), chance))[0]


def wrong_generation(target: Target, chance: random.Random) -> str:
    other = chance.choice(("rlmesh-wire-v2", "", "x" * 10_000, "rlmesh-wire-v1\0"))
    with dialled(target) as channel:
        outcome, reply = ask(channel, f"{SERVICE}Handshake", hello(other))
        base = env_pb2.HandshakeResponse.FromString(reply).base
        if outcome != "answered" or base.compatible or not base.error_message:
            raise Unclean(f"the generation {other[:20]!r} was {outcome}, and not refused")
        return "told to be incompatible"


def wrong_edition(target: Target, chance: random.Random) -> str:
    edition = chance.choice(("1999.01", "", "x" * 1000))
    configure = env_pb2.ConfigureEnvRequest(selected_workflow_edition=edition)
    return converse(
        target, [env_pb2.JoinRequest(configure=configure, request_id="1").SerializeToString()]
    )


def many_handshakes(target: Target, chance: random.Random) -> str:
    with dialled(target) as channel:
        call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            f"{SERVICE}Handshake"
        )
        running = [call.future(hello(), timeout=PATIENCE_SECONDS) for _ in range(500)]
        refused = 0
        for future in running:
            try:
                future.result()
            except grpc.RpcError as error:
                outcome_of(error)
                refused += 1
        return "500 answered" if not refused else "some refused"


def oversize(target: Target, chance: random.Random) -> str:
    size = target.message_limit + chance.choice((1, 1000, target.message_limit))
    method = chance.choice(("Handshake", "Shutdown"))
    with dialled(target) as channel:
        outcome, _ = ask(channel, f"{SERVICE}{method}", bytes(size))
    if outcome not in ("RESOURCE_EXHAUSTED", "UNAUTHENTICATED"):
        raise Unclean(f"{size} bytes were {outcome}")
    return outcome


def oversize_join(target: Target, chance: random.Random) -> str:
    return converse(target, [bytes(target.message_limit + 1)])


def largest(target: Target, chance: random.Random) -> str:
    """Send as much as is allowed, in one field that nobody knows."""
    size = target.message_limit - 16
    return converse(target, [b"\xfa\x7f" + _sized(bytes(size - 8))] * 3)


def compression_bomb(target: Target, chance: random.Random) -> str:
    size = chance.choice((target.message_limit - 100, 64 * 2**20, 256 * 2**20))
    packed = chance.choice((grpc.Compression.Gzip, grpc.Compression.Deflate))
    with dialled(target) as channel:
        return ask(
            channel, f"{SERVICE}Handshake", bytes(size), compression=packed, also=GRPC_ITSELF
        )[0]


def large_headers(target: Target, chance: random.Random) -> str:
    size = chance.choice((1000, 8000, 20_000, 1_000_000))
    metadata = [("x-large", "x" * size)] * chance.choice((1, 10))
    with dialled(target) as channel:
        return ask(channel, f"{SERVICE}Handshake", hello(), metadata=metadata, also=GRPC_ITSELF)[0]


def odd_headers(target: Target, chance: random.Random) -> str:
    metadata: list[tuple[str, str | bytes]] = [
        ("authorization", chance.choice(("", "x", "Bearer x", "x" * 5000))),
        ("authorization", "again"),
        ("authorization-bin", chance.randbytes(20)),
        ("rlmesh-session", chance.choice(("", "a b", "x" * 100, "mine"))),
        ("rlmesh-resume", chance.choice(("", "short", "x" * 64, "x" * 200))),
        ("rlmesh-attach", chance.choice(("open", "resume", "both"))),
        ("rlmesh-capabilities", chance.choice(("", ",,,", "x" * 1000))),
        ("rlmesh-queue-seconds", chance.choice(("0", "-1", "nan", "inf", "1e400", "soon"))),
    ]
    chosen = [pair for pair in metadata if chance.random() < 0.6]
    return converse(target, requests(chance), metadata=chosen)


def unknown_method(target: Target, chance: random.Random) -> str:
    method = chance.choice(
        (f"{SERVICE}Nothing", "/x/y", "/", "/rlmesh.env.v1.EnvService", f"{SERVICE}Join/Join")
    )
    with dialled(target) as channel:
        return ask(channel, method, some_bytes(chance, 100))[0]


def health(target: Target, chance: random.Random) -> str:
    with dialled(target) as channel:
        return ask(channel, "/grpc.health.v1.Health/Check", some_bytes(chance, 100))[0]


def shutdown(target: Target, chance: random.Random) -> str:
    data = chance.choice((b"", some_bytes(chance, 100)))
    with dialled(target) as channel:
        outcome, reply = ask(channel, f"{SERVICE}Shutdown", data)
    if outcome == "answered" and env_pb2.ShutdownResponse.FromString(reply).base.accepted:
        raise Unclean("a stranger stopped the server")
    return outcome


def random_join(target: Target, chance: random.Random) -> str:
    return converse(target, [some_bytes(chance, 1000) for _ in range(5)])


def reordered_join(target: Target, chance: random.Random) -> str:
    return converse(target, requests(chance))


def damaged_join(target: Target, chance: random.Random) -> str:
    return converse(
        target, [damaged(one, chance) if chance.random() < 0.3 else one for one in requests(chance)]
    )


def deep_join(target: Target, chance: random.Random) -> str:
    outcome = converse(target, [deep_options(chance.choice((101, 10_000)))])
    if outcome == "RESOURCE_EXHAUSTED":
        raise TurnedAway("all sessions are taken")
    if outcome != "INVALID_ARGUMENT":
        raise Unclean(f"options nested without end were {outcome}")
    return outcome


def wordy_join(target: Target, chance: random.Random) -> str:
    """Be wrong in a way that takes many words to tell."""
    reset = env_pb2.ResetRequest()
    odd = reset.options.entries["x" * chance.choice((1, 100_000))]
    odd.tensor.dtype = spaces_pb2.DATA_TYPE_UINT8
    odd.tensor.shape.extend([1] * chance.choice((100, 100_000)))
    outcome = converse(target, [env_pb2.JoinRequest(reset=reset).SerializeToString()])
    if outcome == "RESOURCE_EXHAUSTED":
        raise TurnedAway("all sessions are taken")
    if outcome != "INVALID_ARGUMENT":
        raise Unclean(f"an array of many dimensions was {outcome}")
    return outcome


def many_joins(target: Target, chance: random.Random) -> str:
    """Ask for more sessions than there are, and keep them waiting."""
    with dialled(target) as channel:
        endings: list[queue.SimpleQueue[bytes | None]] = []
        calls: list[Joined] = []
        for _ in range(3 * target.sessions):
            outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
            endings.append(outbox)
            calls.append(join(channel, iter(outbox.get, None)))
        for outbox in endings[::2]:
            outbox.put(env_pb2.JoinRequest(reset=env_pb2.ResetRequest()).SerializeToString())
        ask(channel, f"{SERVICE}Handshake", hello())  # a round trip: they have all arrived
        for call in calls:
            call.cancel()
        for outbox in endings:
            outbox.put(None)
        return "cancelled"


def slow_reader(target: Target, chance: random.Random) -> str:
    """Ask for megabytes of observations and read none of them."""
    reset = env_pb2.JoinRequest(reset=env_pb2.ResetRequest(), request_id="1").SerializeToString()
    with dialled(target) as channel:
        call = join(channel, itertools.repeat(reset, 300), seconds=chance.choice((0.5, 1.0, 2.0)))
        try:
            call.initial_metadata()
            chance.choice((call.cancel, lambda: call.code()))()
        except grpc.RpcError as error:
            return outcome_of(error, also=GRPC_ITSELF | {Code.DEADLINE_EXCEEDED})
        return "left"


def hasty(target: Target, chance: random.Random) -> str:
    """Leave while the server is about to answer."""
    with dialled(target) as channel:
        for _ in range(20):
            call = join(channel, iter(requests(chance)), seconds=chance.choice((0.001, 0.01, 1.0)))
            if chance.random() < 0.5:
                call.cancel()
        return "left"


def inspection(target: Target, chance: random.Random) -> str:
    """Ask what the server is doing; nothing that opens a session may be in the answer."""
    secret = "a-secret-that-resumes-a-session"
    metadata = [("rlmesh-session", f"mine-{chance.randrange(10**6)}"), ("rlmesh-resume", secret)]
    with dialled(target) as channel:
        call = join(channel, iter(()), metadata=metadata)
        with suppress(grpc.RpcError):
            call.initial_metadata()
        outcome, reply = ask(channel, INSPECT, some_bytes(chance, 100))
        call.cancel()
    if secret.encode() in reply:
        raise Unclean("the secret of a session is told to everybody")
    return outcome


def leave(target: Target, chance: random.Random) -> str:
    """Say that somebody else does not come back."""
    metadata = [("rlmesh-session", "x" * chance.randint(1, 70)), ("rlmesh-resume", "y" * 20)]
    with dialled(target) as channel:
        return ask(channel, LEAVE, some_bytes(chance, 100), metadata=metadata)[0]


def guesses(target: Target, chance: random.Random) -> str:
    """Try tokens."""
    token = target.token or ""
    with dialled(target) as channel:
        for _ in range(20):
            guess = chance.choice(("", token[:-1], token + "x", token.upper(), "x" * 2000))
            metadata = [("authorization", guess)] if guess else []
            method = chance.choice((HANDSHAKE, SHUTDOWN, LEAVE, INSPECT))
            outcome, _ = ask(channel, method, hello(), metadata=metadata)
            if outcome != "UNAUTHENTICATED":
                raise Unclean(f"a wrong token was {outcome}")
    return "UNAUTHENTICATED"


def unread_message(target: Target, chance: random.Random) -> str:
    """Send large messages without a token; they should not even be read."""
    with dialled(target) as channel:
        call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            f"{SERVICE}Handshake"
        )
        data = bytes(target.message_limit - 100)
        running = [call.future(data, timeout=PATIENCE_SECONDS) for _ in range(16)]
        for future in running:
            error = future.exception()
            if not isinstance(error, grpc.RpcError):
                raise Unclean("a message without a token was answered")
            outcome_of(error)
    return "UNAUTHENTICATED"


CALLS = (
    Attack("handshake: random bytes", random_handshake),
    Attack("handshake: damaged", damaged_handshake),
    Attack("handshake: wrong generation", wrong_generation),
    Attack("handshake: 500 at once", many_handshakes),
    Attack("edition: wrong", wrong_edition),
    Attack("message: too large", oversize),
    Attack("message: too large, in a session", oversize_join),
    Attack("message: as large as allowed", largest),
    Attack("message: compression bomb", compression_bomb),
    Attack("headers: large", large_headers),
    Attack("headers: odd", odd_headers),
    Attack("method: unknown", unknown_method),
    Attack("health: random bytes", health),
    Attack("shutdown: by a stranger", shutdown),
    Attack("session: random bytes", random_join),
    Attack("session: any order", reordered_join),
    Attack("session: damaged", damaged_join),
    Attack("session: options without end", deep_join),
    Attack("session: wordy", wordy_join),
    Attack("session: many at once", many_joins),
    Attack("session: slow reader", slow_reader),
    Attack("session: left at once", hasty),
    Attack("inspection", inspection),
    Attack("leave: another's session", leave),
    Attack("token: guesses", guesses, guarded=True),
    Attack("token: none, and large messages", unread_message, guarded=True),
    Attack("token: none, random bytes", random_handshake, guarded=True),
    Attack("token: none, sessions", random_join, guarded=True),
)

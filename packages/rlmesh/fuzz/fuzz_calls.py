"""Attacks in the words of gRPC: messages that are wrong, too large, too many, or out of order."""

from __future__ import annotations

import itertools
import queue
import random
from contextlib import suppress

import grpc
from fuzz_channel import (
    GRPC_ITSELF,
    SERVICE,
    Code,
    Joined,
    ask,
    converse,
    dialled,
    join,
    outcome_of,
)
from fuzz_messages import deep_options, hello, requests, sized
from fuzz_table import PATIENCE_SECONDS, Attack, Target, TurnedAway, Unclean, damaged, some_bytes
from rlmesh.transport.methods import HANDSHAKE, INSPECT, LEAVE, SHUTDOWN
from rlmesh.wire.env.v1 import env_pb2
from rlmesh.wire.spaces.v1 import spaces_pb2


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
    return converse(target, [b"\xfa\x7f" + sized(bytes(size - 8))] * 3)


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
        ("rlmesh-num-envs", chance.choice(("1", "3", "0", "-1", "65", "9" * 40, "two"))),
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

"""Attacks on the lanes beside gRPC: frames that lie, sockets that nobody was invited to."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import ssl
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from fuzz_channel import SERVICE, ask, dialled
from fuzz_messages import requests
from fuzz_table import PATIENCE_SECONDS, Attack, Target, TurnedAway, Unclean, damaged, some_bytes
from rlmesh.protocol.handshake import greet
from rlmesh.protocol.offers import LaneOffer, read_offer
from rlmesh.protocol.this_peer import this_peer
from rlmesh.transport.frames import (
    ADMITTED,
    HEAD,
    HEAD_SIZE,
    KINDS,
    MESSAGE,
    NOTICE,
    OPEN,
    REFUSED,
    RESET_ANSWER,
    STEP,
    STEP_ANSWER,
    WELCOME,
)
from rlmesh.transport.handshake_wire import read_welcome, write_hello
from rlmesh.transport.tls import client_context
from rlmesh.wire.env.v1 import env_pb2

FROM_SERVER = (WELCOME, ADMITTED, REFUSED, NOTICE, MESSAGE, STEP_ANSWER, RESET_ANSWER)
REPLY_SECONDS = 0.5
LARGEST = 2**32 - 1
RESET = env_pb2.JoinRequest(reset=env_pb2.ResetRequest(), request_id="1").SerializeToString()


def offer_of(target: Target) -> LaneOffer:
    """Return what the server offers to those who shake hands with it."""
    metadata = () if target.token is None else (("authorization", target.token),)
    hello = write_hello(greet(declared=None, peer=this_peer()))
    with dialled(target) as channel:
        outcome, reply = ask(channel, f"{SERVICE}Handshake", hello, metadata=metadata)
    if outcome != "answered":
        raise Unclean(f"a good handshake was {outcome}")
    peer = read_welcome(reply)[0].peer
    offer = None if peer is None else read_offer(peer.extra)
    if offer is None:
        raise Unclean("the server offers no lane")
    return offer


@contextmanager
def connected(target: Target, offer: LaneOffer, chance: random.Random) -> Generator[socket.socket]:
    """Connect to one of the lanes."""
    if offer.path is not None and (offer.port is None or chance.random() < 0.5):
        with socket.socket(socket.AF_UNIX) as made:
            made.settimeout(PATIENCE_SECONDS)
            made.connect(offer.path)
            yield made
        return
    if offer.port is None:
        raise Unclean("the server offers no port")
    with socket.create_connection((target.host, offer.port), PATIENCE_SECONDS) as made:
        if target.fingerprint is None:
            yield made
        else:
            with client_context(None).wrap_socket(made) as sealed:
                yield sealed


def head(kind: int, body: bytes, *, number: int = 1, tail: int = 0, leaves: int = 0) -> bytes:
    """Return a frame."""
    return HEAD.pack(len(body), kind, number, tail, 0, leaves, 0) + body


def note(said: object) -> bytes:
    """Return a frame that says something in words."""
    return head(OPEN, json.dumps(said).encode(), number=0)


def opening(offer: LaneOffer, headers: Mapping[str, str], *, memory: bool = False) -> bytes:
    """Return the frame that a good client begins with."""
    return note({"secret": offer.secret.reveal(), "memory": memory, "headers": headers})


def hear(connection: socket.socket, seconds: float = REPLY_SECONDS) -> str:
    """Read what comes within a moment, and return in short what it was."""
    data, ended = bytearray(), "silence"
    patience = time.monotonic() + seconds
    connection.settimeout(seconds)
    with contextlib.suppress(TimeoutError):
        while time.monotonic() < patience:
            try:
                piece = connection.recv(2**20)
            except (ConnectionError, ssl.SSLError):
                piece = b""
            if not piece:
                ended = "hung up"
                break
            data += piece
    return _told(bytes(data), ended)


def _told(data: bytes, ended: str) -> str:
    at, last, refusal = 0, "", ""
    while at + HEAD_SIZE <= len(data):
        size, kind, *_ = HEAD.unpack_from(data, at)
        if kind not in FROM_SERVER:
            raise Unclean(f"the server sent a frame of kind {kind:#x}")
        body = data[at + HEAD_SIZE : at + HEAD_SIZE + size]
        if kind == REFUSED:
            refusal = str(json.loads(body)["code"])
        if b"Traceback" in body and b"fuzz_world" not in body:
            raise Unclean(f"an answer shows what is inside the server: {body[-300:]!r}")
        last = {MESSAGE: "answered", STEP_ANSWER: "stepped", RESET_ANSWER: "answered"}.get(kind, "")
        at += HEAD_SIZE + size
    return refusal or last or ended


def random_lane(target: Target, chance: random.Random) -> str:
    with connected(target, offer_of(target), chance) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(some_bytes(chance, 100_000))
        return hear(connection)


def odd_opening(target: Target, chance: random.Random) -> str:
    """Introduce oneself with words that are nearly right."""
    offer = offer_of(target)
    secret = offer.secret.reveal()
    words: tuple[bytes, ...] = (
        note({"secret": secret[:-1], "headers": {}}),
        note({"secret": "\ud800" * 64, "headers": {}}),
        note({"secret": 7, "headers": {}}),
        note({"secret": secret}),
        note({"secret": secret, "headers": []}),
        note(
            {"secret": secret, "headers": {"authorization": "\ud800", "rlmesh-session": "\ud800"}}
        ),
        note({"secret": secret, "headers": {"rlmesh-queue-seconds": "1e999"}}),
        note({"secret": secret, "headers": {"rlmesh-num-envs": "4096"}}),
        note({"secret": secret, "headers": {"rlmesh-num-envs": "1e9"}}),
        note({"secret": secret, "headers": {"rlmesh-session": "x", "rlmesh-resume": "x"}}),
        note(
            {"secret": secret, "headers": {"rlmesh-attach": "resume", "rlmesh-session": "x" * 64}}
        ),
        note([1, 2]),
        head(OPEN, b"[" * 60_000),
        head(OPEN, b'{"secret":' * 6_000),
        head(OPEN, b"\xff\xfe" * 100),
        head(OPEN, b"1" * 60_000),
        head(OPEN, b"NaN"),
        HEAD.pack(LARGEST, OPEN, 0, LARGEST, LARGEST, LARGEST, LARGEST),
        HEAD.pack(0, OPEN, 0, 0, 0, 0, 0),
        head(STEP, bytes(64)),
        damaged(opening(offer, {}), chance),
    )
    with connected(target, offer, chance) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(chance.choice(words))
        return hear(connection)


def half_open_lane(target: Target, chance: random.Random) -> str:
    """Hold lanes at which nothing is said."""
    offer = offer_of(target)
    with contextlib.ExitStack() as stack:
        for _ in range(80):
            try:
                connection = stack.enter_context(connected(target, offer, chance))
                if chance.random() < 0.5:
                    connection.sendall(opening(offer, {})[: chance.randrange(60)])
            except OSError:
                return "sent away"
        time.sleep(chance.random())
    return "left"


@contextmanager
def admitted(target: Target, chance: random.Random) -> Generator[socket.socket]:
    """Open a session as a good client does."""
    offer = offer_of(target)
    with connected(target, offer, chance) as connection:
        try:
            connection.sendall(opening(offer, {}, memory=False))
        except ConnectionError as error:
            raise TurnedAway(str(error)) from error
        for wanted in (WELCOME, ADMITTED):
            kind, body = _frame(connection)
            while kind == NOTICE:
                kind, body = _frame(connection)
            if kind == REFUSED and json.loads(body)["code"] == "RESOURCE_EXHAUSTED":
                raise TurnedAway("all sessions are taken")
            if kind != wanted:
                raise Unclean(f"a good opening was answered with {kind:#x}: {body[:200]!r}")
        yield connection


def _frame(connection: socket.socket) -> tuple[int, bytes]:
    size, kind, *_ = HEAD.unpack(_exactly(connection, HEAD_SIZE))
    return kind, _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        try:
            piece = connection.recv(size - len(data))
        except ConnectionResetError:
            piece = b""
        if not piece and not data:
            raise TurnedAway("the server hung up, perhaps as too many strangers are there")
        if not piece:
            raise Unclean(f"the server hung up after {len(data)} of {size} bytes")
        data += piece
    return bytes(data)


def random_lane_frames(target: Target, chance: random.Random) -> str:
    """Send frames of any kind with any numbers in their heads, inside a session."""
    with admitted(target, chance) as connection:
        with contextlib.suppress(OSError):
            for _ in range(chance.randint(1, 5)):
                body = some_bytes(chance, 2000)
                numbers = [chance.choice((0, 1, 7, 100, LARGEST)) for _ in range(4)]
                size = chance.choice((len(body), len(body), len(body) + 8, LARGEST))
                kind = chance.choice((STEP, STEP, MESSAGE, *KINDS, chance.getrandbits(32)))
                connection.sendall(HEAD.pack(size, kind, chance.getrandbits(64), *numbers) + body)
        return hear(connection)


def lying_step(target: Target, chance: random.Random) -> str:
    """Send steps whose tables do not fit what follows them."""
    with admitted(target, chance) as connection:
        connection.sendall(head(MESSAGE, RESET))
        count = chance.choice((0, 1, 8, 8, 8, 100))
        sizes = [chance.choice((0, 1, 4, 8, 12, 40, LARGEST)) for _ in range(count)]
        table = b"".join(size.to_bytes(4, "little") for size in sizes)
        table += bytes(-len(table) % 8)
        body = table + bytes(
            chance.choice((0, 8, sum((size + 7) // 8 * 8 for size in sizes) % 4096))
        )
        tail = chance.choice((0, 0, 0, 5, LARGEST))
        with contextlib.suppress(OSError):
            connection.sendall(
                head(STEP, body, leaves=chance.choice((count, 0, LARGEST)), tail=tail)
            )
        return hear(connection)


def lane_messages(target: Target, chance: random.Random) -> str:
    """Send requests in any order, some of them damaged."""
    with admitted(target, chance) as connection:
        with contextlib.suppress(OSError):
            for one in requests(chance):
                connection.sendall(
                    head(MESSAGE, damaged(one, chance) if chance.random() < 0.3 else one)
                )
        return hear(connection)


def lane_too_large(target: Target, chance: random.Random) -> str:
    with admitted(target, chance) as connection:
        size = target.message_limit + chance.choice((1, 2**20))
        with contextlib.suppress(OSError):
            connection.sendall(HEAD.pack(size, chance.choice((STEP, MESSAGE)), 1, 0, 0, 1, 0))
            connection.sendall(bytes(size))
        outcome = hear(connection)
        if outcome not in ("RESOURCE_EXHAUSTED", "hung up"):
            raise Unclean(f"{size} bytes were {outcome}")
        return outcome


def slow_lane(target: Target, chance: random.Random) -> str:
    """Send a request byte by byte, and leave in the middle."""
    with admitted(target, chance) as connection:
        data = head(MESSAGE, RESET)
        for at in range(chance.randrange(len(data))):
            connection.sendall(data[at : at + 1])
            time.sleep(0.01)
        return "left"


def unread_lane(target: Target, chance: random.Random) -> str:
    """Ask for megabytes of observations and read none of them."""
    with admitted(target, chance) as connection:
        connection.settimeout(1.0)
        try:
            for _ in range(300):
                connection.sendall(head(MESSAGE, RESET))
        except OSError:
            return "not taken"
        return "left"


def many_lanes(target: Target, chance: random.Random) -> str:
    """Open sessions until there are no more, and leave without a word."""
    offer = offer_of(target)
    with contextlib.ExitStack() as stack:
        for _ in range(2 * target.sessions):
            try:
                connection = stack.enter_context(connected(target, offer, chance))
                connection.sendall(opening(offer, {}))
            except OSError:
                return "sent away"
        time.sleep(chance.random() / 2)
    return "left"


def uninvited(target: Target, chance: random.Random) -> str:
    """Come to the lane of a server that wants a token, without one or with a guess."""
    offer = offer_of(target)
    guess = chance.choice(({}, {"authorization": "guess"}, {"authorization": target.token or ""}))
    secret = chance.choice((offer.secret.reveal(), "0" * 64))
    if guess.get("authorization") == target.token and secret == offer.secret.reveal():
        guess = {}
    with connected(target, offer, chance) as connection:
        try:
            connection.sendall(note({"secret": secret, "headers": guess}))
        except ConnectionError as error:
            raise TurnedAway(str(error)) from error
        outcome = hear(connection)
    if outcome == "hung up":
        raise TurnedAway("too many strangers are there")
    if outcome not in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
        raise Unclean(f"a stranger at the lane was {outcome}")
    return outcome


FRAMES = (
    Attack("lane: random bytes", random_lane),
    Attack("lane: odd opening", odd_opening),
    Attack("lane: half open, 80 of them", half_open_lane),
    Attack("lane: random frames", random_lane_frames),
    Attack("lane: lying steps", lying_step),
    Attack("lane: any order, damaged", lane_messages),
    Attack("lane: too large", lane_too_large),
    Attack("lane: slow words", slow_lane),
    Attack("lane: slow reader", unread_lane),
    Attack("lane: many sessions", many_lanes),
    Attack("lane: uninvited", uninvited, guarded=True),
    Attack("lane: random bytes under TLS", random_lane, guarded=True),
    Attack("lane: odd opening under TLS", odd_opening, guarded=True),
)

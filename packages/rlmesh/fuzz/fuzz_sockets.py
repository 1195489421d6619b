"""Attacks below gRPC: bytes on a connection that are no HTTP/2, or too much of it, or too slow."""

from __future__ import annotations

import random
import socket
import ssl
import struct
import time
from contextlib import suppress

from fuzz_table import Attack, Target, some_bytes
from rlmesh.transport.tls import client_context

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS, ACK = 1, 4, 1
REPLY_SECONDS = 0.3


def frame(
    kind: int, flags: int, stream: int, body: bytes = b"", *, size: int | None = None
) -> bytes:
    """Return a frame of HTTP/2; `size` may lie."""
    length = len(body) if size is None else size
    return struct.pack(">I", length)[1:] + struct.pack(">BBI", kind, flags, stream) + body


def literal(name: bytes, value: bytes) -> bytes:
    """Return a header that uses no table."""
    return b"\x00" + _string(name) + _string(value)


def _string(text: bytes) -> bytes:
    if len(text) < 127:
        return bytes([len(text)]) + text
    rest, out = len(text) - 127, bytearray([127])
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*out, rest]) + text


def call_headers(method: bytes = b"Handshake") -> bytes:
    """Return the headers of a call."""
    pairs = (
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", b"/rlmesh.env.v1.EnvService/" + method),
        (b":authority", b"localhost"),
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
    )
    return b"".join(literal(name, value) for name, value in pairs)


def talk(target: Target, data: bytes, *, hold: float = REPLY_SECONDS) -> str:
    """Send bytes, look at what comes back for a moment, and hang up."""
    with target.connect() as connection:
        return exchange(connection, data, hold)


def exchange(connection: socket.socket, data: bytes, hold: float) -> str:
    connection.settimeout(hold)
    received = 0
    try:
        connection.sendall(data)
        patience = time.monotonic() + hold
        while time.monotonic() < patience:
            piece = connection.recv(65_536)
            if not piece:
                return "hung up"
            received += len(piece)
    except TimeoutError:
        pass
    except OSError:
        return "hung up"
    return "some words" if received else "silence"


def random_connection(target: Target, chance: random.Random) -> str:
    return talk(target, some_bytes(chance, 100_000))


def random_frames(target: Target, chance: random.Random) -> str:
    frames = [
        frame(
            chance.randrange(12),
            chance.randrange(256),
            chance.choice((0, 1, 2, 3, 2**31 - 1)),
            some_bytes(chance, 500),
        )
        for _ in range(chance.randint(1, 50))
    ]
    return talk(target, PREFACE + frame(SETTINGS, 0, 0) + b"".join(frames))


def other_protocol(target: Target, chance: random.Random) -> str:
    return talk(
        target,
        chance.choice(
            (
                b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + chance.randbytes(500),
                b"SSH-2.0-x\r\n",
                PREFACE[:-1],
                PREFACE * 3,
            )
        ),
    )


def half_open(target: Target, chance: random.Random) -> str:
    """Hold many connections on which nothing is ever said, or only half of a greeting."""
    words = (b"", PREFACE[:10], PREFACE, PREFACE + frame(SETTINGS, 0, 0))
    held: list[socket.socket] = []
    try:
        for _ in range(100):
            connection = target.connect()
            held.append(connection)
            connection.sendall(chance.choice(words))
        time.sleep(chance.random())
    finally:
        for connection in held:
            connection.close()
    return "left"


def slowly(target: Target, chance: random.Random) -> str:
    """Send a request byte by byte."""
    data = PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, 1, call_headers())
    with target.connect() as connection:
        for at in range(len(data)):
            try:
                connection.sendall(data[at : at + 1])
            except OSError:
                return "hung up"
            time.sleep(0.002)
    return "left"


def rapid_reset(target: Target, chance: random.Random) -> str:
    """Open streams and reset them at once."""
    opening = call_headers(chance.choice((b"Handshake", b"Join")))
    frames = b"".join(
        frame(HEADERS, END_HEADERS, stream, opening) + frame(RST, 0, stream, struct.pack(">I", 8))
        for stream in range(1, 4001, 2)
    )
    return talk(target, PREFACE + frame(SETTINGS, 0, 0) + frames)


def flood(target: Target, chance: random.Random) -> str:
    """Send what has to be answered, and do not read the answers."""
    one = chance.choice(
        (
            frame(PING, 0, 0, bytes(8)),
            frame(SETTINGS, 0, 0),
            frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 2**31 - 1)),
            frame(PRIORITY, 0, 1, struct.pack(">IB", 3, 1)),
            frame(DATA, 0, 1, b""),
            frame(WINDOW, 0, 0, struct.pack(">I", 2**31 - 1)),
        )
    )
    with target.connect() as connection:
        connection.settimeout(2.0)
        try:
            connection.sendall(PREFACE + frame(SETTINGS, 0, 0))
            for _ in range(20):
                connection.sendall(one * 1000)
        except OSError:
            return "hung up"
        return "left"


def endless_headers(target: Target, chance: random.Random) -> str:
    """Send headers that do not end."""
    piece = literal(b"x-" + bytes([chance.randrange(97, 123)]), bytes(97 for _ in range(8000)))
    frames = frame(HEADERS, 0, 1, call_headers())
    frames += b"".join(frame(CONTINUATION, 0, 1, piece) for _ in range(500))
    return talk(target, PREFACE + frame(SETTINGS, 0, 0) + frames)


def header_bomb(target: Target, chance: random.Random) -> str:
    """Name one large header of the table again and again: a byte that stands for kilobytes."""
    large = b"\x40" + _string(b"x-large") + _string(bytes(97 for _ in range(3900)))
    block = call_headers() + large + b"\xbe" * 12_000
    frames = frame(HEADERS, END_HEADERS, 1, block)
    return talk(target, PREFACE + frame(SETTINGS, 0, 0) + frames)


def lying_length(target: Target, chance: random.Random) -> str:
    """Announce more than is sent: in the frame, or in the message."""
    start = PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, 1, call_headers())
    lies = (
        frame(DATA, 0, 1, b"", size=2**24 - 1),
        frame(DATA, 0, 1, struct.pack(">BI", 0, 2**32 - 1) + bytes(100)),
        frame(DATA, END_STREAM, 1, struct.pack(">BI", 0, target.message_limit) + bytes(100)),
        frame(DATA, END_STREAM, 1, struct.pack(">BI", 1, 4) + bytes(4)),
        frame(DATA, END_STREAM, 1, struct.pack(">BI", 7, 0)),
        frame(DATA, END_STREAM, 1, b"\0"),
    )
    return talk(target, start + chance.choice(lies))


def wrapped(target: Target, data: bytes) -> str:
    """Send bytes under TLS."""
    with target.connect() as connection:
        context = client_context(None)
        context.set_alpn_protocols(["h2"])
        try:
            with context.wrap_socket(connection) as sealed:
                return exchange(sealed, data, REPLY_SECONDS)
        except (ssl.SSLError, OSError):
            return "hung up"


def tls_garbage(target: Target, chance: random.Random) -> str:
    return talk(target, b"\x16\x03\x01" + struct.pack(">H", 512) + some_bytes(chance, 2000))


def tls_random_frames(target: Target, chance: random.Random) -> str:
    return wrapped(target, PREFACE + some_bytes(chance, 10_000))


def tls_half_open(target: Target, chance: random.Random) -> str:
    """Begin many handshakes and finish none."""
    client = client_context(None)
    held: list[socket.socket] = []
    try:
        for _ in range(50):
            inbound, outbound = ssl.MemoryBIO(), ssl.MemoryBIO()
            began = client.wrap_bio(inbound, outbound)
            with suppress(ssl.SSLWantReadError):
                began.do_handshake()
            connection = target.connect()
            held.append(connection)
            connection.sendall(outbound.read())
        time.sleep(chance.random())
    finally:
        for connection in held:
            connection.close()
    return "left"


def tls_many(target: Target, chance: random.Random) -> str:
    """Finish handshakes and leave."""
    outcomes: set[str] = set()
    for _ in range(50):
        with target.connect() as connection:
            try:
                with client_context(None).wrap_socket(connection):
                    outcomes.add("left")
            except (ssl.SSLError, OSError):
                outcomes.add("hung up")
    return ", ".join(sorted(outcomes))


SOCKETS = (
    Attack("connection: random bytes", random_connection),
    Attack("connection: random frames", random_frames),
    Attack("connection: another protocol", other_protocol),
    Attack("connection: half open, 100 of them", half_open),
    Attack("connection: slow words", slowly),
    Attack("http2: rapid reset", rapid_reset),
    Attack("http2: flood", flood),
    Attack("http2: endless headers", endless_headers),
    Attack("http2: header bomb", header_bomb),
    Attack("http2: lying length", lying_length),
    Attack("tls: plain words", random_frames, guarded=True),
    Attack("tls: garbage", tls_garbage, guarded=True),
    Attack("tls: random frames inside", tls_random_frames, guarded=True),
    Attack("tls: half a handshake, 50 of them", tls_half_open, guarded=True),
    Attack("tls: 50 handshakes", tls_many, guarded=True),
)

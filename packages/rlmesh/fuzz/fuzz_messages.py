"""Messages of gRPC's words to attack with: well formed ones of chance, and one without an end."""

from __future__ import annotations

import random

from fuzz_table import some_bytes
from rlmesh.wire.core.v1 import core_pb2
from rlmesh.wire.env.v1 import env_pb2
from rlmesh.wire.spaces.v1 import spaces_pb2


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
        entry = b"\x12" + sized(b"\x3a" + sized(inner))
        inner = b"\x0a" + sized(entry)
    return b"\x0a" + sized(b"\x12" + sized(inner))


def sized(data: bytes) -> bytes:
    """Return bytes with their length before them."""
    number, out = len(data), bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number]) + data

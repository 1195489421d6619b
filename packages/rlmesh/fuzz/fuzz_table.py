"""What an attack is, what it is aimed at, and what a server of good manners answers."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable
from dataclasses import dataclass

from rlmesh import ClientTls
from rlmesh.transport.addresses import TcpAddress
from rlmesh.transport.tls_probe import prepared

PATIENCE_SECONDS = 15.0


class Unclean(Exception):
    """The server answered in a way that it should not, or not at all."""


class TurnedAway(Exception):
    """The server had too much to do just now; the same again in a moment has to go well."""


@dataclass(frozen=True)
class Target:
    """Where a server is and what it takes to come in."""

    host: str
    port: int
    message_limit: int
    sessions: int
    token: str | None = None
    fingerprint: str | None = None

    def connect(self) -> socket.socket:
        """Return a connection without anything on it."""
        return socket.create_connection((self.host, self.port), PATIENCE_SECONDS)

    def trust(self) -> ClientTls | None:
        """Return how to dial it with TLS."""
        if self.fingerprint is None:
            return None
        pinned = ClientTls(fingerprint=self.fingerprint)
        return prepared(pinned, TcpAddress(self.host, self.port), PATIENCE_SECONDS)


@dataclass(frozen=True)
class Attack:
    """One way to be a bad peer; `run` returns how it ended in a few words.

    Attributes:
        name: what it is called in the report.
        run: does it once, with these random numbers, within some seconds.
        guarded: whether it is aimed at the server with token and TLS.
    """

    name: str
    run: Callable[[Target, random.Random], str]
    guarded: bool = False


def some_bytes(chance: random.Random, most: int) -> bytes:
    """Return random bytes, most often few of them."""
    return chance.randbytes(int(most ** chance.random()))


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return bytes with a few of them changed, cut off, doubled or put elsewhere."""
    whole = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(whole) + 1)
        match chance.randrange(5):
            case 0 if at < len(whole):
                whole[at] = chance.randrange(256)
            case 1:
                del whole[at:]
            case 2:
                whole[at:at] = some_bytes(chance, 40)
            case 3:
                whole[at:at] = whole[: chance.randrange(len(whole) + 1)]
            case _:
                del whole[at : at + chance.randrange(8)]
    return bytes(whole)

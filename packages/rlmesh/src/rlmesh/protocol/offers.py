"""Where a server can be reached by frames, as it tells those who shook hands with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from rlcore import ProtocolException, Secret

from rlmesh.protocol.handshake import LANES


@dataclass(frozen=True, slots=True)
class LaneOffer:
    """The ways to a server beside gRPC.

    Attributes:
        secret: what has to be shown there, so that only those who shook hands come in.
        path: a unix socket, for clients on the same host.
        beside: the same from the folder of the socket that was dialled; None: that was none.
        port: a second TCP port at the same host.
    """

    secret: Secret = field(repr=False)
    path: str | None = None
    beside: str | None = None
    port: int | None = None

    def extra(self) -> dict[str, str]:
        """Return what a server adds to what it says about itself."""
        told = {
            "secret": self.secret.reveal(),
            "path": self.path,
            "beside": self.beside,
            "port": self.port,
        }
        return {LANES: json.dumps({name: value for name, value in told.items() if value})}


def read_offer(extra: Mapping[str, str]) -> LaneOffer | None:
    """Return what a server offers; None: nothing.

    Raises:
        ProtocolException: it cannot be understood.
    """
    text = extra.get(LANES)
    if text is None:
        return None
    try:
        said: object = json.loads(text)
    except ValueError as error:
        raise ProtocolException(f"the server's offer of lanes is not JSON: {error}") from error
    told = cast("Mapping[str, object]", said if isinstance(said, dict) else {})
    secret, path, beside, port = (told.get(n) for n in ("secret", "path", "beside", "port"))
    if (
        not isinstance(secret, str)
        or not isinstance(path, str | None)
        or not isinstance(beside, str | None)
        or not (port is None or (isinstance(port, int) and 0 < port < 65536))
    ):
        raise ProtocolException("the server's offer of lanes has not the form of one")
    return LaneOffer(Secret(secret), path, beside, port)

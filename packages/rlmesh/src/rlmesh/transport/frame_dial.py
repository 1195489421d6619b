"""The client's way to a lane that a server offered."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from rlcore import Deadline
from rlcore.log import logger

from rlmesh.protocol.offers import LaneOffer
from rlmesh.transport.addresses import Address, TcpAddress, UnixAddress
from rlmesh.transport.frame_lane import FrameLane
from rlmesh.transport.frames import (
    NOTE_LIMIT,
    OPEN,
    WELCOME,
    Broken,
    FrameEnd,
    Garbled,
    Overdue,
    TooLarge,
)
from rlmesh.transport.limits import MESSAGE_BYTES
from rlmesh.transport.pulse import PulsingLane
from rlmesh.transport.shared_memory import SharedMemory
from rlmesh.transport.tls import ClientTls

log = logger("rlmesh", "client")

LaneName = Literal["local", "tcp"]
# A port that nothing answers at must not cost a client more than this.
REACH_SECONDS: Final = 1.0
# A socket of this host is there or not, and where one way alone will do, nothing is won by haste:
# the server is only busy.
WANTED_SECONDS: Final = 10.0
PEER_SIZE: Final = struct.calcsize("3i")


class Unreached(Exception):
    """There is no way to the lane from here; the text says why."""


def reach(
    name: LaneName,
    offer: LaneOffer,
    address: Address,
    headers: Mapping[str, str],
    *,
    usual: int,
    timeout: float | None,
    tls: ClientTls | None = None,
    message_limit: int = MESSAGE_BYTES,
    is_wanted: bool = False,
) -> FrameLane:
    """Return an open lane to the server that was dialled at `address`.

    Args:
        name: which of the offered lanes.
        offer: what the server said in its handshake.
        address: where it was dialled.
        headers: what is said of the session, and the credential.
        usual: the bytes that an observation usually has.
        timeout: how long a request may take; None: no limit.
        tls: whom to believe at the second port.
        message_limit: the bytes of the largest message.
        is_wanted: whether no other way will do, so that a busy server is waited for.

    Raises:
        Unreached: it cannot be reached, or somebody else answers there.
    """
    try:
        patience = WANTED_SECONDS if is_wanted or name == "local" else REACH_SECONDS
        connected = _connect(name, offer, address, tls, patience)
        end = FrameEnd(connected, limit=message_limit)
        try:
            is_watched = _introduce(end, offer, headers, patience)
        except BaseException:
            end.close()
            raise
    except (OSError, Broken, Overdue, Garbled, TooLarge) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise Unreached(reason) from error
    # On one host, the system mostly knows whether this process is there.
    kind = FrameLane if is_watched else PulsingLane
    return kind(end, name=name, address=address, timeout=timeout, usual=usual)


def _connect(
    name: LaneName, offer: LaneOffer, address: Address, tls: ClientTls | None, patience: float
) -> socket.socket:
    if name == "local":
        connected = _connect_local(_local_paths(offer, address))
        # A server that was reached over the network names a path of its own machine. On this one
        # that may be somebody else's, who must not hear the token.
        if isinstance(address, TcpAddress) and _user_of(connected) not in (os.geteuid(), 0):
            connected.close()
            raise Unreached("another user's process answers there")
        return connected
    if offer.port is None or not isinstance(address, TcpAddress):
        raise Unreached("the server offers no second port")
    connected = socket.create_connection((address.host, offer.port), timeout=patience)
    # A second port on this machine may be nobody's: then a socket can be connected to itself.
    if connected.getsockname() == connected.getpeername():
        connected.close()
        raise Unreached("nothing answers there")
    return connected if tls is None else tls.wrap(connected, address.host)


def _local_paths(offer: LaneOffer, address: Address) -> list[str]:
    if not hasattr(socket, "AF_UNIX"):
        raise Unreached("this system has no unix sockets")
    paths = [] if offer.path is None else [offer.path]
    if offer.beside is not None and isinstance(address, UnixAddress):
        # The server may know the folder by another name than we do.
        paths.insert(0, str(Path(address.path).parent / offer.beside))
    if not paths:
        raise Unreached("the server offers no local socket")
    return paths


def _connect_local(paths: list[str]) -> socket.socket:
    failure: OSError | None = None
    for path in paths:
        connected = socket.socket(socket.AF_UNIX)
        try:
            connected.settimeout(WANTED_SECONDS)
            connected.connect(path)
            return connected
        except OSError as error:
            connected.close()
            failure = error
    raise Unreached(str(failure)) from failure


def _user_of(connected: socket.socket) -> int:
    if not hasattr(socket, "SO_PEERCRED"):
        return Path(connected.getpeername()).stat().st_uid
    credentials = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER_SIZE)
    user: int = struct.unpack("3i", credentials)[1]
    return user


def _introduce(
    end: FrameEnd, offer: LaneOffer, headers: Mapping[str, str], patience: float
) -> bool:
    """Show that we are meant to come; return whether the server watches this process."""
    end.be_patient(patience)
    deadline = Deadline.after(patience)
    end.say(
        OPEN,
        {
            "secret": offer.secret.reveal(),
            "memory": end.is_local and SharedMemory.is_offered(),
            "headers": dict(headers),
        },
    )
    frame = end.receive(limit=NOTE_LIMIT)
    if deadline.expired():
        raise Unreached(f"it did not answer within {patience:g} s")
    if frame.kind != WELCOME:
        raise Unreached("another server answers there")
    return end.is_local and frame.note().get("watches") is True

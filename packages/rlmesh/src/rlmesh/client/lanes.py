"""Which way a session takes to its server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Literal

from rlcore import ConfigurationError, ServerUnreachable, UnsupportedError
from rlcore.environ import variable
from rlcore.log import logger

from rlmesh.client.dialling import Dialled
from rlmesh.codec import NUMPY, compile_codec
from rlmesh.protocol.handshake import SEVERAL
from rlmesh.protocol.offers import LaneOffer, read_offer
from rlmesh.protocol.opening import Opening
from rlmesh.specs import EnvContract
from rlmesh.transport.addresses import Address, TcpAddress, UnixAddress
from rlmesh.transport.connection import Connection
from rlmesh.transport.frame_dial import LaneName, Unreached, reach
from rlmesh.transport.frame_lane import FrameLane
from rlmesh.transport.lane import Lane

log = logger("rlmesh", "client")

LaneChoice = Literal["auto", "local", "tcp", "grpc"]
LANE_VARIABLE: Final = "RLMESH_LANE"
CHOICES: Final[dict[str, tuple[LaneName, ...]]] = {
    "auto": ("local", "tcp"),
    "local": ("local",),
    "tcp": ("tcp",),
    "grpc": (),
}
# So long a port that cannot be reached is not tried again: every try may cost a second.
AVOIDED_SECONDS: Final = 60.0
ONE_ENVIRONMENT: Final = "one_environment"
"""The code of the error that a server gives sessions one environment only."""

_avoided: dict[tuple[str, LaneName], float] = {}
_warned: set[str] = set()
_lock = threading.Lock()


def checked_lane(lane: object) -> str:
    """Return the wanted way: as it is given, else as the environment variable says.

    Raises:
        ConfigurationError: there is no such way.
    """
    given = lane if lane is not None else variable(LANE_VARIABLE) or "auto"
    if isinstance(given, str) and given in CHOICES:
        return given
    named = "lane" if lane is not None else LANE_VARIABLE
    raise ConfigurationError(f"{named} is {given!r}", hint=f"Use one of {', '.join(CHOICES)}.")


def open_lane(
    dialled: Dialled,
    connection: Connection,
    opening: Opening | None,
    *,
    timeout: float | None,
    told: Callable[[int], None] | None,
) -> Lane:
    """Return a lane for a session; whether the server has one for it shows in its first reply.

    A session that is taken up again goes over gRPC where its own lane cannot be reached.

    Args:
        dialled: what the handshake said.
        connection: the connection to use, where it is gRPC.
        opening: what to say of the session; None: the server does not know of such things.
        timeout: how long each reply may take; None: no limit.
        told: hears the position in the queue, where the session has to be waited for.

    Raises:
        UnsupportedError: the one lane that is wanted is not offered.
        ServerUnreachable: it cannot be reached.
    """
    wanted = dialled.lane
    peer = dialled.welcome.peer
    offer = None if peer is None or wanted == "grpc" else read_offer(peer.extra)
    failure: Unreached | None = None
    if offer is not None:
        headers = connection.headers(opening)
        usual = usual_bytes(dialled.contract, 1 if opening is None else opening.places)
        for name in CHOICES[wanted]:
            try:
                lane = _reach(name, offer, dialled, connection, headers, timeout, usual)
            except Unreached as error:
                failure = error
                log.debug("no %s lane to %s: %s", name, connection.address, error)
                continue
            lane.hear(told)
            return lane
    comes_back = opening is not None and opening.resume
    if wanted in ("auto", "grpc") or comes_back:
        if failure is not None and offer is not None and not comes_back:
            _warn(connection.address, offer, failure)
        return connection.join(timeout=timeout, opening=opening, told=told)
    require_offered(dialled)
    raise ServerUnreachable(
        f"the lane {wanted!r} of {connection.address} cannot be reached: {failure}",
        address=str(connection.address),
        hint="Use lane='auto' to take what there is.",
    )


def require_offered(dialled: Dialled) -> None:
    """Do nothing where the one way that is wanted is offered, or any will do.

    Raises:
        UnsupportedError: it is not.
    """
    wanted, peer = dialled.lane, dialled.welcome.peer
    if wanted not in ("local", "tcp"):
        return
    offer = None if peer is None else read_offer(peer.extra)
    address = dialled.connection.address
    if offer is not None and (
        (offer.path or offer.beside)
        if wanted == "local"
        else offer.port and isinstance(address, TcpAddress)
    ):
        return
    raise UnsupportedError(
        f"the server at {address} offers no lane {wanted!r}",
        hint="Use lane='auto' to take what there is.",
    )


def require_several(dialled: Dialled, num_envs: int) -> None:
    """Do nothing where sessions can have several environments, or none is asked to.

    Raises:
        UnsupportedError: they cannot.
    """
    if num_envs and not dialled.welcome.offers(SEVERAL):
        raise UnsupportedError(
            f"the server at {dialled.connection.address} gives a session one environment",
            code=ONE_ENVIRONMENT,
            hint="Open a session for each, with RemoteEnv. Several have servers of a factory of "
            "single environments, without isolation='process'.",
        )


def usual_bytes(contract: EnvContract, environments: int = 1) -> int:
    """Return how many bytes an observation of all lanes usually has."""
    codec = compile_codec(contract.observation_space, backend=NUMPY)
    return codec.size_hint * max(1, contract.num_envs) * environments


def _reach(
    name: LaneName,
    offer: LaneOffer,
    dialled: Dialled,
    connection: Connection,
    headers: dict[str, str],
    timeout: float | None,
    usual: int,
) -> FrameLane:
    key = (offer.secret.reveal(), name)
    with _lock:
        avoided = _avoided.get(key, 0.0) > time.monotonic()
    is_wanted = dialled.lane != "auto"
    if avoided and not is_wanted:
        raise Unreached("it could not be reached a moment ago")
    started = time.monotonic()
    try:
        return reach(
            name,
            offer,
            connection.address,
            headers,
            usual=usual,
            timeout=timeout,
            tls=connection.tls,
            is_wanted=is_wanted,
        )
    except Unreached:
        now = time.monotonic()
        if name != "local" and now - started > 0.1:
            with _lock:
                for old in [old for old, until in _avoided.items() if until < now]:
                    del _avoided[old]
                _avoided[key] = now + AVOIDED_SECONDS
        raise


def _warn(dialled: Address, offer: LaneOffer, failure: Unreached) -> None:
    if offer.port is not None:
        advice = "forward its port (lane_port) as well"
    elif isinstance(dialled, UnixAddress):
        advice = "let this client reach the lane's socket, which is beside the server's"
    else:
        return  # on another machine, where its local socket is not meant to be reached
    address = str(dialled)
    with _lock:
        if address in _warned:
            return
        _warned.add(address)
    log.warning(
        "the fast lane of %s cannot be reached (%s), so that gRPC is used; %s, or pass lane='grpc'",
        address,
        failure,
        advice,
    )

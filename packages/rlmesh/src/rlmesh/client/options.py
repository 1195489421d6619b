"""What every client can be told about connecting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import TypedDict

from rlcore import ConfigurationError, Credential, Secret

from rlmesh.client.arguments import (
    checked_listener,
    checked_seconds,
    checked_switch,
    checked_wait,
)
from rlmesh.client.dialling import destination_of
from rlmesh.client.lanes import LaneChoice, checked_lane
from rlmesh.client.link import EnvLink
from rlmesh.client.reconnect import Patience
from rlmesh.client.trust import TlsOption
from rlmesh.codec import Backend
from rlmesh.workflow import chosen_edition

CONNECT_SECONDS = 10.0
REQUEST_SECONDS = 300.0


class ConnectOptions(TypedDict, total=False):
    """Keyword arguments of a client.

    Attributes:
        host: the host, instead of an address.
        port: the port, instead of an address.
        path: the socket file, instead of an address.
        transport: `tcp` or `unix`, where the others leave it open.
        connect_timeout_seconds: how long the handshake may take, 10 s by default; None or 0: no
            limit.
        request_timeout_seconds: how long a call may take, 300 s by default; None or 0: no limit.
        wait_for_server_seconds: how long to keep trying while nothing answers; 0 fails at once.
        resume_timeout_seconds: how long a session whose connection broke is tried to be taken up
            again; by default as long as the server keeps it; 0: not at all.
        reconnect: whether `reset` opens another session, and dials again if need be, after the last
            one was lost (the default); otherwise it fails from then on.
        queue_timeout_seconds: how long to wait for a session on a server that has none to give;
            by default 60 s where each client has its own environment, and no longer than a client
            that was lost may come back where all share one; 0: not at all.
        on_queue_position: called with the position in the queue, 1 being the next to be served.
        token: what to show to a server that asks for a token; by default what RLMESH_TOKEN holds.
        credential: the same, as a credential.
        tls: whom to trust: True for this machine's roots, a fingerprint `sha256:…`, the file of a
            CA, or a `ClientTls`; False for no TLS.
        lane: which way steps take: `local` (a unix socket and shared memory on this host), `tcp`
            (a second port), `grpc`, or `auto` for the first of them that works; by default what
            RLMESH_LANE says, else `auto`.
        expected_digest: the contract digest that the environment must have.
        workflow_edition: the edition that the caller was written for.
        strict_dtypes: refuse actions whose element types are not exactly the declared ones; by
            default what loses nothing is cast.
    """

    host: str | None
    port: int | None
    path: str | None
    transport: str | None
    connect_timeout_seconds: float | None
    request_timeout_seconds: float | None
    wait_for_server_seconds: float
    resume_timeout_seconds: float | None
    queue_timeout_seconds: float | None
    reconnect: bool
    on_queue_position: Callable[[int], None] | None
    token: str | Secret | None
    credential: Credential | None
    tls: TlsOption
    lane: LaneChoice | None
    expected_digest: str | None
    workflow_edition: str | None
    strict_dtypes: bool


def open_link(
    address: object,
    options: ConnectOptions,
    backend: Backend,
    *,
    many: bool = False,
    num_envs: int = 0,
) -> EnvLink:
    """Return a link to the environment that a client's arguments name.

    Args:
        address: where it is.
        options: what the client was told about connecting.
        backend: what arrays become.
        many: whether what is served may have several lanes.
        num_envs: how many environments the session is to have, each with its own episodes.

    Raises:
        AddressError: the address cannot be understood.
        ConfigurationError: an option is wrong, or there is none of that name.
        Error: as `dialling.dial`.
    """
    _check_names(options)
    for name in ("expected_digest", "workflow_edition"):
        text: object = options.get(name)
        if not isinstance(text, str | None):
            raise ConfigurationError(f"{name} is {text!r}", hint="Give a text, or None.")
    destination = destination_of(
        address,
        host=options.get("host"),
        port=options.get("port"),
        path=options.get("path"),
        transport=options.get("transport"),
        token=options.get("token"),
        credential=options.get("credential"),
        tls=options.get("tls"),
        lane=checked_lane(options.get("lane")),
        expected_digest=options.get("expected_digest"),
        declared_edition=chosen_edition(keyword=options.get("workflow_edition")),
        connect_seconds=checked_seconds(
            "connect_timeout_seconds", options.get("connect_timeout_seconds", CONNECT_SECONDS)
        ),
        wait_seconds=checked_wait(options.get("wait_for_server_seconds", 0.0)),
    )
    request_seconds = checked_seconds(
        "request_timeout_seconds", options.get("request_timeout_seconds", REQUEST_SECONDS)
    )
    patience = Patience(
        request_seconds=request_seconds,
        resume_seconds=_optional("resume_timeout_seconds", options.get("resume_timeout_seconds")),
        queue_seconds=_optional("queue_timeout_seconds", options.get("queue_timeout_seconds")),
        told=checked_listener("on_queue_position", options.get("on_queue_position")),
        reconnects=checked_switch("reconnect", options.get("reconnect", True)),
    )
    return EnvLink(
        replace(destination, many=many),
        backend,
        patience=patience,
        strict_dtypes=checked_switch("strict_dtypes", options.get("strict_dtypes", False)),
        num_envs=num_envs,
    )


def _optional(name: str, seconds: float | None) -> float | None:
    return None if seconds is None else checked_wait(seconds, name=name)


def _check_names(options: Mapping[str, object]) -> None:
    known = sorted(ConnectOptions.__optional_keys__)
    for name in options:
        if name in known:
            continue
        near = get_close_matches(name, known, n=1)
        raise ConfigurationError(
            f"a client has no option {name!r}",
            hint=f"Did you mean {near[0]}=?" if near else f"The options are {', '.join(known)}.",
        )

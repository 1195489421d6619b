"""From whatever names a served environment to a connection whose handshake is done and checked."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from rlcore import (
    AccessDenied,
    AddressError,
    ConfigurationError,
    Credential,
    Deadline,
    Endpoint,
    EnvironmentIdentity,
    IdentityError,
    ProtocolException,
    Secret,
    ServerUnreachable,
    SessionBusy,
    contract_differences,
)
from rlcore.backoff import Backoff
from rlcore.resolvers import resolve

from rlmesh.client.arguments import checked_credential
from rlmesh.client.trust import credential_of, tls_of, warn_of_clear_text
from rlmesh.protocol.handshake import Welcome, accept, greet
from rlmesh.protocol.this_peer import this_peer
from rlmesh.specs import EnvContract
from rlmesh.transport.addresses import Address, parse_dial, speaks
from rlmesh.transport.connection import Connection
from rlmesh.transport.handshake_wire import read_welcome, write_hello
from rlmesh.transport.methods import HANDSHAKE
from rlmesh.transport.tls import ClientTls
from rlmesh.transport.tls_probe import explanation, prepared

T = TypeVar("T")
RETRY_DELAYS = Backoff(first=0.05, factor=1.5, cap=0.5, jitter=0.2)
MANY_LANES = "many_lanes"
"""The code of the error that several environments are served where one was to be driven."""


@dataclass(frozen=True, slots=True)
class Destination:
    """What to dial, as whom, and what to find there; enough to dial again."""

    target: str | Endpoint
    credential: Credential | None
    expected_digest: str | None
    declared_edition: str | None
    connect_seconds: float | None
    wait_seconds: float
    tls: ClientTls | None = None
    lane: str = "auto"
    contract: EnvContract | None = field(default=None, repr=False)
    many: bool = False

    @property
    def is_resolved(self) -> bool:
        """Whether a resolver says where it is and gives the credential, so that it can again."""
        return self.credential is None and isinstance(self.target, str) and not speaks(self.target)

    def advise(self, denied: AccessDenied) -> None:
        """Give a refusal the hint that fits: nobody can pass what a resolver gives."""
        if self.is_resolved:
            denied.hint = f"The token came with {self.target}: try again, or restart it."


@dataclass(frozen=True, slots=True)
class Dialled:
    """A connection, and what the handshake on it said."""

    connection: Connection
    contract: EnvContract
    welcome: Welcome
    edition: str
    identity: EnvironmentIdentity
    endpoint: Endpoint
    lane: str = "auto"


Shake: TypeAlias = Callable[[Connection, Endpoint, Destination], T]


def destination_of(
    address: object,
    *,
    host: str | None,
    port: int | None,
    path: str | None,
    transport: str | None,
    token: str | Secret | None,
    credential: Credential | None,
    expected_digest: str | None,
    declared_edition: str | None,
    connect_seconds: float | None,
    wait_seconds: float,
    tls: object = None,
    lane: str = "auto",
) -> Destination:
    """Return where to go for the arguments of a client.

    Raises:
        AddressError: the address cannot be understood, or is none.
        ConfigurationError: both a token and a credential were given, or one that is none; or `tls`
            cannot be used.
    """
    credential = checked_credential(token, credential)
    given = _named(address)
    apart = any(part is not None for part in (host, port, path, transport))
    if not isinstance(given, Endpoint) and (apart or given is None or speaks(given)):
        given = str(parse_dial(given, host=host, port=port, path=path, transport=transport))
    elif apart:
        raise AddressError(
            f"address {given!r} is given beside host, port, path or transport",
            hint="Give one or the other.",
        )
    return Destination(
        given,
        credential_of(credential, given),
        expected_digest,
        declared_edition,
        connect_seconds,
        wait_seconds,
        tls_of(tls, address, given),
        lane,
    )


def dial(destination: Destination) -> Dialled:
    """Connect, shake hands, and check that the environment is the one that is meant.

    Raises:
        ServerUnreachable: nothing answers there, within the time to wait for a server.
        SessionBusy: the server takes no more calls, for as long as one waits for a server.
        AccessDenied: the credential was refused.
        CallTimeout: something accepts the connection, and does not answer.
        TlsError: the two sides do not trust each other, or only one of them wants TLS.
        IncompatibleError: the server speaks another generation or edition.
        IdentityError: the served contract is not the expected one.
        Error: the resolver's own failure, where the address had to be resolved.
    """
    return dial_with(destination, _shake_hands)


def dial_with(destination: Destination, shake: Shake[T]) -> T:
    """Connect and return what shaking hands gives; otherwise as `dial`.

    Args:
        destination: where to go.
        shake: what is done first on the connection, which is closed when it raises.
    """
    endpoint = _endpoint(destination)
    credential = destination.credential or endpoint.credential
    address = parse_dial(endpoint.address)
    deadline = Deadline.after(destination.wait_seconds)
    delays = RETRY_DELAYS.delays()
    trust, seconds = destination.tls, destination.connect_seconds
    if destination.tls is None and endpoint.tls_fingerprint is not None:
        trust = ClientTls(fingerprint=endpoint.tls_fingerprint)
    if destination.contract is None:
        warn_of_clear_text(credential, trust, address)
    while True:
        try:
            tls = prepared(trust, address, seconds)
            return _connect(address, credential, tls, endpoint, destination, shake)
        except SessionBusy:
            # So many others knock at the same moment that the server takes no more calls.
            if deadline.expired():
                raise
        except ServerUnreachable as error:
            reason = explanation(trust, address, seconds)
            if reason is not None:
                raise reason from error
            if deadline.expired():
                raise
        time.sleep(deadline.at_most(next(delays)))


def _connect(
    address: Address,
    credential: Credential,
    tls: ClientTls | None,
    endpoint: Endpoint,
    destination: Destination,
    shake: Shake[T],
) -> T:
    connection = Connection(address, credential=credential, tls=tls)
    try:
        return shake(connection, endpoint, destination)
    except BaseException as error:
        connection.close()
        if isinstance(error, AccessDenied):
            destination.advise(error)
        raise


def _endpoint(destination: Destination) -> Endpoint:
    target = destination.target
    if isinstance(target, Endpoint):
        return target
    if speaks(target):
        return Endpoint(target)
    return resolve(target, timeout=destination.connect_seconds)


def _shake_hands(connection: Connection, endpoint: Endpoint, destination: Destination) -> Dialled:
    hello = greet(declared=destination.declared_edition, peer=this_peer())
    reply = connection.call(
        HANDSHAKE,
        write_hello(hello),
        operation="handshake",
        timeout=destination.connect_seconds,
    )
    welcome, contract = read_welcome(reply)
    edition = accept(welcome, declared=destination.declared_edition)
    if contract is None:
        raise ProtocolException(f"the server at {connection.address} sent no contract")
    if contract.num_envs > 1 and not destination.many:
        raise ConfigurationError(
            f"{connection.address} serves {contract.num_envs} environments at once",
            code=MANY_LANES,
            hint="RemoteEnv drives one; RemoteVectorEnv drives all of them.",
        )
    _check_identity(contract, endpoint, destination)
    name = endpoint.environment_name or contract.id
    identity = EnvironmentIdentity(name, endpoint.version, contract.digest)
    return Dialled(connection, contract, welcome, edition, identity, endpoint, destination.lane)


def _check_identity(contract: EnvContract, endpoint: Endpoint, destination: Destination) -> None:
    before = destination.contract
    expected = destination.expected_digest or endpoint.contract_digest
    if expected is None and before is not None:
        expected = before.digest
    if expected is None or expected == contract.digest:
        return
    known = endpoint.contract if endpoint.contract is not None else None
    if known is None and before is not None and before.digest == expected:
        known = before.to_dict()
    differences = () if known is None else contract_differences(known, contract.to_dict())
    name = endpoint.environment_name or contract.id
    version = "" if endpoint.version is None else f"@{endpoint.version}"
    what = f" (differs in {', '.join(differences)})" if differences else ""
    raise IdentityError(
        f"what is served at {endpoint.address} is not {name}{version}: its contract digest is "
        f"{contract.digest}, expected was {expected}{what}",
        environment=name,
        version=endpoint.version,
        expected=expected,
        actual=contract.digest,
        differences=differences,
        hint="The environment behind the name was changed; register it as a new version.",
    )


def _named(address: Any) -> str | Endpoint | None:  # Any: anything with an address
    if address is None or isinstance(address, str | Endpoint):
        return address
    found: object = getattr(address, "address", None)
    if isinstance(found, str):
        return found
    raise AddressError(
        f"{address!r} is not an address and has none",
        hint="Give tcp://HOST:PORT, unix:///PATH, rleaas://NAME, an Endpoint, or a server.",
    )

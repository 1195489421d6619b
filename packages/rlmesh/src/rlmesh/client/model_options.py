"""What every client of a served model can be told about connecting."""

from __future__ import annotations

from rlcore import AddressError, Credential, Secret

from rlmesh.client.arguments import checked_seconds, checked_wait
from rlmesh.client.dialling import Destination, destination_of
from rlmesh.client.trust import TlsOption
from rlmesh.workflow import chosen_edition


def model_destination(
    address: object,
    *,
    host: str | None,
    port: int | None,
    path: str | None,
    transport: str | None,
    token: str | Secret | None,
    credential: Credential | None,
    tls: TlsOption,
    connect_timeout_seconds: float | None,
    wait_for_server_seconds: float,
    workflow_edition: str | None,
) -> Destination:
    """Return where a served model is; nothing is dialled.

    Raises:
        AddressError: the address cannot be understood, or names no server.
        ConfigurationError: an option is wrong.
    """
    destination = destination_of(
        address,
        host=host,
        port=port,
        path=path,
        transport=transport,
        token=token,
        credential=credential,
        expected_digest=None,
        declared_edition=chosen_edition(keyword=workflow_edition),
        connect_seconds=checked_seconds("connect_timeout_seconds", connect_timeout_seconds),
        wait_seconds=checked_wait(wait_for_server_seconds),
        tls=tls,
    )
    if destination.is_resolved:
        raise AddressError(
            f"{destination.target!r} names an environment, and models are dialled where they are",
            hint="Give tcp://HOST:PORT, unix:///PATH, or a ModelServer.",
        )
    return destination

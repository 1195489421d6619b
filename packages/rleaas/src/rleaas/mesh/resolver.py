"""The resolver of `rleaas://NAME[@VERSION]`, found by rlcore through its entry point."""

from __future__ import annotations

from rlcore import Endpoint, EnvironmentURI

from rleaas.client import Client
from rleaas.mesh.connect import endpoint_of


def resolve(uri: str, *, timeout: float | None = None) -> Endpoint:
    """Return where the environment that `uri` names is served, with a token for it.

    The platform and the key are those of the environment variables or the profile, as for a
    `Client` without arguments.

    Args:
        uri: `rleaas://NAME`, or `rleaas://NAME@VERSION` for an older version.
        timeout: seconds for all of it; None allows what the client's settings do.

    Raises:
        AddressError: it is not such a URI.
        EnvironmentNotFound: there is no such environment or version.
        EnvironmentFailed: it does not come up.
        PlatformUnreachable: nobody answers at the base URL.
    """
    wanted = EnvironmentURI.parse(uri)
    with Client() as client:
        grant = client.Environment.endpoint(wanted.name, wanted.version, timeout=timeout)
    return endpoint_of(grant)

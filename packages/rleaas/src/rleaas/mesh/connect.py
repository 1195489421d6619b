"""From what the platform hands out to an environment that can be stepped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore import ANONYMOUS, Bearer, Endpoint, MissingDependencyError, Secret

from rleaas.models import EndpointGrant

if TYPE_CHECKING:
    import rlmesh.numpy


def endpoint_of(grant: EndpointGrant) -> Endpoint:
    """Return the grant as the value that the data plane dials."""
    return Endpoint(
        grant.address,
        credential=ANONYMOUS if grant.token is None else Bearer(Secret(grant.token)),
        environment_id=grant.environment_id,
        environment_name=grant.environment_name,
        version=grant.version,
        contract_digest=grant.contract_digest,
        expires_at=None if grant.expires_at is None else grant.expires_at.timestamp(),
        contract=grant.contract,
    )


def dial(
    grant: EndpointGrant,
    *,
    connect_timeout_seconds: float | None,
    request_timeout_seconds: float | None,
) -> rlmesh.numpy.RemoteEnv:
    """Return the environment, connected, its contract checked against the registered one.

    Raises:
        IdentityError: what is served is not what was registered.
        MissingDependencyError: rlmesh is not installed.
    """
    try:
        import rlmesh.numpy
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"connecting to environment {grant.environment_name!r} needs {error.name!r}, which is "
            "not installed",
            hint="Install the extra: pip install 'rleaas[mesh]'",
        ) from error
    return rlmesh.numpy.RemoteEnv(
        endpoint_of(grant),
        connect_timeout_seconds=connect_timeout_seconds,
        request_timeout_seconds=request_timeout_seconds,
    )

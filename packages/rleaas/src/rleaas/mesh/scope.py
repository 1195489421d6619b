"""`rleaas://` addresses that a chosen client resolves, instead of one made from settings."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from rlcore import Endpoint, EnvironmentURI
from rlcore.resolvers import register, unregister

from rleaas.client import Client
from rleaas.mesh.connect import endpoint_of

SCHEME = "rleaas"


@contextmanager
def resolving_with(client: Client) -> Generator[None]:
    """Let `client` resolve the `rleaas://` addresses of this process until the block ends."""

    def resolve(uri: str, *, timeout: float | None = None) -> Endpoint:
        wanted = EnvironmentURI.parse(uri)
        grant = client.Environment.endpoint(wanted.name, wanted.version, timeout=timeout)
        return endpoint_of(grant)

    register(SCHEME, resolve)
    try:
        yield
    finally:
        unregister(SCHEME)

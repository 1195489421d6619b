"""From an address of any scheme to an endpoint, through what is installed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol, cast

from rlcore.endpoint import Endpoint
from rlcore.errors import AddressError, ConfigurationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

GROUP = "rlcore.resolvers"
PROVIDERS = {"rleaas": 'pip install "rleaas[mesh]"'}


class Resolver(Protocol):
    """Turns an address of one scheme into an endpoint."""

    def __call__(self, uri: str, *, timeout: float | None) -> Endpoint:
        """Return where the thing named by `uri` is served, within `timeout` seconds."""
        ...


_registered: dict[str, Resolver] = {}
_lock = threading.Lock()


def resolve(address: str, *, timeout: float | None = None) -> Endpoint:
    """Return the endpoint that an address such as `rleaas://CartPole-Prod@3` stands for.

    Raises:
        AddressError: it has no scheme, or nothing installed resolves its scheme.
        Error: the resolver's own failure, such as `EnvironmentNotFound`.
    """
    scheme, separator, _ = address.partition("://")
    if not separator or not scheme:
        raise AddressError(
            f"{address!r} has no scheme", hint="Write SCHEME://..., such as rleaas://NAME."
        )
    return _find(scheme.lower(), address)(address, timeout=timeout)


def register(scheme: str, resolver: Resolver) -> None:
    """Use a resolver for a scheme in this process; it goes before one that is installed."""
    with _lock:
        _registered[scheme.lower()] = resolver


def unregister(scheme: str) -> None:
    """Forget the resolver that `register` gave to a scheme."""
    with _lock:
        _registered.pop(scheme.lower(), None)


def schemes() -> tuple[str, ...]:
    """Return the schemes that can be resolved here, sorted."""
    return tuple(sorted({*_registered, *(point.name.lower() for point in _installed())}))


def _installed() -> EntryPoints:
    # Costly to import, and only an address of a foreign scheme needs it.
    from importlib import metadata

    return metadata.entry_points(group=GROUP)


def _find(scheme: str, address: str) -> Resolver:
    with _lock:
        if scheme in _registered:
            return _registered[scheme]
    for point in _installed():
        if point.name.lower() == scheme:
            return _load(point)
    provider = PROVIDERS.get(scheme)
    known = ", ".join(schemes()) or "none"
    raise AddressError(
        f"nothing installed resolves the scheme {scheme!r} of {address!r} (resolvable: {known})",
        hint=f"Install it: {provider}" if provider else "Check the address.",
    )


def _load(point: EntryPoint) -> Resolver:
    try:
        loaded: object = point.load()
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"the resolver of {point.name!r} cannot be loaded from {point.value!r}: {error}",
            hint=f"Reinstall it: {PROVIDERS.get(point.name.lower(), 'see its documentation')}",
        ) from error
    if not callable(loaded):
        raise ConfigurationError(
            f"the resolver of {point.name!r}, {point.value!r}, is not callable",
            hint="Name a function resolve(uri, *, timeout) in the entry point.",
        )
    return cast("Resolver", loaded)

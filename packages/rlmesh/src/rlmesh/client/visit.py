"""A look at a server: who it is, what it serves, what it is doing; no session is opened."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self, Unpack

from rlcore import EnvironmentIdentity, UnsupportedError

from rlmesh.client.options import ConnectOptions, open_link
from rlmesh.codec import NATIVE
from rlmesh.protocol.handshake import INSPECT as OFFERS_INSPECT
from rlmesh.specs import EnvContract
from rlmesh.transport.methods import INSPECT
from rlmesh.transport.ops import read_status, write_inspect


class Visit:
    """A visit to a served environment, of one lane or many; it takes nobody's place.

    Args:
        address: as a `RemoteEnv` takes it.
        **options: how to connect; see `ConnectOptions`.

    Raises:
        Error: as a `RemoteEnv` raises it.
    """

    def __init__(self, address: object, **options: Unpack[ConnectOptions]) -> None:
        self._link = open_link(address, options, NATIVE, many=True)

    @property
    def address(self) -> str:
        """The address that was dialled."""
        return str(self._link.wires.dialled.connection.address)

    @property
    def env_contract(self) -> EnvContract:
        """What the server promises about the environment."""
        return self._link.contract

    @property
    def identity(self) -> EnvironmentIdentity:
        """Which environment it is."""
        return self._link.identity

    @property
    def software(self) -> str:
        """What the server says it is: `rlmesh` and its version."""
        peer = self._link.wires.dialled.welcome.peer
        version = "" if peer is None else peer.package_version
        return f"rlmesh {version}".strip()

    def status(self, *, timeout: float | None) -> dict[str, Any]:  # Any: plain data, by name
        """Return what the server is doing: what its `EnvServer.inspect()` returns.

        Args:
            timeout: how long it may take in seconds; None: no limit.

        Raises:
            UnsupportedError: it does not tell, as a published server or by its owner's wish.
            AccessDenied: the token was refused.
            CallTimeout: it does not answer.
            TransportError: the connection was lost.
        """
        dialled = self._link.wires.dialled
        if not dialled.welcome.offers(OFFERS_INSPECT):
            raise UnsupportedError(
                f"the server at {self.address} ({self.software}) does not tell about its sessions",
                code="not_inspectable",
                hint="It is not of this project, or it was started with inspectable=False.",
            )
        reply = dialled.connection.call(
            INSPECT, write_inspect(), operation="inspect", timeout=timeout
        )
        return read_status(reply)

    def close(self) -> None:
        """End the visit."""
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

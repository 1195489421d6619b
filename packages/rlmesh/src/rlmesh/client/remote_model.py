"""A served model, as a client has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Self

from rlcore import Credential, Endpoint, Secret

from rlmesh.backends.frameworks import FrameworkName
from rlmesh.client.arguments import checked_seconds, not_copied
from rlmesh.client.model_link import ModelLink
from rlmesh.client.model_options import model_destination
from rlmesh.client.options import CONNECT_SECONDS, REQUEST_SECONDS
from rlmesh.client.remote_policy import RemotePolicy
from rlmesh.client.trust import TlsOption

if TYPE_CHECKING:
    from rlmesh.runs.results import RunResult
    from rlmesh.runs.session import Session


class RemoteModel:
    """A model that is served somewhere, by `ModelServer`, `Model.serve` or a published server.

    It takes a model's place: `rlmesh.run(RemoteModel(address), env)` drives environments in this
    process, served ones, and several lanes at once. Making one dials nothing; each run and session
    has a connection of its own. Actions are plain Python and `Tensor`; those of
    `rlmesh.numpy.RemoteModel` are NumPy values, and so on.

    Args:
        address: `tcp://HOST:PORT`, `HOST:PORT`, `unix:///PATH`, or anything with an `address`, such
            as a `ModelServer`.
        host: the host, instead of an address.
        port: the port, instead of an address.
        path: the socket file, instead of an address.
        transport: `tcp` or `unix`, where the others leave it open.
        connect_timeout_seconds: how long the handshake may take; None or 0: no limit.
        request_timeout_seconds: how long a prediction may take; None or 0: no limit.
        wait_for_server_seconds: how long to keep trying while nothing answers; 0 fails at once.
        token: what to show to a server that asks for a token; by default what RLMESH_TOKEN holds.
        credential: the same, as a credential.
        tls: as a `RemoteEnv` takes it.
        workflow_edition: the edition that the caller was written for.

    Raises:
        AddressError: the address cannot be understood.
        ConfigurationError: an option is wrong.
    """

    framework: ClassVar[FrameworkName] = "native"

    def __init__(
        self,
        address: object = None,
        *,
        host: str | None = None,
        port: int | None = None,
        path: str | None = None,
        transport: str | None = None,
        connect_timeout_seconds: float | None = CONNECT_SECONDS,
        request_timeout_seconds: float | None = REQUEST_SECONDS,
        wait_for_server_seconds: float = 0.0,
        token: str | Secret | None = None,
        credential: Credential | None = None,
        tls: TlsOption = None,
        workflow_edition: str | None = None,
    ) -> None:
        self._destination = model_destination(
            address,
            host=host,
            port=port,
            path=path,
            transport=transport,
            token=token,
            credential=credential,
            tls=tls,
            connect_timeout_seconds=connect_timeout_seconds,
            wait_for_server_seconds=wait_for_server_seconds,
            workflow_edition=workflow_edition,
        )
        self._request_seconds = checked_seconds("request_timeout_seconds", request_timeout_seconds)

    @property
    def address(self) -> str:
        """Where the model is served."""
        target = self._destination.target
        return target.address if isinstance(target, Endpoint) else target

    def policy(
        self,
        *,
        execution_horizon: int = 1,
        prefetch_lead: int = 0,
        instruction: str | None = None,
    ) -> RemotePolicy:
        """Connect, and return what a run or session drives; it has to be closed.

        Args:
            execution_horizon: how many actions of each predicted chunk are used.
            prefetch_lead: ask for the next chunk as soon as at most so many actions of this one
                are left, without waiting for it.
            instruction: what to do, instead of what the environment says.

        Raises:
            ServerUnreachable: nothing answers there.
            AccessDenied: the server refused the token.
            IncompatibleError: the server speaks another protocol.
            UnsupportedError: it serves no model, or takes no instruction.
            CallTimeout: something accepts the connection, and does not answer.
            ConfigurationError: the model's chunks are shorter than the horizon.
        """
        link = ModelLink(self._destination, request_seconds=self._request_seconds)
        try:
            return RemotePolicy(
                link,
                self.framework,
                horizon=execution_horizon,
                lead=prefetch_lead,
                instruction=instruction,
            )
        except BaseException:
            link.close()
            raise

    def run(self, env: object, **options: Any) -> RunResult:  # Any: those of `rlmesh.run`
        """Evaluate this model on an environment: `rlmesh.run(self, env, ...)`."""
        from rlmesh.runs.run import run

        return run(self, env, **options)

    def session(self, env: object, **options: Any) -> Session:  # Any: those of `rlmesh.session`
        """Drive this model on an environment step by step: `rlmesh.session(self, env)`."""
        from rlmesh.runs.session import session

        return session(self, env, **options)

    def shutdown(self, reason: str = "owner shutdown") -> bool:
        """Ask the server to stop; False when it does not let clients do that.

        Raises:
            Error: as `policy`.
        """
        link = ModelLink(self._destination, request_seconds=self._request_seconds)
        try:
            return link.shutdown(reason)
        finally:
            link.close()

    def close(self) -> None:
        """Do nothing: connections belong to runs and sessions, which close theirs."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> Literal[False]:
        return False

    def __reduce__(self) -> NoReturn:
        raise not_copied(self, self.address)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address!r})"

"""Serve a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from rlcore import CallTimeout, ConfigurationError, ModelException, Secret

from rlmesh.server.edition_options import with_edition
from rlmesh.server.lifetime import Lifetime
from rlmesh.server.model_jobs import Chore
from rlmesh.server.model_service import ModelService
from rlmesh.server.options import ServeOptions
from rlmesh.server.protection import TlsOption, access_for, require_protection, tls_for
from rlmesh.server.served_model import ServedModel
from rlmesh.transport.addresses import parse_bind
from rlmesh.transport.limits import allow_files
from rlmesh.transport.model_host import ModelHost


class NotServable(ConfigurationError, TypeError):
    """What was given as a model to serve is none."""

    default_code = "not_a_model"


class ModelServer(Lifetime):
    """Serves a model at one address, to many clients at once.

    The model is always called from one thread of the server's own, one call at a time. With a
    batched corner and `allow_fusion`, observations of different clients that wait together go into
    one call. A client's routes and episodes are its own: one that leaves, or breaks, disturbs no
    other. The address is taken by the constructor; `start`, `serve` or entering the context begins
    to serve.

    Args:
        model: a `Model`, of any framework.
        address: `tcp://HOST:PORT`, `HOST:PORT`, a port, or `unix:///PATH`; by default a free port
            on the loopback interface.
        host: the host, instead of an address.
        port: the port, instead of an address.
        path: the socket file, instead of an address.
        transport: `tcp` or `unix`, where `host`, `port` or `path` leave it open.
        options: limits; those about lanes, leases and processes are for environments.
        close_model_on_shutdown: whether `close` of the model is called when the server stops.
        token: what clients have to show; by default what RLMESH_TOKEN holds.
        token_key: the key of the signed tokens that clients may show instead.
        token_subject: the subject that signed tokens must be for; None: any.
        tls: as `EnvServer` takes it.
        allow_insecure: whether other machines may reach it without a token and without TLS.
        workflow_edition: the edition the model was written for; see `rlmesh.workflow`.
        peer_extra: what clients are told about the server at their handshakes, beside the rest; it
            may grow while the server runs.

    Raises:
        AddressError: the address cannot be understood.
        BindError: the address is taken or not allowed.
        ConfigurationError: it is public and has neither token nor TLS, or an option is wrong.
        NotServable: what was given is no model.
    """

    def __init__(
        self,
        model: object,
        address: str | None = None,
        *,
        host: str | None = None,
        port: int | None = None,
        path: str | None = None,
        transport: str | None = None,
        options: ServeOptions | None = None,
        close_model_on_shutdown: bool = True,
        token: str | Secret | None = None,
        token_key: str | Secret | None = None,
        token_subject: str | None = None,
        tls: TlsOption = None,
        allow_insecure: bool = False,
        workflow_edition: str | None = None,
        peer_extra: Mapping[str, str] | None = None,
    ) -> None:
        said: object = getattr(model, "workflow_edition", None)
        self._options = with_edition(
            options or ServeOptions(), workflow_edition, said if isinstance(said, str) else None
        )
        if self._options.isolation != "thread":
            raise ConfigurationError(
                f"isolation is {self._options.isolation!r}: a model has one process, the server's",
                hint="Leave it out; it is for environments.",
            )
        self._model = _served(model)
        place = parse_bind(address, host=host, port=port, path=path, transport=transport)
        access = access_for(token, token_key, token_subject)
        self._tls = tls_for(tls, place)
        if not allow_insecure:
            require_protection(place, access, self._tls)
        allow_files(self._options.max_sessions)
        self._closes_model = close_model_on_shutdown
        self._be_born()
        self._service = ModelService(
            self._model,
            options=self._options,
            may_be_stopped=self._may_be_stopped,
            stop=self._shut_down_quietly,
            extra=peer_extra or {},
        )
        self._host = ModelHost(
            place,
            self._service,
            access=access,
            max_sessions=self._options.max_sessions,
            message_limit=self._options.max_message_bytes,
            tls=self._tls,
            inspect=self._service.status if self._options.inspectable else None,
        )

    @property
    def address(self) -> str:
        """Where clients dial, with the port that was taken."""
        return str(self._host.address)

    @property
    def model_name(self) -> str:
        """What the model is called."""
        return self._model.name

    def inspect(self) -> dict[str, object]:
        """Return what the server is doing, as plain data.

        `model`, `digest` and `version` say what is served; `uptime_seconds` how long; `places` how
        many clients there may be and `places_taken` how many there are. `sessions` is a list of
        what each is doing; `total` counts what all have done: requests, calls of the model,
        observations (more than the calls where several went into one), faults by code.
        """
        return self._service.status()

    def __repr__(self) -> str:
        return f"ModelServer({self._model.name!r}, address={self.address!r})"

    def _open(self) -> None:
        self._service.driver.start()
        self._host.start()

    def _idle_since(self) -> float:
        return self._service.idle_since()

    def _end(self) -> None:
        """Hold nothing else."""

    def _drain(self) -> None:
        self._host.refuse_new_calls()
        if self._started:
            self._wait_while(self._service.busy, self._options.drain_seconds)
        self._host.stop()
        failures: list[Exception] = []
        driver = self._service.driver
        for session in self._service.sessions():
            driver.put(Chore(session.part))
        if self._closes_model:
            driver.put(Chore(_caught(self._model.close, failures)))
        if not self._started:
            driver.start()
        # In the model's own thread: what it holds may belong to that.
        if not driver.stop(self._options.close_seconds):
            raise CallTimeout(
                f"the model {self._model.name!r} served at {self.address} is still being called, "
                "or does not close",
                operation="shutdown",
                seconds=self._options.drain_seconds + self._options.close_seconds,
                layer="shutdown",
                hint="The model hangs; its thread ends with the process.",
            )
        if failures:
            error = failures[0]
            raise ModelException(
                f"the model {self._model.name!r} failed to close: {type(error).__name__}: {error}",
                operation="close",
                model=self._model.name,
                address=self.address,
                remote_type=type(error).__name__,
            ) from error


def _served(model: object) -> ServedModel:
    found: Any = getattr(model, "as_served", None)  # Any: a Model is made above this room
    if isinstance(model, type) or not callable(found):
        raise NotServable(
            f"{model!r} is not a Model",
            hint="Wrap it: rlmesh.numpy.Model(...) for numpy arrays, or rlmesh.Model(...).",
        )
    return cast("ServedModel", found())


def _caught(action: Callable[[], None], failures: list[Exception]) -> Callable[[], None]:
    def perform() -> None:
        try:
            action()
        except Exception as error:
            failures.append(error)

    return perform

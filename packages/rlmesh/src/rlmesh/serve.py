"""Serve an environment or a model from the command line: `python -m rlmesh.serve CartPole-v1`."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

from rlcore import ConfigurationError, Error
from rlcore.command_line import Misuse
from rlcore.environ import snapshot
from rlcore.log import logger

from rlmesh import _began
from rlmesh.server.command import PROGRAM, TLS_NAMES, Command, make_parser, read_command
from rlmesh.server.env_server import EnvServer
from rlmesh.server.factories import declared
from rlmesh.server.lifetime import CALM_SECONDS, Lifetime
from rlmesh.server.protection import tls_from_texts
from rlmesh.server.sources import (
    FILES,
    GYM,
    Factory,
    given_factory,
    load_factory,
    look_here,
    shared_or_not,
)
from rlmesh.server.startup import STARTUP
from rlmesh.server.vector_sources import many_of
from rlmesh.transport.addresses import LOOPBACK, TcpAddress, parse_bind
from rlmesh.transport.tls import ServerTls

if TYPE_CHECKING:
    from rlmesh.models.model import Model

PARENT_GLANCE_SECONDS = 0.5
SIGNAL_GLANCE_SECONDS = 0.1
log = logger("rlmesh", "server")
FAILED, MISUSED, INTERRUPTED = 1, 2, 130


def main(argv: Sequence[str] | None = None, *, prog: str = PROGRAM) -> int:
    """Serve until SIGTERM or Ctrl-C and return the exit code.

    0 after SIGTERM, 130 after Ctrl-C (0 where it is a model), 1 when it cannot serve, 2 when the
    command line is wrong.
    """
    parser = make_parser(prog)
    arguments = parser.parse_args(argv)
    STARTUP.begin()
    STARTUP.mark("process", _began.AT)
    STARTUP.mark("imports")
    look_here()
    try:
        command = read_command(arguments, snapshot())
        return serve(command)
    except KeyboardInterrupt:
        # While it starts; once it serves, the signal ends it in good order.
        sys.stderr.write("\ninterrupted before anything was served\n")
        return INTERRUPTED
    except Misuse as error:
        parser.error(str(error))
    except Error as error:
        # One line: whoever started this shows the last one as the reason.
        sys.stderr.write(f"error: {' '.join(str(error).split())}\n")
        return FAILED


def startup_marks() -> dict[str, str]:
    """Return how far the start of this process's serve command has come.

    The keys are `rlmesh.startup.<phase>_ms` for the phases `process` (Python runs), `imports`,
    `env` or `model`, and `listen` that have passed; the values are milliseconds since the process
    began. Clients are told them at their handshakes. Empty where no such command runs.
    """
    return STARTUP.marks()


def serve_env(
    source: object,
    address: str | None = None,
    /,
    *,
    shared: bool = False,
    num_envs: int | None = None,
    vectorization_mode: str | None = None,
    framework: str | None = None,
    device: object = None,
    workflow_edition: str | None = None,
    **make_kwargs: object,
) -> None:
    """Serve the environments that a source makes until Ctrl-C.

    Args:
        source: a gymnasium id or `module:attribute` (see `rlmesh.server.sources`), an `EnvFactory`
            as class or instance, or any other function or class that makes environments.
        address: where; by default a free port on the loopback interface.
        shared: whether all clients use one environment, one after another.
        num_envs: how many environments each client gets, as lanes; see `EnvServer`.
        vectorization_mode: what steps them; for a gymnasium id also `vector_entry_point`. With
            `async`, a script has to call this under `if __name__ == "__main__":`.
        framework: whose arrays actions arrive as; see `EnvServer`.
        device: where they are put.
        workflow_edition: the edition the environment was written for.
        **make_kwargs: what each environment is made with.

    Raises:
        Error: it cannot be served.
    """
    many = many_of(num_envs, vectorization_mode)
    factory: Factory
    if isinstance(source, str):
        factory = load_factory(source, make_kwargs, many)
    else:
        factory = given_factory(source, make_kwargs, many)
    with shared_or_not(factory, shared=shared) as source_of_envs:
        EnvServer(
            source_of_envs,
            address,
            framework=framework or declared(factory, "framework"),
            device=device,
            workflow_edition=workflow_edition,
        ).serve()


def serve_model(
    source: object,
    address: str | None = None,
    /,
    *,
    binding: Mapping[str, object] | None = None,
    workflow_edition: str | None = None,
) -> None:
    """Serve a model until Ctrl-C or SIGTERM; it is closed then.

    Args:
        source: `module:attribute` or the file of a policy (see `rlmesh.models.sources`), a `Model`
            as class or instance, or a policy or function, which is wrapped in the numpy one.
        address: where; by default a free port on the loopback interface.
        binding: what a class of models is loaded with (`from_config`).
        workflow_edition: the edition that the model was written for, instead of its own.

    Raises:
        ParamError: the binding is not what the parameters can be; nothing was loaded.
        Error: it cannot be loaded or served.
    """
    from rlmesh.models.sources import given_model, model_behind

    model: Model[Any, Any]  # Any: whatever it is for
    if isinstance(source, str):
        # With `insist`, what is no model raises.
        model = cast("Model[Any, Any]", model_behind(source, binding or {}, insist=True))
    else:
        model = given_model(source, binding or {})
    model.serve(address, workflow_edition=workflow_edition, peer_extra=_description(model))


def serve(command: Command) -> int:
    """Serve and return the exit code.

    Raises:
        Misuse: options that are about environments are given beside a model.
        Error: it cannot be served.
    """
    if command.kind != "env" and not _is_surely_an_id(command.source):
        # Few of those who serve environments need what loads models.
        from rlmesh.models.sources import model_behind

        model = model_behind(command.source, command.kwargs, insist=command.kind == "model")
        if model is not None:
            STARTUP.mark("model")
            return _serve_model(command, model)
    factory = load_factory(command.source, command.kwargs, command.many)
    with shared_or_not(factory, shared=command.shared) as source:
        return _serve(command, source, command.framework or declared(factory, "framework"))


def _serve(command: Command, source: object, framework: str | None) -> int:
    server = EnvServer(
        source,
        command.address,
        options=command.options,
        framework=framework,
        device=command.device,
        token=command.token,
        token_key=command.token_key,
        tls=_tls(command),
        allow_insecure=command.allow_insecure,
        metrics_port=command.metrics_port,
        peer_extra=(marks := dict[str, str]()),
    )
    STARTUP.mark("listen")
    marks.update(STARTUP.marks())
    return _serve_until_told(command, server, server.env_contract.id)


def _serve_model(command: Command, model: Model[Any, Any]) -> int:  # Any: whatever it is for
    from rlmesh.server.model_server import ModelServer

    try:
        if command.env_only:
            raise Misuse(
                f"{', '.join(command.env_only)}: given beside the model {command.source!r}",
                hint="They are for environments; leave them out.",
            )
        server = ModelServer(
            model,
            command.address,
            options=command.options,
            token=command.token,
            token_key=command.token_key,
            tls=_tls(command),
            allow_insecure=command.allow_insecure,
            peer_extra=(about := _description(model)),
        )
    except BaseException:
        model.close()
        raise
    STARTUP.mark("listen")
    about.update(STARTUP.marks())
    if model.spec is None:
        sys.stderr.write(
            f"note: the model {model.name} has no spec: observations and actions are used as "
            "they are\n"
        )
    _serve_until_told(command, server, f"model {model.name}")
    return 0


def _description(model: Model[Any, Any]) -> dict[str, str]:  # Any: as above
    from rlmesh._describe import describe_json
    from rlmesh.authoring.keys import DESCRIBE_METADATA_KEY

    try:
        return {DESCRIBE_METADATA_KEY: describe_json(type(model), kind="model")}
    except Error as error:
        log.warning("the model %s cannot be described to clients: %s", model.name, error)
        return {}


def _is_surely_an_id(source: str) -> bool:
    return source.startswith(GYM) or (":" not in source and not source.lower().endswith(FILES))


def _serve_until_told(command: Command, server: Lifetime, name: str) -> int:
    stop = threading.Event()
    received: list[int] = []

    def on_signal(number: int, _: FrameType | None) -> None:
        # Setting the event here could deadlock: this runs inside the wait below, which locks it.
        received.append(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    if command.exit_with_parent:
        watched = (os.getppid(), stop, server, command.linger)
        threading.Thread(target=_watch_parent, args=watched, daemon=True).start()
    server.start()
    threading.Thread(target=_follow, args=(server, stop), daemon=True).start()
    sys.stdout.write(f"serving {name} at {server.address}\n")
    sys.stdout.flush()
    if server.tls_fingerprint is not None:
        sys.stdout.write(f"tls fingerprint {server.tls_fingerprint}\n")
        sys.stdout.flush()
    metrics = getattr(server, "metrics_address", None)
    if metrics is not None:
        sys.stdout.write(f"metrics at {metrics}\n")
        sys.stdout.flush()
    if command.ready_fd is not None:
        _announce(command.ready_fd, server.address, server.tls_fingerprint)
    # A signal that comes just before a wait does not end it: an endless one would miss it.
    while not (received or stop.wait(SIGNAL_GLANCE_SECONDS)):
        pass
    server.shutdown()
    return INTERRUPTED if signal.SIGINT in received else 0


def _tls(command: Command) -> ServerTls | None:
    place = parse_bind(command.address)
    return tls_from_texts(
        command.tls,
        command.tls_key,
        command.tls_client_ca,
        host=place.host if isinstance(place, TcpAddress) else LOOPBACK,
        names=TLS_NAMES,
    )


def _announce(descriptor: int, address: str, fingerprint: str | None) -> None:
    line = address if fingerprint is None else f"{address} {fingerprint}"
    try:
        os.write(descriptor, f"{line}\n".encode())
        os.close(descriptor)
    except OSError as error:
        raise ConfigurationError(
            f"--ready-fd {descriptor} cannot be written to: {error.strerror}",
            hint="Pass an open descriptor (pass_fds).",
        ) from error


def _watch_parent(
    parent: int, stop: threading.Event, server: Lifetime, linger: float | None
) -> None:
    # An orphan gets another parent; asking now and then works on every system.
    while os.getppid() == parent:
        if stop.wait(PARENT_GLANCE_SECONDS):
            return
    gone = used = time.monotonic()
    # A client between two sessions may open its next one.
    while linger is not None and time.monotonic() - gone < linger:
        if server.in_use:
            used = time.monotonic()
        elif time.monotonic() - used > CALM_SECONDS:
            break
        if stop.wait(PARENT_GLANCE_SECONDS):
            return
    stop.set()


def _follow(server: Lifetime, stop: threading.Event) -> None:
    # It may stop by itself: a client's request, or the idle timeout.
    server.wait()
    stop.set()


if __name__ == "__main__":
    sys.exit(main())

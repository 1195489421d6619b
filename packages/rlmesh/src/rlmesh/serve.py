"""Serve an environment from the command line: `python -m rlmesh.serve CartPole-v1`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType

from rlcore import ConfigurationError, Error
from rlcore.command_line import Misuse
from rlcore.environ import snapshot

from rlmesh.server.command import PROGRAM, TLS_NAMES, Command, make_parser, read_command
from rlmesh.server.env_server import EnvServer
from rlmesh.server.environments import make_env
from rlmesh.server.protection import tls_from_texts
from rlmesh.server.sources import load_factory, look_here
from rlmesh.server.vector_sources import many_of
from rlmesh.transport.addresses import LOOPBACK, TcpAddress, parse_bind
from rlmesh.transport.tls import ServerTls

PARENT_GLANCE_SECONDS = 0.5
SIGNAL_GLANCE_SECONDS = 0.1
FAILED, MISUSED, INTERRUPTED = 1, 2, 130


def main(argv: Sequence[str] | None = None, *, prog: str = PROGRAM) -> int:
    """Serve until SIGTERM or Ctrl-C and return the exit code.

    0 after SIGTERM, 130 after Ctrl-C, 1 when it cannot serve, 2 when the command line is wrong.
    """
    parser = make_parser(prog)
    arguments = parser.parse_args(argv)
    look_here()
    try:
        command = read_command(arguments, snapshot())
        return serve(command)
    except Misuse as error:
        parser.error(str(error))
    except Error as error:
        # One line: whoever started this shows the last one as the reason.
        sys.stderr.write(f"error: {' '.join(str(error).split())}\n")
        return FAILED


def serve_env(
    source: str,
    address: str | None = None,
    /,
    *,
    shared: bool = False,
    num_envs: int | None = None,
    vectorization_mode: str | None = None,
    framework: str | None = None,
    device: object = None,
    **make_kwargs: object,
) -> None:
    """Serve the environment that a source names until Ctrl-C.

    Args:
        source: a gymnasium id or `module:attribute`; see `rlmesh.server.sources`.
        address: where; by default a free port on the loopback interface.
        shared: whether all clients use one environment, one after another.
        num_envs: how many environments each client gets, as lanes; see `EnvServer`.
        vectorization_mode: what steps them; for a gymnasium id also `vector_entry_point`. With
            `async`, a script has to call this under `if __name__ == "__main__":`.
        framework: whose arrays actions arrive as; see `EnvServer`.
        device: where they are put.
        **make_kwargs: what each environment is made with.

    Raises:
        Error: it cannot be served.
    """
    factory = load_factory(source, make_kwargs, many_of(num_envs, vectorization_mode))
    source_of_envs = make_env(factory) if shared else factory
    EnvServer(source_of_envs, address, framework=framework, device=device).serve()


def serve(command: Command) -> int:
    """Serve and return the exit code.

    Raises:
        Error: it cannot be served.
    """
    factory = load_factory(command.source, command.kwargs, command.many)
    server = EnvServer(
        make_env(factory) if command.shared else factory,
        command.address,
        options=command.options,
        framework=command.framework,
        device=command.device,
        token=command.token,
        token_key=command.token_key,
        tls=_tls(command),
        allow_insecure=command.allow_insecure,
        metrics_port=command.metrics_port,
    )
    stop = threading.Event()
    received: list[int] = []

    def on_signal(number: int, _: FrameType | None) -> None:
        # Setting the event here could deadlock: this runs inside the wait below, which locks it.
        received.append(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    if command.exit_with_parent:
        threading.Thread(target=_watch_parent, args=(os.getppid(), stop), daemon=True).start()
    server.start()
    threading.Thread(target=_follow, args=(server, stop), daemon=True).start()
    sys.stdout.write(f"serving {server.env_contract.id} at {server.address}\n")
    sys.stdout.flush()
    if server.tls_fingerprint is not None:
        sys.stdout.write(f"tls fingerprint {server.tls_fingerprint}\n")
        sys.stdout.flush()
    if server.metrics_address is not None:
        sys.stdout.write(f"metrics at {server.metrics_address}\n")
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


def _watch_parent(parent: int, stop: threading.Event) -> None:
    # An orphan gets another parent; asking now and then works on every system.
    while not stop.wait(PARENT_GLANCE_SECONDS):
        if os.getppid() != parent:
            stop.set()


def _follow(server: EnvServer, stop: threading.Event) -> None:
    # It may stop by itself: a client's request, or the idle timeout.
    server.wait()
    stop.set()


if __name__ == "__main__":
    sys.exit(main())

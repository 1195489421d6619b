"""What a server is asked for on a command line and in variables."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast

from rlcore import AddressError, ConfigurationError
from rlcore.command_line import Misuse, Parser
from rlcore.environ import variable

from rlmesh.backends.frameworks import framework_named
from rlmesh.server.framework import DEVICE_VARIABLE, FRAMEWORK_VARIABLE
from rlmesh.server.option_checks import require_port
from rlmesh.server.options import ISOLATIONS, LEASE_SECONDS, MAX_SESSIONS, ServeOptions
from rlmesh.server.protection import require_tls_texts
from rlmesh.server.vector_sources import MODES, Many, many_of
from rlmesh.specs import AutoresetMode
from rlmesh.transport.addresses import parse_bind

PROGRAM: Final = "python -m rlmesh.serve"
DEFAULT_ADDRESS: Final = "127.0.0.1:50051"
ENV_ONLY: Final = (
    "num_envs",
    "vectorization_mode",
    "autoreset_mode",
    "shared",
    "framework",
    "device",
    "isolation",
    "lease",
    "no_lanes",
    "lane_port",
    "metrics_port",
)
TLS_NAMES: Final = ("--tls", "--tls-key")


@dataclass(frozen=True, slots=True)
class Command:
    """What the command line and the environment variables ask for."""

    source: str
    kind: Literal["env", "model"] | None  # None: it is told by what the source is
    env_only: tuple[str, ...]  # options that were given and say nothing about a model
    kwargs: Mapping[str, object]
    address: str
    many: Many
    shared: bool
    framework: str | None
    device: str | None
    options: ServeOptions
    token: str | None
    token_key: str | None
    tls: str | None
    tls_key: str | None
    tls_client_ca: str | None
    allow_insecure: bool
    metrics_port: int | None
    ready_fd: int | None
    exit_with_parent: bool
    linger: float | None


def make_parser(prog: str = PROGRAM) -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = Parser(
        prog=prog,
        description="Serve an environment, or a model. Each client gets an environment of its own, "
        "unless --shared; a model is one for all.",
        epilog="RLMESH_TOKEN is what clients must show; RLMESH_TOKEN_KEY checks signed tokens. "
        "RLMESH_SERVE_TLS, RLMESH_SERVE_TLS_KEY and RLMESH_SERVE_TLS_CLIENT_CA stand in for --tls. "
        "RLMESH_ADDRESS, RLMESH_PORT, RLMESH_MAKE_KWARGS, RLMESH_NUM_ENVS, "
        "RLMESH_VECTORIZATION_MODE, RLMESH_FRAMEWORK and RLMESH_DEVICE stand in for the options. "
        "RLMESH_VALIDATION_POLICY says what happens to values out of range: warn (once, in the "
        "info), strict (they are refused) or off.",
    )
    parser.add_argument(
        "source",
        nargs="?",
        help="a gymnasium id (CartPole-v1, gym://CartPole-v1), module:attr of either, or the file "
        "of a policy (policy.zip)",
    )
    parser.add_argument("--env", help="the source, as an environment")
    parser.add_argument("--model", help="the source, as a model")
    parser.add_argument("--address", help=f"tcp://HOST:PORT or unix:///PATH ({DEFAULT_ADDRESS})")
    parser.add_argument("--host", help="the host alone; the port is then --port or 50051")
    parser.add_argument("--port", type=int, help="the port alone, on 127.0.0.1 or --host")
    parser.add_argument(
        "--kwargs-json", help="a JSON object that each environment, or the model, is made with"
    )
    parser.add_argument("--num-envs", type=int, help="how many lanes each client gets (1)")
    parser.add_argument(
        "--vectorization-mode",
        choices=MODES,
        help="what steps the lanes: the server (lanes), gymnasium (sync, async), or the id's own",
    )
    parser.add_argument(
        "--autoreset-mode",
        choices=[mode.value for mode in AutoresetMode],
        help="what happens at the end of a lane's episode",
    )
    parser.add_argument("--shared", action="store_true", help="one environment for all clients")
    parser.add_argument(
        "--framework", help="whose arrays the environment takes: numpy, torch or jax"
    )
    parser.add_argument("--device", help="where torch or jax puts them, such as cuda:0")
    parser.add_argument("--max-sessions", type=int, default=MAX_SESSIONS)
    parser.add_argument(
        "--isolation",
        choices=ISOLATIONS,
        default="thread",
        help="where each client's environment lives: a thread, or a process of its own",
    )
    parser.add_argument(
        "--lease",
        type=float,
        default=LEASE_SECONDS,
        help="how many seconds a session outlives a client that has gone (%(default)g)",
    )
    parser.add_argument(
        "--no-lanes", action="store_true", help="let clients step over gRPC only, which is slower"
    )
    parser.add_argument(
        "--lane-port",
        type=int,
        default=0,
        help="the second port, at which clients step faster than over gRPC (a free one)",
    )
    parser.add_argument(
        "--metrics-port",
        type=int,
        help="a port on 127.0.0.1 where Prometheus can scrape (nowhere; 0: a free one)",
    )
    parser.add_argument(
        "--no-inspect", action="store_true", help="do not let clients see the sessions of others"
    )
    parser.add_argument("--idle-timeout", type=float, help="stop after so many idle seconds")
    parser.add_argument(
        "--drain-timeout", type=float, help="how long a stop waits for running steps (5 s)"
    )
    parser.add_argument(
        "--workflow-edition", help="the edition that what is served was written for"
    )
    parser.add_argument(
        "--allow-remote-shutdown", action="store_true", help="let clients stop the server"
    )
    parser.add_argument(
        "--tls", help="'auto' for a certificate that clients pin, or the file of a certificate"
    )
    parser.add_argument("--tls-key", help="the file of its key (the certificate's)")
    parser.add_argument(
        "--tls-client-ca", help="the file of the CA that has to have signed clients' certificates"
    )
    parser.add_argument(
        "--allow-insecure",
        action="store_true",
        help="let other machines in without a token and without TLS",
    )
    parser.add_argument(
        "--ready-fd",
        type=int,
        help="a descriptor that gets the address, and the fingerprint with --tls, once it serves",
    )
    parser.add_argument(
        "--exit-with-parent", action="store_true", help="stop when the parent process ends"
    )
    parser.add_argument(
        "--linger",
        type=float,
        metavar="SECONDS",
        help="with --exit-with-parent: go on so long at most while clients have sessions",
    )
    return parser


def read_command(arguments: argparse.Namespace, environ: Mapping[str, str]) -> Command:
    """Return what is asked for.

    Raises:
        Misuse: the arguments contradict each other, or one cannot be read.
    """
    sources = [text for text in (arguments.source, arguments.env, arguments.model) if text]
    if len(sources) != 1:
        raise Misuse(
            "name one environment or model", hint="Give a gymnasium id, module:attr, or a file."
        )
    if arguments.shared and arguments.isolation == "process":
        raise Misuse(
            "--shared is given beside --isolation process, which makes one for each client",
            hint="Leave one of them out.",
        )
    if arguments.linger is not None and not (arguments.exit_with_parent and arguments.linger > 0):
        raise Misuse(
            f"--linger {arguments.linger:g} says how long to outlive a parent",
            hint="Give it a number above 0, and --exit-with-parent beside it.",
        )
    try:
        options = ServeOptions(
            allow_remote_shutdown=arguments.allow_remote_shutdown,
            idle_timeout_seconds=arguments.idle_timeout,
            drain_timeout_seconds=arguments.drain_timeout,
            max_sessions=arguments.max_sessions,
            isolation=arguments.isolation,
            lease_seconds=arguments.lease,
            workflow_edition=arguments.workflow_edition,
            lanes=not arguments.no_lanes,
            lane_port=arguments.lane_port,
            inspectable=not arguments.no_inspect,
        )
        if arguments.metrics_port is not None:
            require_port("--metrics-port", arguments.metrics_port)
        require_tls_texts(
            arguments.tls, arguments.tls_key, arguments.tls_client_ca, names=TLS_NAMES
        )
    except ConfigurationError as error:
        raise Misuse(error.message, hint=error.hint) from error
    return Command(
        source=sources[0],
        kind="env" if arguments.env else "model" if arguments.model else None,
        env_only=_env_only(arguments),
        kwargs=_kwargs(arguments.kwargs_json or variable("RLMESH_MAKE_KWARGS", environ)),
        address=_checked(_address(arguments, environ)),
        many=_many(arguments, environ),
        shared=arguments.shared,
        framework=_framework(arguments.framework or variable(FRAMEWORK_VARIABLE, environ)),
        device=arguments.device or variable(DEVICE_VARIABLE, environ),
        options=options,
        token=variable("RLMESH_TOKEN", environ),
        token_key=variable("RLMESH_TOKEN_KEY", environ),
        tls=arguments.tls,
        tls_key=arguments.tls_key,
        tls_client_ca=arguments.tls_client_ca,
        allow_insecure=arguments.allow_insecure,
        metrics_port=arguments.metrics_port,
        ready_fd=arguments.ready_fd,
        exit_with_parent=arguments.exit_with_parent,
        linger=arguments.linger,
    )


def _env_only(arguments: argparse.Namespace) -> tuple[str, ...]:
    given = {name: getattr(arguments, name) for name in ENV_ONLY}
    usual = {"isolation": "thread", "lease": LEASE_SECONDS, "lane_port": 0}
    return tuple(
        f"--{name.replace('_', '-')}"
        for name, value in given.items()
        if value not in (None, False, usual.get(name))
    )


def _many(arguments: argparse.Namespace, environ: Mapping[str, str]) -> Many:
    count: int | None = arguments.num_envs
    named = variable("RLMESH_NUM_ENVS", environ)
    if count is None and named is not None:
        try:
            count = int(named)
        except ValueError as error:
            raise Misuse(f"RLMESH_NUM_ENVS is {named!r}, not a number") from error
    mode = arguments.vectorization_mode or variable("RLMESH_VECTORIZATION_MODE", environ)
    try:
        return many_of(count, mode, arguments.autoreset_mode)
    except ConfigurationError as error:
        raise Misuse(error.message, hint=error.hint) from error


def _address(arguments: argparse.Namespace, environ: Mapping[str, str]) -> str:
    host, port = arguments.host, arguments.port
    if arguments.address and (host is not None or port is not None):
        raise Misuse("--address is given beside --host or --port", hint="Give one or the other.")
    if arguments.address:
        return cast("str", arguments.address)
    if host is None and port is None:
        named = variable("RLMESH_ADDRESS", environ)
        if named is not None:
            return named
    default_host, _, default_port = DEFAULT_ADDRESS.partition(":")
    named_port = variable("RLMESH_PORT", environ) or default_port
    found_host = host or default_host
    bracketed = f"[{found_host}]" if ":" in found_host else found_host
    return f"{bracketed}:{named_port if port is None else port}"


def _checked(address: str) -> str:
    try:
        parse_bind(address)
    except AddressError as error:
        raise Misuse(error.message, hint=error.hint) from error
    return address


def _framework(name: str | None) -> str | None:
    try:
        return None if name is None else framework_named(name)
    except ConfigurationError as error:
        raise Misuse(error.message, hint=error.hint) from error


def _kwargs(text: str | None) -> Mapping[str, object]:
    if text is None:
        return {}
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise Misuse(f"the keyword arguments {text!r} are not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Misuse(f"the keyword arguments {text!r} are not a JSON object")
    return cast("dict[str, object]", value)

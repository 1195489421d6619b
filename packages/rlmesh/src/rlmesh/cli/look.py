"""`rlmesh version | ping`: what is here, and whether something is there."""

import argparse
import json
import math
from collections.abc import Callable
from contextlib import closing
from time import perf_counter
from typing import TYPE_CHECKING

from rlcore.printable import printable

if TYPE_CHECKING:
    from rlmesh.client.visit import Visit

AddParser = Callable[..., argparse.ArgumentParser]
"""`add_parser` of the command tree."""


def add_version(add: AddParser) -> None:
    """Add `rlmesh version`."""
    parser = add("version", help="print the versions")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=version)


def add_ping(add: AddParser) -> None:
    """Add `rlmesh ping`."""
    parser = add("ping", help="shake hands with a served environment")
    add_address(parser)
    parser.set_defaults(command=ping)


def add_wait(parser: argparse.ArgumentParser) -> None:
    """Add `--wait`."""
    parser.add_argument(
        "--wait", type=_seconds, default=0.0, help="seconds to wait for a server to come up (0)"
    )


def add_tls(parser: argparse.ArgumentParser) -> None:
    """Add `--tls`."""
    parser.add_argument(
        "--tls",
        help="whom to trust: the fingerprint that the server prints, the file of a CA, or 'system' "
        "(RLMESH_TLS); RLMESH_TOKEN is the token",
    )


def version(options: argparse.Namespace) -> int:
    """Print the versions of what shapes a run."""
    from rlmesh.runs.provenance import package_versions

    versions = package_versions()
    if options.json:
        print(json.dumps(versions))
    else:
        width = max(map(len, versions))
        print("\n".join(f"{name.ljust(width)}  {number}" for name, number in versions.items()))
    return 0


def ping(options: argparse.Namespace) -> int:
    """Dial, shake hands, and say how long that took."""
    env, took = _dial(options)
    with closing(env):
        if options.json:
            identity = env.identity.to_dict()
            print(json.dumps({"address": env.address, "ms": took, "environment": identity}))
        else:
            print(f"{printable(env.identity)} answers at {env.address} in {took:.1f} ms")
    return 0


def add_address(parser: argparse.ArgumentParser) -> None:
    """Add the address of a server, and how to reach it."""
    parser.add_argument(
        "address", help="tcp://HOST:PORT, HOST:PORT, unix://PATH, or rleaas://NAME[@VERSION]"
    )
    parser.add_argument(
        "--timeout", type=positive_seconds, default=10.0, help="seconds to connect (10)"
    )
    add_wait(parser)
    add_tls(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def _dial(options: argparse.Namespace) -> "tuple[Visit, float]":
    """Dial, and count the milliseconds; loading the client is no part of them."""
    from rlmesh.client.visit import Visit

    started = perf_counter()
    visit = Visit(
        options.address,
        connect_timeout_seconds=options.timeout,
        wait_for_server_seconds=options.wait,
        tls=options.tls,
    )
    return visit, (perf_counter() - started) * 1000


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (seconds >= 0 and math.isfinite(seconds)):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return seconds


def positive_seconds(text: str) -> float:
    """Return a number of seconds from a command line, more than 0."""
    seconds = _seconds(text)
    if seconds == 0:
        raise argparse.ArgumentTypeError("give more than 0 seconds")
    return seconds

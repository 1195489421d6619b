"""`rlmesh bench`: how fast this machine steps an environment behind a process boundary."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from rlcore import ConfigurationError
from rlcore.command_line import Misuse
from rlcore.printable import printable_lines

from rlmesh.cli.look import AddParser, add_tls, positive_seconds
from rlmesh.cli.play import is_address

if TYPE_CHECKING:
    from rlmesh.bench.cells import Carrier, Lane, Subject, Transport

EPILOG = """Servers and clients run in processes of their own, started for each measurement. The
observations that arrive are compared with those of a local copy of the environment. The figures
hold for this machine and its load; compare rows, not machines."""
TARGET_STEPS = 2000


def add_bench(add: AddParser) -> None:
    """Add `rlmesh bench`."""
    parser = add(
        "bench", help="measure how fast environments are stepped on this machine", epilog=EPILOG
    )
    parser.add_argument(
        "target",
        nargs="?",
        help="an address, a gymnasium id, or MODULE:ATTRIBUTE; without it, the reference "
        "environments",
    )
    parser.add_argument(
        "--envs",
        type=_names,
        help="which reference environments: noop,cartpole,image,cameras,vec16,dict",
    )
    parser.add_argument(
        "--lanes",
        type=_names,
        help="what carries steps (local,tcp,grpc): shared memory beside a unix socket, frames on a "
        "second port, gRPC",
    )
    parser.add_argument(
        "--transports", type=_names, help="how a server is dialled: tcp,unix (both)"
    )
    parser.add_argument(
        "--clients", type=_counts, default=[1], help="how many at once, such as 1,4,16 (1)"
    )
    parser.add_argument("--rounds", type=_count, default=3, help="how often each is measured (3)")
    parser.add_argument(
        "--seconds", type=positive_seconds, default=1.0, help="how long one run may take (1)"
    )
    parser.add_argument("--steps", type=_count, help="how many steps one run takes (1000 to 3000)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything as JSON")
    add_tls(parser)
    parser.set_defaults(command=bench)


def bench(options: argparse.Namespace) -> int:
    """Measure, print tables, and return 130 after Ctrl-C, 1 when a measurement failed."""
    from rlmesh.bench.measurements import Missing
    from rlmesh.bench.run import run

    ways, subjects = _ways(options), _subjects(options)
    if options.json is not None:
        _write(options.json, "")
    progress = Progress(sys.stderr)
    try:
        report = run(
            subjects,
            ways,
            options.clients,
            seconds=options.seconds,
            count=options.rounds,
            show=progress.show,
            client={} if options.tls is None else {"tls": options.tls},
        )
    finally:
        progress.end()
    if report.records:
        print(printable_lines(report.tables()))
    if options.json is not None:
        _write(options.json, json.dumps(report.to_dict(), indent=1) + "\n")
    if report.interrupted:
        return 130
    return 1 if any(isinstance(one, Missing) for one in report.records) else 0


class Progress:
    """How far a bench is: one line that is written over on a terminal, lines elsewhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._in_place = stream.isatty()
        self._width = 0

    def show(self, text: str) -> None:
        """Show what is being measured."""
        self._stream.write(f"\r{text.ljust(self._width)}" if self._in_place else f"{text}\n")
        self._stream.flush()
        self._width = len(text)

    def end(self) -> None:
        """Clear the line."""
        if self._in_place and self._width:
            self._stream.write(f"\r{' ' * self._width}\r")
            self._stream.flush()


def _ways(options: argparse.Namespace) -> "list[Carrier]":
    from rlmesh.bench.cells import IN_PROCESS, LANES, TRANSPORTS, carriers

    transports = cast("list[Transport]", _transports(options, TRANSPORTS))
    if options.lanes is None:
        return [IN_PROCESS, *carriers(LANES, transports)]
    lanes = cast("list[Lane]", _known("--lanes", options.lanes, LANES))
    if "tcp" in lanes and "tcp" not in transports:
        raise Misuse(
            "the lane tcp is not to be had where servers are dialled at Unix sockets only",
            hint="Leave it out of --lanes, or dial tcp.",
        )
    return [IN_PROCESS, *carriers(lanes, transports)]


def _transports(options: argparse.Namespace, known: Sequence[str]) -> Sequence[str]:
    if options.target is None or not is_address(options.target):
        return (
            known
            if options.transports is None
            else _known("--transports", options.transports, known)
        )
    if options.transports is not None:
        raise Misuse("--transports is given beside an address, which says how it is dialled")
    return ["unix" if options.target.startswith("unix:") else "tcp"]


def _subjects(options: argparse.Namespace) -> "list[Subject]":
    from rlmesh.bench.cells import Subject
    from rlmesh.bench.reference import REFERENCES, reference

    steps: int = options.steps or TARGET_STEPS
    if options.target is not None and options.envs:
        raise Misuse("--envs is given beside a target", hint="Give one of them.")
    if options.target is not None and is_address(options.target):
        lanes = _lanes_at(options.target, options.tls)
        return [Subject(options.target, steps, address=options.target, lanes=lanes)]
    if options.tls is not None:
        raise Misuse("--tls is about a server that is there already, and no address is given")
    if options.target is not None:
        return [Subject(options.target, steps, source=options.target)]
    if options.envs:
        chosen = [reference(name) for name in _known("--envs", options.envs, list(REFERENCES))]
    else:
        chosen = [one for one in REFERENCES.values() if one.is_installed]
    return [Subject(one.name, options.steps or one.steps, source=one.source) for one in chosen]


def _lanes_at(address: str, tls: str | None) -> int:
    from rlmesh.client.visit import Visit

    with Visit(address, tls=tls) as visit:
        return visit.env_contract.num_envs


def _known(option: str, given: Sequence[str], known: Sequence[str]) -> list[str]:
    for name in given:
        if name not in known:
            raise Misuse(f"{option} has no {name!r}", hint=f"There are {', '.join(known)}.")
    return list(dict.fromkeys(given))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"--json {str(path)!r} cannot be written: {error.strerror or error}"
        ) from error


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError(f"{text!r} names nothing")
    return names


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of at least 1")
    return number


def _counts(text: str) -> list[int]:
    return sorted({_count(part) for part in text.split(",")})

"""The training program, as `python -m rleaas.training_cli` and as `rleaas train`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rleaas.cli.ending import ended
from rleaas.cli.plain import write_what_it_can
from rleaas.cli.training.commands import COMMANDS
from rleaas.cli.training.parser import parse
from rleaas.cli.training.server import connect, file_for_server
from rleaas.cli.training.start import start

MODULE = "python -m rleaas.training_cli"


def main(arguments: Sequence[str] | None = None, prog: str = MODULE) -> int:
    """Run one command and return its exit code; no failure shows a traceback."""
    write_what_it_can()
    given = list(sys.argv[1:] if arguments is None else arguments)
    return ended(lambda: run(given, prog))


def run(arguments: Sequence[str], prog: str = MODULE) -> int:
    """Run one command and return its exit code.

    Raises:
        Error: it failed; `failures.exit_code_of` knows the code.
    """
    try:
        told = parse(arguments, prog)
    except SystemExit as done:  # the help was printed
        return done.code if isinstance(done.code, int) else 0
    if told.command == "start":
        return start(told)
    with connect(told, file_for_server(told)) as client:
        return COMMANDS[told.command](told, client)

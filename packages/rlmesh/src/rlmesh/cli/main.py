"""The command tree of `rlmesh`, and how its errors end."""

import argparse
import os
import sys
from collections.abc import Sequence

from rlcore import AddressError, Error
from rlcore.command_line import Misuse, Parser
from rlcore.printable import printable

from rlmesh import __version__
from rlmesh.cli import bench, check, compare, describe, inspect, look, play, replay, report


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0 is success, 1 a failure that is reported in one line, 2 wrong usage, 130 Ctrl-C.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["serve"]:
        # Serving has a parser of its own, shared with `python -m rlmesh.serve`.
        from rlmesh.serve import main as serve

        return serve(arguments[1:], prog="rlmesh serve")
    options = _parser().parse_args(arguments)
    try:
        code = int(options.command(options))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt as interrupt:
        print(f"\n{interrupt or 'interrupted'}", file=sys.stderr)
        return 130
    except Error as error:
        # One line, in the words of this command: the hint is for callers of the library.
        text = " ".join(str(error).split()).replace("wait_for_server_seconds=", "--wait SECONDS")
        print(f"error: {printable(text)}", file=sys.stderr)
        return 2 if isinstance(error, AddressError | Misuse) else 1
    except BrokenPipeError:
        # The reader (`| head`) has what it wanted; Python's own flush at exit must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="rlmesh",
        description="Serve environments, look at served ones, and evaluate models on them.",
    )
    parser.add_argument("--version", action="version", version=f"rlmesh {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    look.add_version(commands.add_parser)
    commands.add_parser(
        "serve", help="serve an environment; see `rlmesh serve --help`", add_help=False
    )
    look.add_ping(commands.add_parser)
    inspect.add_inspect(commands.add_parser)
    play.add_run(commands.add_parser)
    compare.add_compare(commands.add_parser)
    replay.add_replay(commands.add_parser)
    report.add_report(commands.add_parser)
    check.add_check(commands.add_parser)
    describe.add_describe(commands.add_parser)
    bench.add_bench(commands.add_parser)
    return parser

"""The words of `python -m rleaas.training_cli` and `rleaas train`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final, NoReturn

from rlcore import ConfigurationError

from rleaas.cli.training import exits

DAY: Final = 86_400.0
DEFAULT_CONFIG: Final = "config.json"

SHARED: Final = ("config", "api_key", "base_url", "profile", "as_json")


class UsageProblem(ConfigurationError):
    """The words are none that the command knows."""

    default_code = "usage"


class _Parser(argparse.ArgumentParser):
    """Raises what is wrong with the words instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        """Refuse the words.

        Raises:
            UsageProblem: always.
        """
        raise UsageProblem(message, hint=f"see `{self.prog} --help`")


def parse(arguments: Sequence[str], prog: str) -> argparse.Namespace:
    """Return what the words say; options of every command count before and behind it.

    Raises:
        UsageProblem: they are wrong.
        SystemExit: they asked for help, which was printed.
    """
    told = build(prog).parse_args(arguments)
    for name in SHARED:
        # Absent where nobody said it, so that what is said before a command stays.
        if not hasattr(told, name):
            setattr(told, name, False if name == "as_json" else None)
    return told


def build(prog: str) -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    shared = _shared()
    parser = _Parser(
        prog=prog,
        parents=[shared],
        allow_abbrev=False,
        description="Start the trainings of a config.json and look after them.",
        epilog=exits.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def add(name: str, says: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            parents=[shared],
            help=says,
            description=says,
            allow_abbrev=False,
            epilog=exits.EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    start = add("start", "Start one, several or all trainings of the config file.")
    which = start.add_mutually_exclusive_group()
    which.add_argument(
        "--training", metavar="IDS", help="the `training` of an entry, or several: 3,4,5"
    )
    which.add_argument("--index", type=int, metavar="N", help="the place of an entry, from 0")
    which.add_argument("--all", action="store_true", help="every entry")
    listing = add("list", "List the jobs, newest first.")
    listing.add_argument("--ids-only", action="store_true", help="only their ids")
    for name, says in (
        ("status", "Show how a job is doing."),
        ("metrics", "Print what a job has reached."),
        ("checkpoints", "List the checkpoints of a job."),
        ("rollouts", "List the stored rollouts of a job."),
        ("cancel", "Ask a job to stop."),
    ):
        _job(add(name, says))
    wait = add("wait", "Wait until a job is over; the exit code says how it ended.")
    _job(wait)
    _patience(wait, "seconds to wait at most; the job goes on")
    _interval(wait, 30.0, "seconds between two looks")
    logs = add("logs", "Print the log of a job.")
    _job(logs)
    logs.add_argument("--limit", type=_count, metavar="N", help="only the last N lines")
    logs.add_argument("--follow", action="store_true", help="go on until the job is over")
    _interval(logs, 5.0, "with --follow: seconds between two questions to a server without streams")
    _patience(logs, "with --follow: seconds at most; the job goes on")
    return parser


def _shared() -> _Parser:
    shared = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    group = shared.add_argument_group("before or behind the command")
    group.add_argument("--config", metavar="PATH", help=f"the config file ({DEFAULT_CONFIG})")
    group.add_argument(
        "--api-key", metavar="KEY", help="the API key (RLEAAS_API_KEY, else the config file's)"
    )
    group.add_argument(
        "--base-url",
        metavar="URL",
        help="the server (RLEAAS_BASE_URL, else the config file's, else http://localhost:8000)",
    )
    group.add_argument("--profile", metavar="NAME", help="a profile of your own (RLEAAS_PROFILE)")
    group.add_argument("--json", dest="as_json", action="store_true", help="print JSON")
    return shared


def _job(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--job-id", required=True, metavar="ID", help="the job")


def _patience(parser: argparse.ArgumentParser, says: str) -> None:
    parser.add_argument("--timeout", type=_seconds, default=DAY, metavar="SECONDS", help=says)


def _interval(parser: argparse.ArgumentParser, usual: float, says: str) -> None:
    parser.add_argument(
        "--poll-interval",
        type=_seconds,
        default=usual,
        metavar="SECONDS",
        help=f"{says} ({usual:g})",
    )


def _seconds(text: str) -> float:
    seconds = _number(text)
    if not 0 <= seconds <= 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from None


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < len(text) < 10 or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)

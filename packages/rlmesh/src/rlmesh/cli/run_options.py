"""The options of `rlmesh run`."""

import argparse
import math
from collections.abc import Callable
from pathlib import Path

from rlcore import ConfigurationError

from rlmesh.cli.look import add_tls, add_wait, positive_seconds

MOST_SEEDS = 1_000_000
STDOUT = "-"

Add = Callable[..., object]
"""`add_argument` of a parser or of a group of options."""

EPILOG = """\
The gate: --min-success and --min-reward are held against what was seen, or, with --confident,
against the lower end of its 95% interval. An episode without a score is no success. Every episode
needs a score, but for --allow-failures.

exit codes:
  0    every episode has a score (but for --allow-failures), and the gate is passed
  1    episodes have no score, or the run could not go on
  2    wrong usage
  3    every episode has a score, and the gate is missed
  130  Ctrl-C

Tokens are never on a command line: RLMESH_TOKEN holds the one for servers, RLEAAS_API_KEY the key
of the platform.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add everything that `rlmesh run` takes."""
    parser.add_argument(
        "model",
        help="'random'; MODULE:ATTRIBUTE of a Model, policy or function; the file of a policy; "
        "rleaas://checkpoints/ID; or the address of a served model",
    )
    parser.add_argument(
        "env", help="an address (tcp://…, rleaas://NAME@3), a gymnasium id, or MODULE:ATTRIBUTE"
    )
    _add_episodes(parser.add_argument_group("episodes").add_argument)
    _add_gate(parser.add_argument_group("the gate").add_argument)
    _add_failures(parser.add_argument_group("failures and limits").add_argument)
    _add_outputs(parser.add_argument_group("what is kept and shown").add_argument)
    parser.add_argument("--native", action="store_true", help="give functions rlmesh.Tensor")
    add_wait(parser)
    add_tls(parser)


def seeds_in(text: str) -> list[int]:
    """Return the seeds that an option names: FIRST:LAST, or 1,2,3."""
    try:
        if ":" in text:
            first, last = map(int, text.split(":"))
            if last - first > MOST_SEEDS:
                message = f"{text!r} names {last - first} seeds; {MOST_SEEDS} is the most"
                raise argparse.ArgumentTypeError(message)
            seeds = list(range(first, last))
        else:
            seeds = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is neither FIRST:LAST nor 1,2,3") from error
    if not seeds:
        raise argparse.ArgumentTypeError(f"{text!r} names no seed: LAST is excluded")
    return seeds


def share_in(text: str) -> float:
    """Return a number from 0 to 1 that an option names."""
    try:
        share = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from error
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not from 0 to 1; 90 % is 0.9")
    return share


def confidence_in(text: str) -> float:
    """Return a number between 0 and 1 that an option names."""
    share = share_in(text)
    if share in (0, 1):
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and 1; 95 % is 0.95")
    return share


def number_in(text: str) -> float:
    """Return a finite number that an option names."""
    try:
        found = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from error
    if not math.isfinite(found):
        raise argparse.ArgumentTypeError(f"{text!r} is no finite number")
    return found


def count_in(text: str) -> int:
    """Return a whole number that an option names, 0 or more."""
    if not text.isascii() or not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0")
    return int(text)


def view_in(text: str) -> str:
    """Return where a run is watched, as an option names it."""
    from rlmesh.viewer.view import view_of

    try:
        view_of(text)
    except ConfigurationError as error:
        message = f"{text!r} is none of terminal, http, http:PORT, both"
        raise argparse.ArgumentTypeError(message) from error
    return text


def add_json(add: Add, what: str) -> None:
    """Add `--json [PATH]`."""
    add(
        "--json",
        nargs="?",
        const=STDOUT,
        metavar="PATH",
        help=f"write {what} as JSON to this file; without PATH, or as -, only to standard output",
    )


def _add_episodes(add: Add) -> None:
    add("--episodes", type=count_in, help="how many episodes (1)")
    add("--seeds", type=seeds_in, help="FIRST:LAST (LAST excluded), or 1,2,3")
    add("--seed", type=int, default=0, help="without --seeds, the first seed (0)")
    add("--max-steps", type=int, help="cut episodes off after so many steps")
    add("--success-key", metavar="KEY", help="the info that says success")
    add("--success-threshold", type=float, help="reward that counts as success")
    add("--task-key", metavar="KEY", help="the info that names an episode's task")
    add("--instruction", help="the task in words, for models that ask for one")
    add("--execution-horizon", type=int, default=1, help="actions used of each chunk (1)")
    add("--num-workers", type=int, help="play on so many environments, in processes of their own")


def _add_gate(add: Add) -> None:
    add("--min-success", type=share_in, metavar="RATE", help="success rate to reach, 0 to 1")
    add("--min-reward", type=number_in, metavar="X", help="mean reward to reach")
    add(
        "--confident",
        action="store_true",
        help="hold the lower end of the 95%% interval against them",
    )
    add(
        "--allow-failures",
        type=count_in,
        default=0,
        metavar="N",
        help="put up with N episodes without a score; they still are no success (0)",
    )


def _add_failures(add: Add) -> None:
    add("--max-failures", type=int, help="stop after more failed episodes")
    add("--retries", type=int, default=0, help="play an episode without a score again (0 times)")
    for name, what in (
        ("step", "one call of the environment"),
        ("episode", "an episode"),
        ("predict", "a prediction"),
        ("run", "the run"),
    ):
        add(
            f"--{name}-timeout",
            type=positive_seconds,
            metavar="SECONDS",
            help=f"how long {what} may take",
        )


def _add_outputs(add: Add) -> None:
    add_json(add, "the whole result")
    add("--output", type=Path, help="write the result as JSON to this file, whatever is printed")
    add(
        "--journal",
        type=Path,
        help="write each episode to this file at once, and continue from it next time",
    )
    add("--record", type=Path, metavar="BUNDLE", help="record steps and videos (folder or .zip)")
    add(
        "--view",
        nargs="?",
        const="terminal",
        type=view_in,
        metavar="WHERE",
        help="watch live: terminal, http, http:PORT, or both",
    )

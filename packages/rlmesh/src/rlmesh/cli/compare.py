"""`rlmesh compare FIRST SECOND`: whether one run is better than another."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from rlcore.printable import printable_lines

from rlmesh.cli.look import AddParser
from rlmesh.cli.play import check_writable
from rlmesh.cli.run_options import STDOUT, add_json, confidence_in, count_in

if TYPE_CHECKING:
    from rlmesh.runs.compare import Comparison
    from rlmesh.runs.results import RunResult

NOT_WORSE, FAILED, WORSE, UNDECIDED = 0, 1, 3, 4

EPILOG = """\
Episodes of the same task and seed are a pair. The second run is better or worse where both the
interval of the difference leaves out zero and an exact paired test agrees.

exit codes:
  0  the second run is not worse: better, identical, or cannot be told apart
  1  the runs cannot be compared, or episodes have no score (see --allow-failures)
  2  wrong usage
  3  the second run is worse
  4  it cannot be told, and --decide was given
"""


def add_compare(add: AddParser) -> None:
    """Add `rlmesh compare`."""
    parser = add(
        "compare",
        help="say whether one run is better than another",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("first", type=Path, help="the baseline: JSON of a run, or its journal")
    parser.add_argument("second", type=Path, help="the run that is held against it")
    parser.add_argument(
        "--metric", choices=("success", "reward"), help="what decides (success, where it is told)"
    )
    parser.add_argument(
        "--confidence", type=confidence_in, default=0.95, help="of intervals and verdict (0.95)"
    )
    parser.add_argument(
        "--decide", action="store_true", help="end with 4 where it cannot be told which is better"
    )
    parser.add_argument(
        "--allow-failures",
        type=count_in,
        default=0,
        metavar="N",
        help="put up with N episodes without a score in each run (0)",
    )
    parser.add_argument(
        "--allow-different-environments",
        action="store_true",
        help="also compare runs whose environments' contracts differ",
    )
    add_json(parser.add_argument, "the comparison")
    parser.set_defaults(command=compare_command)


def compare_command(options: argparse.Namespace) -> int:
    """Compare, print what came out, and return it as a code; see `EPILOG`."""
    from rlmesh.runs.compare import Verdict, compare
    from rlmesh.runs.results import RunResult

    if options.json not in (None, STDOUT):
        check_writable(Path(options.json), "--json")
    first, second = RunResult.load(options.first), RunResult.load(options.second)
    found = compare(
        first,
        second,
        metric=options.metric,
        confidence=options.confidence,
        allow_different_environments=options.allow_different_environments,
    )
    _report(found, options)
    incomplete = [_incomplete(run, options.allow_failures) for run in (first, second)]
    if found.verdict is Verdict.WORSE:
        return WORSE
    if any(incomplete):
        return FAILED
    undecided = found.verdict is Verdict.INCONCLUSIVE and not found.identical
    return UNDECIDED if options.decide and undecided else NOT_WORSE


def _incomplete(run: "RunResult", allowed: int) -> bool:
    return run.coverage.asked - run.coverage.scored > allowed


def _report(found: "Comparison", options: argparse.Namespace) -> None:
    from rlmesh.runs.export import write_whole

    text = json.dumps(found.to_dict(), indent=2, allow_nan=False)
    if options.json == STDOUT:
        print(text)
        return
    print(printable_lines(found))
    if options.json is not None:
        write_whole(options.json, text + "\n")

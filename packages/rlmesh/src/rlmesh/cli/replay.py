"""`rlmesh replay BUNDLE`: play a recording again, and compare every step."""

import argparse
import json
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rlcore.printable import printable

from rlmesh.cli.look import AddParser
from rlmesh.cli.play import seeds_in

if TYPE_CHECKING:
    from rlmesh.recorder.replaying import Replayed, ReplayReport


def add_replay(add: AddParser) -> None:
    """Add `rlmesh replay`."""
    parser = add(
        "replay",
        help="play a recording again and compare every step",
        description="Reset with the recorded seeds, step the recorded actions, and compare "
        "observations, rewards and flags. Stops at the first difference and returns 1.",
        epilog="Without --env it is played on what the bundle says that it was recorded on, where "
        "gymnasium knows that by an id. A bundle that names anything else could run any code here, "
        "and is followed with --trust-source only.",
    )
    parser.add_argument("bundle", type=Path, help="a folder or a zip file")
    parser.add_argument(
        "--env",
        help="an address, a gymnasium id, or MODULE:ATTRIBUTE (what the bundle was recorded on)",
    )
    parser.add_argument(
        "--trust-source",
        action="store_true",
        help="play on whatever the bundle names, such as a class or an address: whoever "
        "made the bundle can run any code",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="return 1 as well if an episode is skipped, or cannot be replayed to its end",
    )
    parser.add_argument("--workload", type=int, help="only this workload, counted from 0")
    parser.add_argument(
        "--episodes", type=seeds_in, help="only these: FIRST:LAST (LAST excluded), or 1,2,3"
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        help="how far two numbers may be apart (not at all); needs recorded observations",
    )
    parser.add_argument(
        "--no-verify", action="store_true", help="read the files even if they were changed"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.set_defaults(command=replay_command)


def replay_command(options: argparse.Namespace) -> int:
    """Replay, print what agrees and where it stops to, and return 1 where it does."""
    from rlmesh.recorder import load, replay
    from rlmesh.server.sources import look_here

    if options.env is not None or options.trust_source:
        look_here()  # nothing beside a bundle is run otherwise
    with closing(load(options.bundle, verify=not options.no_verify)) as bundle:
        report = replay(
            bundle,
            options.env,
            workload=options.workload,
            episodes=options.episodes,
            tolerance=options.tolerance,
            trust_source=options.trust_source,
            on_episode=None if options.json else _print,
        )
    if options.json:
        print(json.dumps(_document(report), indent=2))
    else:
        for skipped in report.skipped:
            print(f"NOT replayed: {printable(skipped)}")
        print(printable(str(report)))
    return 0 if (report.complete if options.all else report.matches) else 1


def _print(done: "Replayed") -> None:
    where = f"workload {done.workload}, episode {done.episode}, seed {done.seed}"
    end = "" if done.partly is None else f"; its end was NOT replayed: {printable(done.partly)}"
    print(f"{where}: {done.steps} steps agree{end}")


def _document(report: "ReplayReport") -> dict[str, object]:
    difference = report.difference
    return {
        "matches": report.matches,
        "complete": report.complete,
        "verified": report.verified,
        "episodes": [asdict(episode) for episode in report.episodes],
        "difference": None if difference is None else asdict(difference),
        "skipped": list(report.skipped),
    }

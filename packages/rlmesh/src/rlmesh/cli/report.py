"""`rlmesh report BUNDLE`: write the HTML report of a recording."""

import argparse
from contextlib import closing
from pathlib import Path

from rlcore import ConfigurationError
from rlcore.printable import printable

from rlmesh.cli.look import AddParser
from rlmesh.cli.play import check_writable


def add_report(add: AddParser) -> None:
    """Add `rlmesh report`."""
    parser = add(
        "report",
        help="write the HTML report of a recording",
        description="Write one HTML file with coverage, intervals, plots, episodes and videos.",
    )
    parser.add_argument("bundle", type=Path, nargs="+", help="folders or zip files; several merge")
    parser.add_argument(
        "--output", type=Path, help="the file (BUNDLE.html, or for BUNDLE.zip also that, beside it)"
    )
    parser.add_argument("--title", help="the headline")
    parser.add_argument(
        "--embed", type=_megabytes, default=32.0, help="megabytes of videos to put into it (32)"
    )
    parser.add_argument(
        "--no-verify", action="store_true", help="read the files even if they were changed"
    )
    parser.set_defaults(command=report_command)


def report_command(options: argparse.Namespace) -> int:
    """Write the report, and print where it is."""
    from rlmesh.recorder import load, merge, write_report

    first: Path = options.bundle[0]
    target: Path = options.output or _beside(first.resolve())
    check_writable(target)
    if target.resolve() in [path.resolve() for path in options.bundle]:
        raise ConfigurationError(f"--output {str(target)!r} is the bundle itself")
    found = [load(path, verify=not options.no_verify) for path in options.bundle]
    with closing(found[0] if len(found) == 1 else merge(*found)) as bundle:
        embed = int(options.embed * 2**20)
        written = write_report(bundle, target, embed=embed, title=options.title)
    print(printable(str(written)))
    return 0


def _beside(bundle: Path) -> Path:
    # Only what says that it is a zip: `run.v1` is a whole name.
    name = bundle.stem if bundle.suffix.lower() == ".zip" else bundle.name
    return bundle.with_name(f"{name}.html")


def _megabytes(text: str) -> float:
    try:
        number = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from error
    if not 0 <= number <= 2048:
        raise argparse.ArgumentTypeError(f"{text!r} is not from 0 to 2048")
    return number

"""`rlmesh check TARGET …`: does an environment keep its promises?"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlcore import ConfigurationError, Error
from rlcore.printable import printable

from rlmesh.cli.look import AddParser, add_tls, add_wait, positive_seconds
from rlmesh.cli.play import check_writable, seeds_in, unwritable

if TYPE_CHECKING:
    from rlmesh.authoring.checks import Checked
    from rlmesh.conformance import Report

CONFORMS, FAILED, NOT_CHECKED = 0, 1, 2
STDOUT = "-"
PYTHON = "python://"
# Beyond the patience with one call, before a call that no thread can interrupt ends the command.
GRACE_SECONDS = 60.0


def add_check(add: AddParser) -> None:
    """Add `rlmesh check`."""
    parser = add(
        "check",
        help="check whether environments keep their promises",
        description="Play an environment with seeded random actions, several times over, and judge "
        "what comes back. What fails breaks the Gymnasium interface or what the environment "
        "declares; what is noted is legal and worth knowing. A class of environments "
        "(EnvFactory) or of models (Model) is described first, and its description is checked; a "
        "model is checked so only.",
        epilog="Exit code: 0 all conform, 1 one does not, 2 wrong usage, or one could not be "
        "reached or made. --list prints the names of the checks.",
    )
    parser.add_argument(
        "targets",
        metavar="TARGET",
        nargs="*",
        help="an address (tcp://…, unix://…, rleaas://NAME@3), MODULE:ATTRIBUTE, or a gymnasium id",
    )
    parser.add_argument("--seeds", type=seeds_in, help="FIRST:LAST (LAST excluded), or 1,2,3 (0:3)")
    parser.add_argument("--steps", type=int, default=200, help="steps of each play (200)")
    parser.add_argument(
        "--timeout", type=positive_seconds, default=30.0, help="seconds that one call may take (30)"
    )
    add_wait(parser)
    add_tls(parser)
    parser.add_argument("--only", action="append", default=[], help="checks to perform: NAME[,…]")
    parser.add_argument("--skip", action="append", default=[], help="checks to leave out: NAME[,…]")
    parser.add_argument("--strict", action="store_true", help="what is noted counts as failed")
    parser.add_argument("--json", metavar="FILE", help="write the reports as JSON; - for stdout")
    parser.add_argument("--list", action="store_true", help="print the checks, and check nothing")
    parser.set_defaults(command=check_command)


def check_command(options: argparse.Namespace) -> int:
    """Check the targets one after another, print their reports, and return the exit code."""
    from rlmesh.authoring.checks import checks_of
    from rlmesh.conformance import CHECKS
    from rlmesh.conformance.catalogue import selected

    if options.list:
        width = max(map(len, CHECKS))
        print("\n".join(f"{name.ljust(width)}  {one.promise}" for name, one in CHECKS.items()))
        return CONFORMS
    try:
        _require_targets(options)
        only, skip = _names(options.only, "--only"), _names(options.skip, "--skip")
        selected(only, skip)
    except Error as error:
        return _not_checked(error)
    codes, reports = [CONFORMS], list["Report"]()
    checked: dict[str, Checked] = {}
    for target in options.targets:
        description = _described(target)
        if description is not None:
            checked[target] = checks_of(description)
            codes.append(_told(target, checked[target], options))
            if description["kind"] == "model":
                continue
        try:
            report = _check(target, options, only, skip)
        except Error as error:
            codes.append(_not_checked(error))
            continue
        reports.append(report)
        codes.append(CONFORMS if report.conforms(strict=options.strict) else FAILED)
        if options.json != STDOUT:
            _print(report)
    try:
        _write(reports, checked, options.json)
    except OSError as error:
        codes.append(_not_checked(unwritable(Path(str(options.json)), str(error), "--json")))
    return max(codes)


def _described(target: str) -> dict[str, Any] | None:
    from rlmesh.cli.describe import described
    from rlmesh.conformance.subject import is_address

    named = target.strip().removeprefix(PYTHON)
    if is_address(target.strip()) or ":" not in named or "://" in named:
        return None
    return described(named)


def _told(target: str, checked: "Checked", options: argparse.Namespace) -> int:
    from rlmesh._describe import checked_text

    if options.json != STDOUT:
        print(f"{printable(target)} as it is described")
        print(checked_text(checked))
    return FAILED if checked.failed else CONFORMS


def _check(target: str, options: argparse.Namespace, only: list[str], skip: list[str]) -> "Report":
    from rlmesh.client.options import ConnectOptions
    from rlmesh.conformance import check, check_apart
    from rlmesh.conformance.run import SEEDS
    from rlmesh.conformance.subject import is_address

    seeds: Sequence[int] = options.seeds or SEEDS
    if not is_address(target.strip()):
        return check_apart(
            target,
            seeds=seeds,
            steps=options.steps,
            timeout=options.timeout,
            only=only,
            skip=skip,
            grace=GRACE_SECONDS,
        )
    return check(
        target,
        seeds=seeds,
        steps=options.steps,
        timeout=options.timeout,
        only=only,
        skip=skip,
        connect=ConnectOptions(wait_for_server_seconds=options.wait, tls=options.tls),
    )


def _print(report: "Report") -> None:
    from rlmesh.cli.check_table import Look, table

    print(table(report, Look.of(sys.stdout)))


def _write(reports: "list[Report]", checked: "dict[str, Checked]", where: str | None) -> None:
    if where is None:
        return
    content: dict[str, object] = {"reports": [report.to_dict() for report in reports]}
    if checked:
        content["descriptions"] = [
            {"target": target, **found.to_dict()} for target, found in checked.items()
        ]
    text = json.dumps(content, indent=2)
    if where == STDOUT:
        print(text)
        return
    Path(where).write_text(text + "\n", encoding="utf-8")


def _require_targets(options: argparse.Namespace) -> None:
    if not options.targets:
        raise ConfigurationError("there is no TARGET", hint="Name an environment.")
    if options.json not in (None, STDOUT):
        check_writable(Path(options.json), "--json")


def _names(given: list[str], option: str) -> list[str]:
    names = [name for part in given for name in part.replace(" ", "").split(",") if name]
    if given and not names:
        raise ConfigurationError(f"{option} names no check", hint="See --list.")
    return names


def _not_checked(error: Error) -> int:
    text = " ".join(str(error).split()).replace("wait_for_server_seconds=", "--wait SECONDS")
    print(f"error: {printable(text)}", file=sys.stderr)
    return NOT_CHECKED

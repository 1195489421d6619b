"""`rlmesh describe MODULE:CLASS`: what an environment or a model is, as JSON."""

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final

from rlcore.environ import variable
from rlcore.printable import printable

from rlmesh.cli.look import AddParser, positive_seconds

# The interpreter that has the author's packages, where it is not this one.
PYTHON_VARIABLE = "RLMESH_PYTHON"
TIMEOUT: Final = 300.0
"""Seconds; the first make of some environments downloads what it needs."""


def add_describe(add: AddParser) -> None:
    """Add `rlmesh describe`."""
    parser = add(
        "describe",
        help="print what a class of environments or of models is, as JSON",
        description="Import a class, make an environment of it once, and print what it is: spaces, "
        "tags, parameters, variants. What fails stands in the JSON. What the class prints goes to "
        "the standard error.",
        epilog=f"{PYTHON_VARIABLE} names the interpreter that imports it. Exit code: 0 it is "
        "printed, 1 there is nothing to describe, or it takes too long.",
    )
    parser.add_argument("target", metavar="MODULE:CLASS")
    parser.add_argument("--kind", choices=("env", "model"), help="what it is, where it says not")
    parser.add_argument(
        "--timeout",
        type=positive_seconds,
        default=TIMEOUT,
        metavar="SECONDS",
        help=f"how long importing and making may take ({TIMEOUT:g})",
    )
    parser.add_argument("--label", action="store_true", help="print it as a label of an image")
    parser.add_argument("--json", action="store_true", help="print JSON, which is the default")
    parser.add_argument("--generated-at", metavar="TIME", help="when it was made, as RFC 3339")
    parser.set_defaults(command=describe_command)


def describe_command(options: argparse.Namespace) -> int:
    """Print the description and return the exit code."""
    arguments = [f"--{options.kind}", options.target] if options.kind else [options.target]
    if options.label:
        arguments.append("--label")
    if options.generated_at:
        arguments += ["--generated-at", options.generated_at]
    code, printed = _answer(options.target, arguments, options.timeout, stderr=None)
    sys.stdout.write(printed)
    return code


def described(target: str) -> dict[str, Any] | None:  # Any: JSON
    """Return what `module:attribute` is; None where it has no description."""
    code, printed = _answer(target, [target], TIMEOUT, stderr=subprocess.DEVNULL)
    if code != 0:
        return None
    found: dict[str, Any] = json.loads(printed)
    return found


def _answer(
    target: str, arguments: Sequence[str], seconds: float, *, stderr: int | None
) -> tuple[int, str]:
    """Return the exit code of an interpreter that describes something, and what it printed."""
    # A group of its own: what the author's code started ends with it.
    process = subprocess.Popen(
        _command(*arguments), stdout=subprocess.PIPE, stderr=stderr, start_new_session=True
    )
    try:
        printed, _ = process.communicate(timeout=seconds)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        sys.stderr.write(
            f"error: {printable(target)} was not described within {seconds:g} s\n"
            "hint: does its make wait for something? --timeout gives it longer\n"
        )
        return 1, ""
    if process.returncode == 0 and not printed.strip():
        sys.stderr.write(
            f"error: {printable(target)} ended the interpreter before it was described\n"
        )
        return 1, ""
    return process.returncode, printed.decode()


def _command(*arguments: str) -> list[str]:
    return [variable(PYTHON_VARIABLE) or sys.executable, "-m", "rlmesh._describe", *arguments]

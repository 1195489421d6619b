"""`rlmesh describe MODULE:CLASS`: what an environment or a model is, as JSON."""

import argparse
import json
import subprocess
import sys
from typing import Any

from rlcore.environ import variable

from rlmesh.cli.look import AddParser

# The interpreter that has the author's packages, where it is not this one.
PYTHON_VARIABLE = "RLMESH_PYTHON"


def add_describe(add: AddParser) -> None:
    """Add `rlmesh describe`."""
    parser = add(
        "describe",
        help="print what a class of environments or of models is, as JSON",
        description="Import a class, make an environment of it once, and print what it is: spaces, "
        "tags, parameters, variants. What fails stands in the JSON. What the class prints goes to "
        "the standard error.",
        epilog=f"{PYTHON_VARIABLE} names the interpreter that imports it. Exit code: 0 it is "
        "printed, 1 there is nothing to describe.",
    )
    parser.add_argument("target", metavar="MODULE:CLASS")
    parser.add_argument("--label", action="store_true", help="print it as a label of an image")
    parser.add_argument("--json", action="store_true", help="print JSON, which is the default")
    parser.add_argument("--generated-at", metavar="TIME", help="when it was made, as RFC 3339")
    parser.set_defaults(command=describe_command)


def describe_command(options: argparse.Namespace) -> int:
    """Print the description and return the exit code."""
    arguments = [options.target]
    if options.label:
        arguments.append("--label")
    if options.generated_at:
        arguments += ["--generated-at", options.generated_at]
    return subprocess.run(_command(*arguments), check=False).returncode


def described(target: str) -> dict[str, Any] | None:  # Any: JSON
    """Return what `module:attribute` is; None where it has no description."""
    done = subprocess.run(
        _command(target), check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    if done.returncode != 0:
        return None
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _command(*arguments: str) -> list[str]:
    return [variable(PYTHON_VARIABLE) or sys.executable, "-m", "rlmesh._describe", *arguments]

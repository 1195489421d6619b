"""`rleaas config …`: what a config.json may say, and whether one says it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rleaas.cli.console import print_json, say
from rleaas.cli.failures import BAD_CONFIG
from rleaas.cli.nouns import noun
from rleaas.cli.options import AsJson
from rleaas.cli.plain import first_lines, listed, visible
from rleaas.training.run_file.problems import Problem
from rleaas.training.run_file.reading import read_file

app = noun("config")


@app.command("schema", epilog="Example: `rleaas config schema > config.schema.json`")
def schema() -> None:
    """Print the JSON Schema of config.json, for editors and other programs."""
    from rleaas.training.run_file.schema import config_schema

    print_json(config_schema())


@app.command(
    "check", epilog="Examples: `rleaas config check` · `rleaas config check a.json --json`"
)
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file.")] = Path("config.json"),
    as_json: AsJson = False,
) -> int:
    """Say all that is wrong with a config.json; exit with 10 if something is.

    The server is not asked whether it has what the file names.
    """
    found = read_file(file)
    if as_json:
        print_json(
            {
                "file": found.path,
                "trainings": [run.id for run in found.runs],
                "errors": [_told(one) for one in found.errors],
                "warnings": [_told(one) for one in found.warnings],
            }
        )
        return BAD_CONFIG if found.errors else 0
    path = visible(found.path)
    for line in first_lines([f"{found.path}:{one}" for one in found.errors], "errors"):
        say(line)
    warned = [f"{found.path}:{one} [warning]" for one in found.warnings]
    for line in first_lines(warned, "warnings"):
        say(line)
    count = len(found.errors)
    if count:
        say(f"{path} has {count} error{'s' if count > 1 else ''}.")
        return BAD_CONFIG
    ids = listed([str(run.id) for run in found.runs])
    say(f"{path} is good; its trainings are {visible(ids)}.")
    return 0


def _told(problem: Problem) -> dict[str, object]:
    return {
        "path": problem.path,
        "line": problem.at.line,
        "column": problem.at.column,
        "message": problem.message,
        "hint": problem.hint,
    }

"""`rleaas scenario …`: the tasks of environments."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer
from rlcore import ConfigurationError, Error

from rleaas.cli.command import Asked, command
from rleaas.cli.confirm import Yes, confirm
from rleaas.cli.console import Column, columns
from rleaas.cli.names import completion
from rleaas.cli.nouns import noun
from rleaas.cli.options import Limit
from rleaas.cli.references import EnvOption, ScenarioRef
from rleaas.cli.spec import (
    SpecFile,
    call_with,
    checked_fields,
    fields_from,
    objects_from,
    optional_object,
    require_changes,
    shown,
)

if TYPE_CHECKING:
    from rleaas.models import Scenario

app = noun("scenario")

FIELDS: Mapping[str, type] = {
    "name": str,
    "environment": str,
    "scenario_id": str,
    "tier": int,
    "task_prompt": str,
    "available_tools": list,
    "max_steps": int,
    "context_injection": dict,
    "success_criteria_ref": str,
    "tags": list,
}
_UPDATED = {
    name: kind for name, kind in FIELDS.items() if name not in ("scenario_id", "environment")
}
SHOWN = (
    *columns("id", "name", "environment", "tier"),
    Column("task", "task_prompt"),
    *columns("max steps", "tags"),
    Column("tools", "available_tools"),
    Column("context", "context_injection"),
    Column("decided by", "success_criteria_ref"),
    *columns("source", "version"),
    Column("created", "created_at"),
    Column("updated", "updated_at"),
)
_LISTED = columns("id", "name", "environment", "tier", "max steps", "tags")

Task = Annotated[
    str | None, typer.Option("--task", metavar="TEXT", help="What the agent is asked to do.")
]
Tier = Annotated[
    int | None, typer.Option(min=1, max=4, help="1 (one step) to 4 (systemic stress).")
]
Steps = Annotated[
    int | None, typer.Option(min=1, help="How many calls of tools it may take at most.")
]
Tool = Annotated[
    list[str] | None,
    typer.Option("--tool", help="A tool that it may use; repeatable [all of its environment]."),
]
Context = Annotated[
    str | None,
    typer.Option(
        "--context", metavar="JSON", help="What the agent is shown at the start; @FILE reads it."
    ),
]
Criterion = Annotated[
    str | None,
    typer.Option(
        "--verifier",
        metavar="VERIFIER",
        help="The verifier that decides, by id.",
        autocompletion=completion("verifier"),
    ),
]
Tag = Annotated[list[str] | None, typer.Option("--tag", help="For finding it; repeatable.")]


@command(app, "list", "list --env Bank --limit 20")
def list_scenarios(
    asked: Asked,
    environment: EnvOption = None,
    category: Annotated[str | None, typer.Option(help="Only those of this vertical.")] = None,
    limit: Limit = None,
) -> None:
    """List scenarios, oldest first."""
    asked.rows(
        [*islice(asked.client.Scenario.iterate(environment, category), limit)],
        _LISTED,
        empty="No scenarios. `rleaas scenario create NAME --env ENV` writes one.",
    )


@command(app, "get", "get scn_1")
def get(asked: Asked, scenario: ScenarioRef) -> None:
    """Show one scenario."""
    asked.facts(asked.client.Scenario.get(scenario), SHOWN)


@command(
    app,
    "create",
    "create 'Pay a bill' --env Bank --task 'Pay the bill of 20 EUR' --tool pay",
    "create --file scenario.yaml --env Bank",
)
def create(
    asked: Asked,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Its name.")] = None,
    environment: EnvOption = None,
    id: Annotated[
        str | None,
        typer.Option("--id", help="An id of your own; a scenario that has it is changed."),
    ] = None,
    task: Task = None,
    tier: Tier = None,
    max_steps: Steps = None,
    tool: Tool = None,
    context: Context = None,
    verifier: Criterion = None,
    tag: Tag = None,
    file: SpecFile = None,
) -> None:
    """Write a scenario, or change the one with the id that is given."""
    fields = fields_from(
        file,
        FIELDS,
        {
            "name": name,
            "environment": environment,
            "scenario_id": id,
            **_given(name, task, tier, max_steps, tool, context, verifier, tag),
        },
        required=("name",),
    )
    asked.facts(_create(asked, fields), SHOWN)


@command(
    app,
    "import",
    "import fin-101 fin-102 --env Bank",
    "import --file scenarios.yaml --env Bank",
)
def import_scenarios(
    asked: Asked,
    library_id: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LIBRARY_ID]...",
            help="Scenarios of the platform's library, by id.",
            autocompletion=completion("library"),
        ),
    ] = None,
    environment: EnvOption = None,
    file: SpecFile = None,
) -> None:
    """Copy scenarios of the library into an environment, or write those of a file.

    A file has a list of them, or an object with `scenarios`; it is checked as a whole before the
    first is written. One with the `scenario_id` of a scenario that is there changes it.
    """
    described = [] if file is None else _described(file, environment)
    if not described and not library_id:
        raise ConfigurationError(
            "there is nothing to import", hint="Name ids of `scenario library`, or pass --file."
        )
    made: list[Scenario] = []
    try:
        made.extend(
            asked.client.Scenario.from_library(one, env_name=environment)
            for one in library_id or ()
        )
        made.extend(_create(asked, fields) for fields in described)
    except Error as error:
        error.hint = " ".join(filter(None, (error.hint, f"{len(made)} were imported before it.")))
        raise
    asked.rows(made, _LISTED, empty="Nothing was imported.")


@command(app, "library", "library --vertical FinSim --tier 1 --tier 2")
def library(
    asked: Asked,
    vertical: Annotated[str | None, typer.Option(help="Such as FinSim.")] = None,
    tier: Annotated[list[int] | None, typer.Option(min=1, max=4, help="Repeatable.")] = None,
    domain: Annotated[str | None, typer.Option(help="Such as wire_transfer.")] = None,
    tag: Tag = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 20,
) -> None:
    """List the scenarios that the platform ships."""
    asked.rows(
        asked.client.Scenario.library(vertical, tier, domain, tag, limit),
        columns("id", "name", "tier", "max steps", "tags"),
        empty="The library has no such scenarios.",
    )


@command(app, "update", "update scn_1 --tier 2 --max-steps 30")
def update(
    asked: Asked,
    scenario: ScenarioRef,
    name: Annotated[str | None, typer.Option(help="A new name.")] = None,
    task: Task = None,
    tier: Tier = None,
    max_steps: Steps = None,
    tool: Tool = None,
    context: Context = None,
    verifier: Criterion = None,
    tag: Tag = None,
    file: SpecFile = None,
) -> None:
    """Change the fields of a scenario that are given, and only those."""
    given = _given(name, task, tier, max_steps, tool, context, verifier, tag)
    changes = fields_from(file, _UPDATED, given)
    require_changes(changes)
    decided_by = changes.pop("success_criteria_ref", None)
    asked.facts(
        asked.client.Scenario.update(
            scenario, None if decided_by is None else str(decided_by), **changes
        ),
        SHOWN,
    )


@command(app, "delete", "delete scn_1 --yes")
def delete(asked: Asked, scenario: ScenarioRef, yes: Yes = False) -> None:
    """Delete a scenario, and take it out of the suites that list it."""
    found = asked.client.Scenario.get(scenario)
    confirm(f"Delete scenario {found.name!r} ({found.id})?", yes=yes)
    asked.done(asked.client.Scenario.delete(found), f"deleted {found.id}")


def _given(
    name: str | None,
    task: str | None,
    tier: int | None,
    max_steps: int | None,
    tool: list[str] | None,
    context: str | None,
    verifier: str | None,
    tag: list[str] | None,
) -> dict[str, object]:
    return {
        "name": name,
        "task_prompt": task,
        "tier": tier,
        "max_steps": max_steps,
        "available_tools": tool,
        "context_injection": optional_object("--context", context),
        "success_criteria_ref": verifier,
        "tags": tag,
    }


def _described(file: str, environment: str | None) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for index, item in enumerate(objects_from(file, "scenarios")):
        what = f"scenario {index} of {shown(file)}"
        fields = checked_fields(what, item, FIELDS)
        if not fields.get("name"):
            raise ConfigurationError(f"{what} has no name")
        if environment is not None:
            fields["environment"] = environment
        found.append(fields)
    return found


def _create(asked: Asked, fields: Mapping[str, object]) -> Scenario:
    told = {name: value for name, value in fields.items() if name != "environment"}
    return call_with(asked.client.Scenario.create, {**told, "env_name": fields.get("environment")})

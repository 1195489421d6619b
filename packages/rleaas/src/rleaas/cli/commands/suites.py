"""`rleaas suite …`: scenarios in their order."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Annotated

import typer
from rlcore import ConfigurationError

from rleaas.cli.command import Asked, command
from rleaas.cli.confirm import Yes, confirm
from rleaas.cli.console import Column, columns
from rleaas.cli.names import completion
from rleaas.cli.nouns import noun
from rleaas.cli.options import Limit
from rleaas.cli.references import EnvOption, SuiteRef
from rleaas.cli.spec import SpecFile, call_with, fields_from

app = noun("suite")

FIELDS: Mapping[str, type] = {
    "name": str,
    "scenario_ids": list,
    "environment": str,
    "purpose": str,
    "suite_id": str,
}
SHOWN = (
    *columns("id", "name", "purpose", "environment", "version"),
    Column("scenarios", "scenario_ids"),
    Column("created", "created_at"),
    Column("updated", "updated_at"),
)

Scenarios = Annotated[
    list[str],
    typer.Argument(
        metavar="SCENARIO...",
        help="Names or ids of scenarios.",
        autocompletion=completion("scenario"),
    ),
]
Scenario = Annotated[
    list[str] | None,
    typer.Option(
        "--scenario",
        metavar="SCENARIO",
        help="The id of a scenario, in order; repeatable.",
        autocompletion=completion("scenario"),
    ),
]
Purpose = Annotated[str | None, typer.Option(help="`training` or `evaluation`.")]


@command(app, "list", "list --env Bank --purpose evaluation")
def list_suites(
    asked: Asked, environment: EnvOption = None, purpose: Purpose = None, limit: Limit = None
) -> None:
    """List suites, oldest first."""
    asked.rows(
        [*islice(asked.client.ScenarioSuite.iterate(environment, purpose), limit)],
        (
            *columns("id", "name", "purpose", "environment", "version"),
            Column("scenarios", lambda one: len(one.scenario_ids)),
        ),
        empty="No suites. `rleaas suite create NAME --scenario ID` makes one.",
    )


@command(app, "get", "get suite_1")
def get(asked: Asked, suite: SuiteRef) -> None:
    """Show one suite with its scenarios."""
    asked.facts(asked.client.ScenarioSuite.get(suite), SHOWN)


@command(
    app,
    "create",
    "create Bills --env Bank --scenario scn_1 --scenario scn_2",
    "create --file suite.yaml",
)
def create(
    asked: Asked,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Its name.")] = None,
    scenario: Scenario = None,
    environment: EnvOption = None,
    purpose: Purpose = None,
    id: Annotated[
        str | None, typer.Option("--id", help="An id of your own; a suite that has it is changed.")
    ] = None,
    file: SpecFile = None,
) -> None:
    """Make a suite, or change the one with the id that is given."""
    fields = fields_from(
        file,
        FIELDS,
        {
            "name": name,
            "scenario_ids": scenario,
            "environment": environment,
            "purpose": purpose,
            "suite_id": id,
        },
        required=("name",),
    )
    fields["env_name"] = fields.pop("environment", None)
    asked.facts(call_with(asked.client.ScenarioSuite.create, {"scenario_ids": [], **fields}), SHOWN)


@command(app, "add", "add suite_1 scn_3 scn_4")
def add(asked: Asked, suite: SuiteRef, scenarios: Scenarios) -> None:
    """Put scenarios at the end of a suite; those that are in it stay where they are."""
    found = asked.client.ScenarioSuite.get(suite)
    wanted = dict.fromkeys([*found.scenario_ids, *scenarios])
    asked.facts(asked.client.ScenarioSuite.update(suite, scenario_ids=[*wanted]), SHOWN)


@command(app, "remove", "remove suite_1 scn_3")
def remove(asked: Asked, suite: SuiteRef, scenarios: Scenarios) -> None:
    """Take scenarios out of a suite; the scenarios themselves stay."""
    found = asked.client.ScenarioSuite.get(suite)
    missing = [one for one in scenarios if one not in found.scenario_ids]
    if missing:
        raise ConfigurationError(
            f"suite {found.id!r} does not list {', '.join(map(repr, missing))}",
            hint=f"`rleaas suite get {found.id}` shows what it lists.",
        )
    left = [one for one in found.scenario_ids if one not in scenarios]
    asked.facts(asked.client.ScenarioSuite.update(suite, scenario_ids=left), SHOWN)


@command(app, "update", "update suite_1 --name 'All bills' --purpose evaluation")
def update(
    asked: Asked,
    suite: SuiteRef,
    name: Annotated[str | None, typer.Option(help="A new name.")] = None,
    scenario: Scenario = None,
    environment: EnvOption = None,
    purpose: Purpose = None,
) -> None:
    """Change what is given, and only that; a suite that differs has the next version."""
    if all(one is None for one in (name, scenario, environment, purpose)):
        raise ConfigurationError(
            "there is nothing to change", hint="Pass --name, --scenario, --env or --purpose."
        )
    asked.facts(
        asked.client.ScenarioSuite.update(
            suite, name=name, scenario_ids=scenario, purpose=purpose, environment=environment
        ),
        SHOWN,
    )


@command(app, "delete", "delete suite_1 --yes")
def delete(asked: Asked, suite: SuiteRef, yes: Yes = False) -> None:
    """Delete a suite; its scenarios stay."""
    found = asked.client.ScenarioSuite.get(suite)
    confirm(f"Delete suite {found.name!r} ({found.id})?", yes=yes)
    asked.done(asked.client.ScenarioSuite.delete(found), f"deleted {found.id}")

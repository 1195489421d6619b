"""`rleaas verifier …`: what judges episodes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Annotated

import typer

from rleaas.cli.command import Asked, command
from rleaas.cli.confirm import Yes, confirm
from rleaas.cli.console import Column, columns
from rleaas.cli.failures import FAILURE
from rleaas.cli.nouns import noun
from rleaas.cli.options import Limit
from rleaas.cli.references import Env, EnvOption, VerifierRef
from rleaas.cli.spec import (
    SpecFile,
    call_with,
    fields_from,
    json_objects,
    optional_object,
    require_changes,
)
from rleaas.models import ErrorRate

app = noun("verifier")

FIELDS: Mapping[str, type] = {
    "name": str,
    "verifier_type": str,
    "environment": str,
    "config": dict,
    "description": str,
    "system": str,
    "verifier_id": str,
    "failure_policy": dict,
    "status": str,
    "metadata": dict,
}
_UPDATED: Mapping[str, type] = {
    "name": str,
    "logic": dict,
    "description": str,
    "system": str,
    "failure_policy": dict,
    "metadata": dict,
}
SHOWN = (
    *columns("id", "name", "type", "status", "system", "environment", "version", "audited"),
    *columns("description", "logic", "metadata"),
    Column("failure policy", lambda one: one.failure_policy.to_dict()),
    Column("created", "created_at"),
    Column("updated", "updated_at"),
)

Config = Annotated[
    str | None, typer.Option(metavar="JSON", help="What it judges by; @FILE reads it.")
]
Policy = Annotated[
    str | None,
    typer.Option(metavar="JSON", help="What follows a failure: hard_fail, penalty, log_failure."),
]
Facts = Annotated[str | None, typer.Option("--metadata", metavar="JSON", help="Free facts.")]


@command(app, "list", "list --env Bank --type rule_based")
def list_verifiers(
    asked: Asked,
    environment: EnvOption = None,
    verifier_type: Annotated[
        str | None, typer.Option("--type", help="Only those of this type.")
    ] = None,
    system: Annotated[str | None, typer.Option(help="Only those about this system.")] = None,
    limit: Limit = None,
) -> None:
    """List verifiers, oldest first."""
    found = asked.client.Verifier.iterate(environment, verifier_type, system)
    asked.rows(
        [*islice(found, limit)],
        columns("id", "name", "type", "status", "environment", "version"),
        empty="No verifiers. `rleaas verifier create NAME --type rule_based` makes one.",
    )


@command(app, "get", "get v1")
def get(asked: Asked, verifier: VerifierRef) -> None:
    """Show one verifier."""
    asked.facts(asked.client.Verifier.get(verifier), SHOWN)


@command(
    app,
    "create",
    'create limits --type rule_based --config \'{"conditions": ["amount <= 100"]}\'',
    "create --file verifier.yaml --env Bank",
)
def create(
    asked: Asked,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Its name.")] = None,
    verifier_type: Annotated[
        str | None,
        typer.Option(
            "--type",
            help="rule_based, trajectory_based, llm_judge, composite, python or human_evaluation.",
        ),
    ] = None,
    environment: EnvOption = None,
    config: Config = None,
    description: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    system: Annotated[str | None, typer.Option(help="The system that it is about.")] = None,
    id: Annotated[
        str | None,
        typer.Option("--id", help="An id of your own; a verifier that has it is changed."),
    ] = None,
    failure_policy: Policy = None,
    metadata: Facts = None,
    disabled: Annotated[bool, typer.Option("--disabled", help="It is not to judge yet.")] = False,
    file: SpecFile = None,
) -> None:
    """Make a verifier, or change the one with the id that is given."""
    fields = fields_from(
        file,
        FIELDS,
        {
            "name": name,
            "verifier_type": verifier_type,
            "environment": environment,
            "config": optional_object("--config", config),
            "description": description,
            "system": system,
            "verifier_id": id,
            "failure_policy": optional_object("--failure-policy", failure_policy),
            "metadata": optional_object("--metadata", metadata),
            "status": "disabled" if disabled else None,
        },
        required=("name", "verifier_type"),
    )
    asked.facts(call_with(asked.client.Verifier.create, fields), SHOWN)


@command(app, "update", "update v1 --config @logic.json")
def update(
    asked: Asked,
    verifier: VerifierRef,
    name: Annotated[str | None, typer.Option(help="A new name.")] = None,
    config: Config = None,
    description: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    system: Annotated[str | None, typer.Option(help="Another system.")] = None,
    failure_policy: Policy = None,
    metadata: Facts = None,
    file: SpecFile = None,
) -> None:
    """Change the fields that are given; what it judges by gets a new version."""
    changes = fields_from(
        file,
        _UPDATED,
        {
            "name": name,
            "logic": optional_object("--config", config),
            "description": description,
            "system": system,
            "failure_policy": optional_object("--failure-policy", failure_policy),
            "metadata": optional_object("--metadata", metadata),
        },
    )
    require_changes(changes)
    asked.facts(asked.client.Verifier.get(verifier).update(**changes), SHOWN)


@command(app, "attach", "attach v1 Bank --weight 0.5")
def attach(
    asked: Asked,
    verifier: VerifierRef,
    environment: Env,
    weight: Annotated[float, typer.Option(help="Its share of the score.")] = 1.0,
) -> None:
    """Let a verifier judge an environment; again, with another weight."""
    found = asked.client.Verifier.get(verifier)
    answer = found.attach(environment, weight)
    asked.done(answer, f"{found.id} judges {environment} with weight {weight:g}")


@command(app, "detach", "detach v1 Bank")
def detach(asked: Asked, verifier: VerifierRef, environment: Env) -> None:
    """Let a verifier judge an environment no more."""
    found = asked.client.Verifier.get(verifier)
    asked.done(found.detach(environment), f"{found.id} no longer judges {environment}")


@command(
    app,
    "test",
    'test v1 --state \'{"amount": 20}\' --trajectory \'[{"tool": "pay"}]\'',
)
def try_out(
    asked: Asked,
    verifier: VerifierRef,
    state: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="The state at the episode's end; @FILE reads it."),
    ] = None,
    trajectory: Annotated[
        str | None, typer.Option(metavar="JSON", help="Its steps, a list; @FILE reads it.")
    ] = None,
) -> int:
    """Judge an episode; exit with 1 if it does not pass, or could not be judged."""
    steps = None if trajectory is None else json_objects("--trajectory", trajectory)
    result = asked.client.Verifier.test(verifier, optional_object("--state", state), steps)
    asked.facts(
        result, columns("outcome", "passed", "score", "version", "explanation", "breakdown")
    )
    return 0 if result.passed else FAILURE


@command(
    app,
    "audit",
    "audit v1 --env Bank",
    'audit v1 --good \'[{"trajectory": [{"tool": "kyc"}]}]\' --bad \'[{"state": {}}]\'',
)
def audit(
    asked: Asked,
    verifier: VerifierRef,
    good: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Episodes that have to pass, a list; @FILE reads it."),
    ] = None,
    bad: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Episodes that have to fail, a list; @FILE reads it."),
    ] = None,
    environment: EnvOption = None,
    scenario: Annotated[
        list[str] | None,
        typer.Option("--scenario", help="Of this scenario of the environment only; repeatable."),
    ] = None,
    repeats: Annotated[int, typer.Option(help="How often each episode is judged.")] = 3,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="An episode without steps may pass.")
    ] = False,
    most_wrong: Annotated[
        float, typer.Option(help="The share of known episodes that may be judged wrongly.")
    ] = 0.0,
) -> int:
    """Test a verifier with episodes whose worth is known; exit with 1 if something is wrong.

    With --env, they are the references and known-bad solutions of its scenarios.
    """
    found = asked.client.Verifier.audit(
        verifier,
        [] if good is None else json_objects("--good", good),
        [] if bad is None else json_objects("--bad", bad),
        environment=environment,
        scenario_ids=scenario,
        repeats=repeats,
        allow_empty=allow_empty,
        most_wrong=most_wrong,
    )
    asked.facts(
        found,
        (
            *columns("passed", "audited", "version"),
            Column("false positives", lambda one: _rate(one.false_positive_rate)),
            Column("false negatives", lambda one: _rate(one.false_negative_rate)),
            Column("grader errors", "grader_errors"),
            Column(
                "wrong",
                lambda one: [f"{it.probe}, {it.case}: {it.detail}" for it in one.findings],
            ),
        ),
    )
    return 0 if found.passed else FAILURE


@command(app, "versions", "versions v1")
def versions(asked: Asked, verifier: VerifierRef) -> None:
    """List what a verifier judged by, oldest first."""
    asked.rows(
        asked.client.Verifier.versions(verifier),
        (*columns("version", "logic"), Column("created", "created_at")),
        empty="No versions.",
    )


@command(app, "duplicate", "duplicate v1")
def duplicate(asked: Asked, verifier: VerifierRef) -> None:
    """Make a verifier that judges the same."""
    asked.facts(asked.client.Verifier.get(verifier).duplicate(), SHOWN)


@command(app, "enable", "enable v1")
def enable(asked: Asked, verifier: VerifierRef) -> None:
    """Let a verifier judge again."""
    found = asked.client.Verifier.get(verifier).enable()
    asked.done(found, f"{found.id} is {found.status}")


@command(app, "disable", "disable v1")
def disable(asked: Asked, verifier: VerifierRef) -> None:
    """Let a verifier judge no more, until it is enabled."""
    found = asked.client.Verifier.get(verifier).disable()
    asked.done(found, f"{found.id} is {found.status}")


@command(app, "delete", "delete v1 --yes")
def delete(asked: Asked, verifier: VerifierRef, yes: Yes = False) -> None:
    """Delete a verifier with its versions."""
    found = asked.client.Verifier.get(verifier)
    confirm(f"Delete verifier {found.name!r} ({found.id})?", yes=yes)
    asked.done(found.delete(), f"deleted {found.id}")


def _rate(rate: ErrorRate) -> str:
    if rate.value is None or rate.interval is None:
        return "none were judged"
    low, high = rate.interval
    return f"{rate.value:.1%} ({rate.count} of {rate.of}; 95 %: {low:.1%} to {high:.1%})"

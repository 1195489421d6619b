"""`rleaas rollout …`: episodes that are stored."""

from __future__ import annotations

from typing import Annotated

import typer

from rleaas.cli.command import Asked, command
from rleaas.cli.console import Column, columns, print_facts, print_json, print_table, say
from rleaas.cli.nouns import noun
from rleaas.cli.options import Limit
from rleaas.cli.references import Env, EnvOption

app = noun("rollout")

RolloutId = Annotated[str, typer.Argument(metavar="ROLLOUT_ID", help="The rollout's id.")]


@command(app, "list", "list --env Bank --limit 20")
def list_rollouts(asked: Asked, environment: EnvOption = None, limit: Limit = None) -> None:
    """List the rollouts of an environment, or of all, newest first."""
    asked.rows(
        asked.client.Evaluation.list_rollouts(environment)[:limit],
        (
            *columns("id"),
            Column("environment", "environment_name"),
            *columns("status", "score"),
            Column("steps", "total_steps"),
            *columns("success", "source"),
            Column("created", "created_at"),
        ),
        empty="No rollouts.",
    )


@command(app, "get", "get Bank rollout_1 --json")
def get(asked: Asked, environment: Env, rollout: RolloutId) -> None:
    """Show a rollout of an environment with its steps."""
    found = asked.client.Evaluation.get_rollout(rollout, environment)
    if asked.as_json:
        print_json(found)
        return
    print_facts(
        {
            "id": found.id,
            "environment": found.environment_name,
            "status": found.status,
            "score": found.score,
            "success": found.success,
            "job": found.job_id,
            "scenario": found.scenario_id,
            "created": found.created_at,
        }
    )
    say("")
    print_table(
        ("step", "what", "reward"),
        [
            (index, step.get("tool") or step.get("action"), step.get("reward"))
            for index, step in enumerate(found.steps)
        ],
        empty="No steps.",
    )


@command(app, "compare", "compare Bank rollout_1 rollout_2", "compare Bank eval_1 eval_2 --json")
def compare(
    asked: Asked,
    environment: Env,
    baseline: Annotated[str, typer.Argument(metavar="BASELINE", help="A rollout or evaluation.")],
    trained: Annotated[str, typer.Argument(metavar="TRAINED", help="Another one.")],
) -> None:
    """Show how two rollouts, or two evaluations, of an environment differ."""
    found = asked.client.Evaluation.get_rollout_comparison(environment, baseline, trained)
    asked.facts(found, COMPARISON)


COMPARISON = (
    Column("environment", "environment_name"),
    Column("delta", "delta"),
    Column("winner", "winner"),
    Column("winner id", "winner_id"),
    Column("pairs", lambda one: len(one.per_scenario_diff) or None),
)

"""`rleaas rollout …`: episodes that are stored."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, cast

import typer

from rleaas.cli.command import Asked, command
from rleaas.cli.console import Column, columns, print_facts, print_json, print_table, say
from rleaas.cli.nouns import noun
from rleaas.cli.options import Limit
from rleaas.cli.references import Env, EnvOption

if TYPE_CHECKING:
    from rleaas.models import RolloutComparison

app = noun("rollout")

RolloutId = Annotated[str, typer.Argument(metavar="ROLLOUT_ID", help="The rollout's id.")]


@command(app, "list", "list --env Bank --limit 20")
def list_rollouts(asked: Asked, environment: EnvOption = None, limit: Limit = None) -> None:
    """List the rollouts of an environment, or of all, newest first."""
    asked.rows(
        asked.client.Evaluation.list_rollouts(environment, limit),
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


@command(app, "steps", "steps Bank rollout_1", "steps Bank rollout_1 --limit 20 --json")
def steps(asked: Asked, environment: Env, rollout: RolloutId, limit: Limit = None) -> None:
    """List the steps of a rollout of an environment, in their order."""
    found = asked.client.Evaluation.rollout_steps(rollout, environment)
    asked.rows([*islice(found, limit)], columns("step", "tool", "reward"), empty="No steps.")


@command(app, "compare", "compare Bank rollout_1 rollout_2", "compare Bank eval_1 eval_2 --json")
def compare(
    asked: Asked,
    environment: Env,
    baseline: Annotated[str, typer.Argument(metavar="BASELINE", help="A rollout or evaluation.")],
    trained: Annotated[str, typer.Argument(metavar="TRAINED", help="Another one.")],
) -> None:
    """Show how two rollouts, or two evaluations, of an environment differ."""
    found = asked.client.Evaluation.get_rollout_comparison(environment, baseline, trained)
    print_comparison(asked, found)


def print_comparison(asked: Asked, found: RolloutComparison) -> None:
    """Print how two things differ: the scores, who is ahead, and each seed that both played."""
    if asked.as_json:
        print_json(found)
        return
    print_facts(
        {
            "environment": found.environment_name,
            "baseline": _scored(found.baseline),
            "trained": _scored(found.trained),
            "delta": found.delta,
            "ahead": found.winner,
            "seeds of both": len(found.per_scenario_diff),
            "seed by seed": _judged(found.paired),
        }
    )
    if found.per_scenario_diff:
        say("")
        titles = ("seed", "baseline", "trained", "delta")
        rows = [[one.get(title) for title in titles] for one in found.per_scenario_diff]
        print_table(titles, rows, empty="")


def _judged(paired: dict[str, object]) -> str | None:
    interval = paired.get("interval")
    if not isinstance(interval, list):
        return None
    low, high = cast("list[float]", interval)
    mean, verdict = paired.get("mean_difference"), paired.get("verdict")
    return f"{verdict}: {mean:.4g} [{low:.4g}, {high:.4g}] (95 %)"


def _scored(one: dict[str, object]) -> str:
    score = one.get("score", one.get("overall_score"))
    told = f"{score:.4g}" if isinstance(score, int | float) else "no score"
    return f"{one.get('id')}: {told}"

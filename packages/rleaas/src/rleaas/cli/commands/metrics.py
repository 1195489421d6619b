"""`rleaas metrics …`: figures of environments, and how the platform is doing."""

from __future__ import annotations

from typing import Annotated

import typer

from rleaas.cli.command import Asked, command
from rleaas.cli.confirm import Yes, confirm
from rleaas.cli.console import Column, columns, print_json, print_table, say
from rleaas.cli.names import completion
from rleaas.cli.nouns import noun
from rleaas.cli.options import Offset
from rleaas.cli.references import EnvOption
from rleaas.cli.spec import optional_object

app = noun("metrics")

_FIGURES = (
    Column("mean return", "avg_reward"),
    *columns("pass rate"),
    Column("mean steps", "avg_completion_steps"),
    *columns("episodes", "failed episodes"),
)


@command(app, "show", "show --env Bank --refresh")
def show(
    asked: Asked,
    environment: EnvOption = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Work them out anew, not from a short while ago.")
    ] = False,
) -> None:
    """Show the figures of an environment, or of all, over the rollouts that are stored.

    Each episode counts once; then come the figures of each agent and checkpoint.
    """
    found = asked.client.Metrics.get_kpis(environment, refresh)
    asked.facts(
        found,
        (
            Column("environment", "environment_name"),
            *_FIGURES,
            Column("AML compliance rate", "aml_compliance_rate"),
            Column("KYC check rate", "kyc_check_rate"),
            *columns("rates"),
        ),
    )
    if found.agents and not asked.as_json:
        say("")
        print_table(
            ("agent", "checkpoint", "episodes", "avg reward", "pass rate"),
            [
                (
                    one.get("model") or one.get("agent"),
                    *(one.get(key) for key in ("checkpoint_id", "episodes", "avg_reward")),
                    one.get("pass_rate"),
                )
                for one in found.agents
            ],
            empty="Nobody played.",
        )


@command(app, "history", "history --env Bank --limit 10 --json")
def history(
    asked: Asked,
    environment: EnvOption = None,
    limit: Annotated[int, typer.Option(min=0, help="How many at most; 0 is all.")] = 50,
    offset: Offset = 0,
) -> None:
    """List the figures of each evaluation, newest first."""
    asked.rows(
        asked.client.Metrics.get_kpi_history(environment, limit, offset),
        (
            Column("time", "timestamp"),
            Column("environment", "environment_name"),
            *columns("checkpoint"),
            *_FIGURES,
        ),
        empty="No evaluations were kept.",
    )


@command(app, "clear", "clear --yes")
def clear(asked: Asked, yes: Yes = False) -> None:
    """Let the platform forget the history of all environments; rollouts stay."""
    confirm("Forget the figures of all evaluations?", yes=yes)
    asked.done(asked.client.Metrics.clear_kpi_history(), "cleared the history")


@command(app, "health", "health --json")
def health(asked: Asked) -> int:
    """Show how the platform is doing; exit with 1 if it is not ok."""
    found = asked.client.Metrics.agent_health()
    asked.facts(found, [Column(name, name) for name in found.keys()])  # noqa: SIM118 - no mapping
    return 0 if found.get("status") == "ok" else 1


@command(app, "tools", "tools")
def tools(asked: Asked) -> None:
    """List the questions that agents ask the platform, also by `rleaas mcp`."""
    asked.rows(
        asked.client.Metrics.list_agent_tools(), columns("name", "description"), empty="None."
    )


@command(app, "ask", 'ask get_environment_kpis --params \'{"environment": "Bank"}\'')
def ask(
    asked: Asked,
    tool: Annotated[
        str,
        typer.Argument(
            metavar="TOOL", help="One of `metrics tools`.", autocompletion=completion("question")
        ),
    ],
    params: Annotated[
        str | None, typer.Option(metavar="JSON", help="Its parameters; @FILE reads them.")
    ] = None,
) -> None:
    """Ask one of those questions, and print its answer as JSON."""
    answer = asked.client.Metrics.invoke_agent_tool(tool, optional_object("--params", params))
    print_json(answer)

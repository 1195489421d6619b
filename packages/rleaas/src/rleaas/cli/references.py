"""Arguments that name something on the server, completed from there."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rleaas.cli.names import completion


def _argument(metavar: str, help: str, kind: str) -> Any:
    # Typer's own return type is Any, too: what it makes stands for a value of the annotation.
    return typer.Argument(metavar=metavar, help=help, autocompletion=completion(kind))


Env = Annotated[str, _argument("ENV", "The environment's name or id.", "environment")]
EnvOption = Annotated[
    str | None,
    typer.Option(
        "--env",
        metavar="ENV",
        help="The environment, by name or id.",
        autocompletion=completion("environment"),
    ),
]
ToolRef = Annotated[str, _argument("TOOL", "The tool's name or id.", "tool")]
AgentRef = Annotated[str, _argument("AGENT", "The agent's name or id.", "agent")]
VerifierRef = Annotated[str, _argument("VERIFIER", "The verifier's name or id.", "verifier")]
ScenarioRef = Annotated[str, _argument("SCENARIO", "The scenario's name or id.", "scenario")]
SuiteRef = Annotated[str, _argument("SUITE", "The suite's name or id.", "suite")]
JobRef = Annotated[str, _argument("JOB_ID", "The job's id.", "training_job")]
EvaluationRef = Annotated[str, _argument("EVALUATION_ID", "The evaluation's id.", "evaluation")]
CheckpointRef = Annotated[str, typer.Argument(metavar="CHECKPOINT_ID", help="The checkpoint's id.")]
DeploymentRef = Annotated[str, _argument("DEPLOYMENT", "The deployment's id.", "deployment")]
WebhookRef = Annotated[str, _argument("WEBHOOK", "The webhook's id.", "webhook")]
AssetRef = Annotated[str, _argument("ASSET", "The data asset's id.", "data_asset")]
OrganisationRef = Annotated[
    str, _argument("ORGANISATION", "The organisation's name or id.", "organisation")
]

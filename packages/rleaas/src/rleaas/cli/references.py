"""Arguments that name something on the server, completed from there."""

from __future__ import annotations

from typing import Annotated

import typer

from rleaas.cli.names import completion

Env = Annotated[
    str,
    typer.Argument(
        metavar="ENV",
        help="The environment's name or id.",
        autocompletion=completion("environment"),
    ),
]
EnvOption = Annotated[
    str | None,
    typer.Option(
        "--env",
        metavar="ENV",
        help="The environment, by name or id.",
        autocompletion=completion("environment"),
    ),
]
ToolRef = Annotated[
    str,
    typer.Argument(
        metavar="TOOL", help="The tool's name or id.", autocompletion=completion("tool")
    ),
]
AgentRef = Annotated[
    str,
    typer.Argument(
        metavar="AGENT", help="The agent's name or id.", autocompletion=completion("agent")
    ),
]
VerifierRef = Annotated[
    str,
    typer.Argument(
        metavar="VERIFIER", help="The verifier's name or id.", autocompletion=completion("verifier")
    ),
]
ScenarioRef = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO", help="The scenario's name or id.", autocompletion=completion("scenario")
    ),
]
SuiteRef = Annotated[
    str,
    typer.Argument(
        metavar="SUITE", help="The suite's name or id.", autocompletion=completion("suite")
    ),
]
JobRef = Annotated[
    str,
    typer.Argument(
        metavar="JOB_ID", help="The job's id.", autocompletion=completion("training_job")
    ),
]
EvaluationRef = Annotated[
    str,
    typer.Argument(
        metavar="EVALUATION_ID",
        help="The evaluation's id.",
        autocompletion=completion("evaluation"),
    ),
]
CheckpointRef = Annotated[str, typer.Argument(metavar="CHECKPOINT_ID", help="The checkpoint's id.")]
DeploymentRef = Annotated[
    str,
    typer.Argument(
        metavar="DEPLOYMENT", help="The deployment's id.", autocompletion=completion("deployment")
    ),
]
WebhookRef = Annotated[
    str,
    typer.Argument(
        metavar="WEBHOOK", help="The webhook's id.", autocompletion=completion("webhook")
    ),
]
AssetRef = Annotated[
    str,
    typer.Argument(
        metavar="ASSET", help="The data asset's id.", autocompletion=completion("data_asset")
    ),
]
OrganisationRef = Annotated[
    str,
    typer.Argument(
        metavar="ORGANISATION",
        help="The organisation's name or id.",
        autocompletion=completion("organisation"),
    ),
]

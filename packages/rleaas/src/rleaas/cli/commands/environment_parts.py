"""`rleaas env …`: an environment's tools, scenarios, verifiers, data, repository and reports."""

from __future__ import annotations

from typing import Annotated

import typer

from rleaas.cli.command import Asked, command
from rleaas.cli.commands.environments import SHOWN, app
from rleaas.cli.console import Column, columns
from rleaas.cli.names import completion
from rleaas.cli.options import Limit
from rleaas.cli.references import Env
from rleaas.cli.spec import optional_object

Verifier = Annotated[
    str,
    typer.Argument(
        metavar="VERIFIER", help="The verifier's name or id.", autocompletion=completion("verifier")
    ),
]
Asset = Annotated[
    str,
    typer.Argument(
        metavar="ASSET", help="The data asset's id.", autocompletion=completion("data_asset")
    ),
]
_REPOSITORY = (
    *columns("provider"),
    Column("repository", "repoUrl"),
    *columns("branch"),
    Column("folder", "contextPath"),
    Column("sign-in", "authType"),
    *columns("username"),
    Column("has token", "hasToken"),
)


@command(app, "tools", "tools Bank")
def tools(asked: Asked, environment: Env) -> None:
    """List the tools of an environment."""
    asked.rows(
        asked.client.Tools.list(env_name=environment),
        columns("id", "name", "type", "category", "description"),
        empty="No tools. `rleaas tool create NAME --env ENV` adds one.",
    )


@command(app, "configure-tools", "configure-tools Bank --tool pay --tool refund --approval block")
def configure_tools(
    asked: Asked,
    environment: Env,
    access: Annotated[str | None, typer.Option(help="`all`, `allowlist` or `denylist`.")] = None,
    tool: Annotated[
        list[str] | None, typer.Option(help="A tool that may be called; repeatable.")
    ] = None,
    approval: Annotated[
        str | None, typer.Option(help="`auto_grant`, `block` or `real_approval`.")
    ] = None,
) -> None:
    """Say which tools episodes may call, and what happens to calls that need approval."""
    found = asked.client.Environment.get(environment)
    asked.facts(found.configure_tools(access, tool, approval), SHOWN)


@command(app, "scenarios", "scenarios Bank")
def scenarios(asked: Asked, environment: Env) -> None:
    """List the scenarios of an environment."""
    asked.rows(
        asked.client.Environment.get(environment).list_scenarios(),
        columns("id", "name", "tier", "max steps", "source"),
        empty="No scenarios. `rleaas scenario create NAME --env ENV` adds one.",
    )


@command(app, "verifiers", "verifiers Bank")
def verifiers(asked: Asked, environment: Env) -> None:
    """List the verifiers that judge an environment, with their weights."""
    asked.rows(
        asked.client.Environment.get(environment).list_verifiers(),
        columns("id", "name", "type", "status", "weight", "version"),
        empty="No verifiers. `rleaas verifier attach VERIFIER ENV` attaches one.",
    )


@command(app, "attach-verifier", "attach-verifier Bank v1 --weight 0.5")
def attach_verifier(
    asked: Asked,
    environment: Env,
    verifier: Verifier,
    weight: Annotated[float, typer.Option(help="Its share of the score.")] = 1.0,
) -> None:
    """Let a verifier judge an environment; the same as `rleaas verifier attach`."""
    found = asked.client.Environment.get(environment)
    answer = found.attach_verifier(verifier, weight)
    asked.done(answer, f"{verifier} judges {found.name} with weight {weight:g}")


@command(app, "detach-verifier", "detach-verifier Bank v1")
def detach_verifier(asked: Asked, environment: Env, verifier: Verifier) -> None:
    """Let a verifier judge an environment no more; the verifier stays."""
    found = asked.client.Environment.get(environment)
    asked.done(found.detach_verifier(verifier), f"{verifier} no longer judges {found.name}")


@command(app, "data", "data Bank")
def data(asked: Asked, environment: Env) -> None:
    """List the data that an environment is given."""
    asked.rows(
        asked.client.Environment.get(environment).list_data(),
        (
            Column("asset", "data_asset_id"),
            Column("name", lambda one: None if one.data_asset is None else one.data_asset.name),
            Column("settings", "injection_config"),
            Column("attached", "attached_at"),
        ),
        empty="No data. `rleaas env attach-data ENV ASSET` attaches some.",
    )


@command(app, "attach-data", 'attach-data Bank data_1 --config \'{"table": "accounts"}\'')
def attach_data(
    asked: Asked,
    environment: Env,
    asset: Asset,
    config: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="How the environment is to take it in."),
    ] = None,
) -> None:
    """Give an environment a data asset that was uploaded."""
    settings = optional_object("--config", config)
    found = asked.client.Environment.get(environment)
    asked.done(found.attach_data(asset, settings), f"{found.name} is given {asset}")


@command(app, "detach-data", "detach-data Bank data_1")
def detach_data(asked: Asked, environment: Env, asset: Asset) -> None:
    """Take a data asset away from an environment; the asset itself stays."""
    found = asked.client.Environment.get(environment)
    asked.done(found.detach_data(asset), f"{found.name} is no longer given {asset}")


@command(app, "repo", "repo Bank")
def repository(asked: Asked, environment: Env) -> None:
    """Show where an environment's code is; the token is never told."""
    asked.facts(asked.client.Environment.load_repo_config(environment), _REPOSITORY)


@command(
    app,
    "set-repo",
    "set-repo Bank https://github.com/acme/bank.git --branch main",
    "set-repo Bank URL --sign-in pat --username me --token-stdin < token.txt",
)
def set_repository(
    asked: Asked,
    environment: Env,
    url: Annotated[str, typer.Argument(metavar="URL", help="The repository.")],
    branch: Annotated[str, typer.Option(help="Its branch.")] = "main",
    folder: Annotated[str, typer.Option(help="The folder in it.")] = "",
    provider: Annotated[str, typer.Option(help="Who keeps it.")] = "github",
    sign_in: Annotated[str, typer.Option(help="`none`, `pat` or `basic`.")] = "none",
    username: Annotated[str, typer.Option(help="As whom to sign in.")] = "",
    token_stdin: Annotated[
        bool, typer.Option("--token-stdin", help="Read the token from standard input.")
    ] = False,
) -> None:
    """Keep where an environment's code is; the token is stored encrypted and never told."""
    saved = asked.client.Environment.save_repo_config(
        environment,
        provider=provider,
        repo_url=url,
        branch=branch,
        context_path=folder,
        auth_type=sign_in,
        username=username,
        token=_token(token_stdin),
    )
    asked.facts(saved, _REPOSITORY)


@command(app, "check-repo", "check-repo https://github.com/acme/bank.git --branch main")
def check_repository(
    asked: Asked,
    url: Annotated[str, typer.Argument(metavar="URL", help="The repository.")],
    branch: Annotated[str, typer.Option(help="The branch that it is to have.")] = "main",
    sign_in: Annotated[str, typer.Option(help="`none`, `pat` or `basic`.")] = "none",
    username: Annotated[str, typer.Option(help="As whom to sign in.")] = "",
    token_stdin: Annotated[
        bool, typer.Option("--token-stdin", help="Read the token from standard input.")
    ] = False,
) -> int:
    """Have the platform ask a repository for its branch; exit with 1 if it has none."""
    found = asked.client.Environment.validate_repo(
        url, branch, sign_in, username, _token(token_stdin)
    )
    asked.facts(found, columns("ok", "message", "code", "commit"))
    return 0 if found.ok else 1


@command(app, "risk", "risk Bank")
def risk(asked: Asked, environment: Env) -> None:
    """Show what was refused around an environment, and the thresholds in force."""
    asked.facts(
        asked.client.Environment.get(environment).get_risk_report(),
        (
            Column("environment", "environment_name"),
            Column("thresholds", "risk_thresholds"),
            Column("violations", "compliance_violations"),
        ),
    )


@command(app, "analyze", "analyze Bank --json")
def analyze(asked: Asked, environment: Env) -> None:
    """Show what is known of an environment's code; its repository is looked into now."""
    asked.facts(
        asked.client.Environment.get(environment).analyze(),
        (
            *columns("name", "commit"),
            Column("files", lambda one: len(one.files)),
            Column("endpoints", lambda one: len(one.endpoints)),
            Column("models", "models"),
        ),
    )


@command(app, "urls", "urls Bank")
def urls(asked: Asked, environment: Env) -> None:
    """List the URLs that deployments of an environment have been given."""
    found = asked.client.Environment.get(environment).public_urls()
    if asked.as_json:
        asked.facts(found, ())
        return
    asked.rows(found.urls, columns("label", "url", "type"), empty="No URLs.")


@command(app, "rollouts", "rollouts Bank --limit 10")
def rollouts(asked: Asked, environment: Env, limit: Limit = None) -> None:
    """List the rollouts that are stored of an environment, newest first."""
    found = asked.client.Evaluation.list_rollouts(environment)
    asked.rows(
        found[:limit],
        columns("id", "status", "score", "total steps", "success", "job id", "created at"),
        empty="No rollouts.",
    )


def _token(is_asked: bool) -> str:
    from rleaas.cli.secrets import typed_secret

    return typed_secret("token") if is_asked else ""

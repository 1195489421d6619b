"""`rleaas env …`: registered environments."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rlcore import ConfigurationError

from rleaas.cli.console import print_facts, print_json, print_table, say
from rleaas.cli.options import AsJson, BaseUrl, Key, ProfileName, connect

if TYPE_CHECKING:
    from rleaas.models import Environment

app = typer.Typer(no_args_is_help=True, help="Register environments and look at them.")

Reference = Annotated[str, typer.Argument(metavar="ENV", help="The environment's name or id.")]


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name to register.")],
    source: Annotated[
        str,
        typer.Option(
            help="gym://ID, python://MODULE:ATTR, or the tcp:// or unix:// address of a served one."
        ),
    ],
    kwargs_json: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Keyword arguments for what makes the environment."),
    ] = None,
    description: Annotated[str, typer.Option(help="One sentence, up to 200 characters.")] = "",
    tag: Annotated[list[str] | None, typer.Option(help="May be given several times.")] = None,
    wait: Annotated[bool, typer.Option(help="Wait until it is ready or failed.")] = True,
    timeout: Annotated[float, typer.Option(help="Seconds to wait at most.")] = 120.0,
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> None:
    """Register an environment, and wait until the platform has brought it up once."""
    kwargs = {} if kwargs_json is None else json_object("--kwargs-json", kwargs_json)
    with connect(base_url, api_key, profile) as client:
        environment = client.Environment.create(
            name, description=description, source=source, kwargs=kwargs, tags=tag or []
        )
        if wait:
            environment.wait_until_ready(timeout=timeout, progress=False if as_json else None)
        _print_environment(environment.record, as_json)


@app.command("get")
def get(
    environment: Reference,
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> None:
    """Show one environment."""
    with connect(base_url, api_key, profile) as client:
        _print_environment(client.Environment.get(environment).record, as_json)


@app.command("list")
def list_environments(
    status: Annotated[str | None, typer.Option(help="Only those in this status.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many.")] = None,
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> None:
    """List the registered environments."""
    with connect(base_url, api_key, profile) as client:
        found = [e.record for e in client.Environment.list(status=status, limit=limit)]
    if as_json:
        print_json(found)
        return
    print_table(
        ("name", "version", "status", "source", "digest"),
        [(e.name, e.version, e.status, e.source, _short(e.contract_digest)) for e in found],
        empty="No environments. `rleaas env create NAME --source gym://ID` registers one.",
    )


@app.command("delete")
def delete(
    environment: Reference,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> None:
    """Delete an environment's registration."""
    with connect(base_url, api_key, profile) as client:
        found = client.Environment.get(environment)
        if not yes and not _confirmed(f"Delete environment {found.name!r}?"):
            raise typer.Abort
        answer = found.delete(confirm=True)
    if as_json:
        print_json(answer)
        return
    say(f"deleted {found.name}")


@app.command("endpoint")
def endpoint(
    environment: Reference,
    version: Annotated[int | None, typer.Option(min=1, help="Instead of the current one.")] = None,
    base_url: BaseUrl = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> None:
    """Start the environment if need be, and show where it is served.

    The token that its address wants is short-lived, and part of the --json output only.
    """
    with connect(base_url, api_key, profile) as client:
        grant = client.Environment.endpoint(environment, version)
    if as_json:
        print_json(grant)
        return
    print_facts(
        {
            "environment": f"{grant.environment_name}@{grant.version}",
            "address": grant.address,
            "digest": grant.contract_digest,
            "token": "in the --json output" if grant.token else "not needed",
            "token expires": grant.expires_at,
        }
    )


def json_object(option: str, text: str) -> dict[str, object]:
    """Read an option's JSON object.

    Raises:
        ConfigurationError: it is not one.
    """
    try:
        value: object = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"{option} {text!r} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ConfigurationError(
            f"{option} {text!r} is not a JSON object", hint='Write it as {"key": value}.'
        )
    return cast("dict[str, object]", value)


def _short(digest: str | None) -> str | None:
    return None if digest is None else f"{digest[:19]}…"


def _print_environment(environment: Environment, as_json: bool) -> None:
    if as_json:
        print_json(environment)
        return
    print_facts(
        {
            "name": environment.name,
            "id": environment.id,
            "version": environment.version,
            "status": environment.status,
            "reason": environment.status_reason,
            "source": environment.source,
            "kwargs": environment.kwargs,
            "digest": environment.contract_digest,
            "description": environment.description,
            "tags": environment.tags,
            "created": environment.created_at,
        }
    )


def _confirmed(question: str) -> bool:
    try:
        return typer.confirm(question, err=True)
    except typer.Abort as error:
        if sys.stdin.isatty():
            raise
        raise ConfigurationError(
            "nobody is there to confirm the deletion", hint="Pass --yes to delete without asking."
        ) from error

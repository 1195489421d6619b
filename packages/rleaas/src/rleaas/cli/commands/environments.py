"""`rleaas env …`: registered environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer
from rlcore import ConfigurationError, EnvironmentNotFound

from rleaas.cli.command import Asked, command
from rleaas.cli.confirm import Yes, confirm
from rleaas.cli.console import Column, columns, print_facts, print_json
from rleaas.cli.nouns import noun
from rleaas.cli.options import Limit, Offset
from rleaas.cli.references import Env
from rleaas.cli.spec import SpecFile, call_with, fields_from, optional_object

app = noun("env")

FIELDS: Mapping[str, type] = {
    "name": str,
    "description": str,
    "source": str,
    "kwargs": dict,
    "vertical": str,
    "domain": str,
    "tags": list,
    "config": dict,
    "metadata": dict,
    "tools": list,
    "scenarios": list,
    "verifiers": list,
    "verifier_configs": dict,
    "simulations": list,
    "owner": str,
    "sdk": str,
    "compute": str,
    "license": str,
    "infrastructure": dict,
    "repo": dict,
}
_LISTED = (
    *columns("name", "version", "status", "vertical", "source"),
    Column("digest", lambda one: _short(one.contract_digest)),
)
SHOWN = (
    *columns("name", "id", "version", "status"),
    Column("reason", "status_reason"),
    *columns("source", "kwargs", "config"),
    Column("digest", "contract_digest"),
    *columns("vertical", "domain", "description", "tags", "metadata"),
    *columns("tool count", "scenario count", "entity count"),
    Column("created", "created_at"),
    Column("updated", "updated_at"),
)

Wait = Annotated[bool, typer.Option(help="Wait until it is ready or failed.")]
Timeout = Annotated[float, typer.Option(min=0, help="Seconds to wait at most.")]


@command(
    app,
    "create",
    "create MyCartPole --source gym://CartPole-v1",
    "create --file environment.yaml",
)
def create(
    asked: Asked,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The name to register.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            help="gym://ID, python://MODULE:ATTR, sim://FinSim, the tcp:// or unix:// address of "
            "a served one, or `custom` for the built-in world of its vertical, if there is one."
        ),
    ] = None,
    kwargs_json: Annotated[
        str | None,
        typer.Option(
            metavar="JSON", help="Keyword arguments for what makes the environment; @FILE reads it."
        ),
    ] = None,
    description: Annotated[
        str | None, typer.Option(help="One sentence, up to 200 characters.")
    ] = None,
    vertical: Annotated[str | None, typer.Option(help="Such as FinSim.")] = None,
    domain: Annotated[str | None, typer.Option(help="Such as finance.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="May be given several times.")] = None,
    config: Annotated[
        str | None, typer.Option(metavar="JSON", help="Settings of the environment.")
    ] = None,
    metadata: Annotated[str | None, typer.Option(metavar="JSON", help="Free facts.")] = None,
    file: SpecFile = None,
    wait: Wait = True,
    timeout: Timeout = 120.0,
) -> None:
    """Register an environment, or change the one of this name, and wait until it is up."""
    given: Mapping[str, object] = {
        "name": name,
        "source": source,
        "kwargs": optional_object("--kwargs-json", kwargs_json),
        "description": description,
        "vertical": vertical,
        "domain": domain,
        "tags": tag,
        "config": optional_object("--config", config),
        "metadata": optional_object("--metadata", metadata),
    }
    fields = fields_from(file, FIELDS, given, required=("name",))
    environment = call_with(asked.client.Environment.create, fields)
    if wait and environment.source not in (None, "custom"):
        environment.wait_until_ready(timeout=timeout, progress=False if asked.as_json else None)
    asked.facts(environment, SHOWN)


@command(app, "get", "get MyCartPole --json")
def get(asked: Asked, environment: Env) -> None:
    """Show one environment."""
    asked.facts(asked.client.Environment.get(environment), SHOWN)


@command(app, "list", "list --status ready --limit 20")
def list_environments(
    asked: Asked,
    status: Annotated[str | None, typer.Option(help="Only those in this status.")] = None,
    vertical: Annotated[str | None, typer.Option(help="Only those of this vertical.")] = None,
    limit: Limit = None,
    offset: Offset = 0,
) -> None:
    """List the registered environments, oldest first."""
    found = asked.client.Environment.list(
        status=status, vertical=vertical, limit=limit, offset=offset or None
    )
    asked.rows(
        found,
        _LISTED,
        empty="No environments. `rleaas env create NAME --source gym://ID` registers one.",
    )


@command(app, "update", "update MyCartPole --name OurCartPole", "update Bank --config @bank.json")
def update(
    asked: Asked,
    environment: Env,
    name: Annotated[str | None, typer.Option(help="A new name.")] = None,
    config: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Settings to change; the others stay. @FILE reads it."),
    ] = None,
    vertical: Annotated[str | None, typer.Option(help="Another vertical.")] = None,
    system: Annotated[str | None, typer.Option(help="The system that it stands for.")] = None,
) -> None:
    """Change an environment; other settings make a new version."""
    changes = optional_object("--config", config)
    if changes is None and name is None and vertical is None and system is None:
        raise ConfigurationError(
            "there is nothing to change", hint="Pass --name, --config, --vertical or --system."
        )
    found = asked.client.Environment.get(environment)
    asked.facts(found.update(changes, name, system, vertical), SHOWN)


@command(app, "delete", "delete MyCartPole --yes")
def delete(asked: Asked, environment: Env, yes: Yes = False) -> None:
    """Delete an environment for good, with its jobs, checkpoints and evaluations."""
    found = asked.client.Environment.get(environment)
    confirm(f"Delete environment {found.name!r}?", yes=yes)
    asked.done(found.delete(confirm=True), f"deleted {found.name}")


@command(app, "start", "start MyCartPole")
def start(asked: Asked, environment: Env, wait: Wait = True, timeout: Timeout = 120.0) -> None:
    """Bring an environment up now, also a deprovisioned one."""
    found = asked.client.Environment.get(environment).start()
    if wait:
        found.wait_until_ready(timeout=timeout, progress=False if asked.as_json else None)
    asked.facts(found, SHOWN)


@command(app, "stop", "stop MyCartPole")
def stop(asked: Asked, environment: Env) -> None:
    """End an environment's processes; whoever needs it next starts it again."""
    found = asked.client.Environment.get(environment).stop()
    asked.done(found, f"stopped {found.name}")


@command(app, "deprovision", "deprovision MyCartPole --yes")
def deprovision(asked: Asked, environment: Env, yes: Yes = False) -> None:
    """End an environment's processes until `env start`; its data stays."""
    found = asked.client.Environment.get(environment)
    confirm(f"Deprovision environment {found.name!r}?", yes=yes)
    asked.done(found.deprovision(), f"deprovisioned {found.name}")


@command(app, "wait", "wait MyCartPole --timeout 60")
def wait_until_ready(asked: Asked, environment: Env, timeout: Timeout = 120.0) -> None:
    """Wait until an environment is ready; exit with 1 if it fails, 9 if it takes too long."""
    found = asked.client.Environment.get(environment)
    found.wait_until_ready(timeout=timeout, progress=False if asked.as_json else None)
    asked.facts(found, SHOWN)


@command(app, "versions", "versions MyCartPole")
def versions(asked: Asked, environment: Env) -> None:
    """List an environment's versions, oldest first; NAME@3 addresses the third."""
    asked.rows(
        asked.client.Environment.versions(environment),
        (
            *columns("version", "status", "source", "kwargs"),
            Column("digest", lambda one: _short(one.contract_digest)),
            Column("created", "created_at"),
        ),
        empty="No versions.",
    )


@command(app, "endpoint", "endpoint MyCartPole --version 1 --json")
def endpoint(
    asked: Asked,
    environment: Env,
    version: Annotated[int | None, typer.Option(min=1, help="Instead of the current one.")] = None,
) -> None:
    """Start the environment if need be, and show where it is served.

    The token that its address wants is short-lived, and part of the --json output only.
    """
    grant = asked.client.Environment.endpoint(environment, version)
    if asked.as_json:
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


@command(app, "clone", "clone MyCartPole OurCartPole", "clone Bank Trial --existing")
def clone(
    asked: Asked,
    environment: Env,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the copy.")],
    existing: Annotated[
        bool,
        typer.Option("--existing", help="Copy the contents into an environment that is there."),
    ] = False,
    wait: Wait = True,
    timeout: Timeout = 120.0,
) -> None:
    """Register the same environment under another name, with its scenarios and verifiers."""
    source = asked.client.Environment.get(environment).record
    copy = asked.client.Environment.get(name) if existing else None
    if copy is None:
        _require_free(asked, name)
        copy = asked.client.Environment.create(
            name,
            description=source.description,
            source=source.source or "custom",
            kwargs=source.kwargs,
            config=source.config,
            vertical=source.vertical,
            domain=source.domain,
            tags=source.tags,
            metadata=source.metadata,
        )
    scenarios = copy.clone_scenarios(source.name)
    verifiers = copy.clone_verifiers(source.name)
    if wait and not existing and source.source not in (None, "custom"):
        copy.wait_until_ready(timeout=timeout, progress=False if asked.as_json else None)
    told = {"scenarios": scenarios.cloned, "verifiers": verifiers.cloned}
    if asked.as_json:
        print_json({"environment": copy.record, "cloned": told})
        return
    print_facts({"name": copy.name, "status": copy.status, "copied": told})


def _require_free(asked: Asked, name: str) -> None:
    try:
        asked.client.Environment.get(name)
    except EnvironmentNotFound:
        return
    raise ConfigurationError(
        f"there is an environment {name!r} already",
        hint="Choose another name, or pass --existing to copy the contents into it.",
    )


def _short(digest: str | None) -> str | None:
    return None if digest is None else f"{digest[:19]}…"

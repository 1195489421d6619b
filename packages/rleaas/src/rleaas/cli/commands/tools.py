"""`rleaas tool …`: what agents call in environments."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Annotated

import typer

from rleaas.cli.command import Asked, command
from rleaas.cli.confirm import Yes, confirm
from rleaas.cli.console import Column, columns
from rleaas.cli.nouns import noun
from rleaas.cli.options import Limit
from rleaas.cli.references import EnvOption, ToolRef
from rleaas.cli.spec import (
    STDIN,
    SpecFile,
    call_with,
    fields_from,
    objects_from,
    optional_object,
    require_changes,
)

app = noun("tool")

FIELDS: Mapping[str, type] = {
    "name": str,
    "environment": str,
    "tool_type": str,
    "category": str,
    "description": str,
    "parameters": dict,
    "compliance_tags": list,
    "authorization_required": bool,
    "docker_image": str,
    "spec_path": str,
    "endpoint": dict,
    "preconditions": list,
    "effects": list,
    "returns": dict,
    "ends_episode": bool,
    "suggested": dict,
}
_UPDATED: Mapping[str, type] = {
    "name": str,
    "type": str,
    "category": str,
    "description": str,
    "parameters": dict,
    "compliance_tags": list,
    "authorization_required": bool,
    "docker_image": str,
}
SHOWN = (
    *columns("id", "name", "type", "category", "description", "environment", "parameters"),
    *columns("compliance tags", "authorization required", "docker image", "source"),
    Column("created", "created_at"),
    Column("updated", "updated_at"),
)

Parameters = Annotated[
    str | None,
    typer.Option(metavar="JSON", help="The JSON schema of its arguments; @FILE reads it."),
]
Tag = Annotated[list[str] | None, typer.Option("--compliance-tag", help="Such as PCI; repeatable.")]
Approval = Annotated[
    bool | None,
    typer.Option(
        "--needs-approval/--needs-no-approval", help="Whether calls of it want an approval."
    ),
]


@command(app, "list", "list --env Bank --category payments")
def list_tools(
    asked: Asked,
    environment: EnvOption = None,
    category: Annotated[str | None, typer.Option(help="Only this category or type.")] = None,
    limit: Limit = None,
) -> None:
    """List tools, those of an environment or all, oldest first."""
    asked.rows(
        [*islice(asked.client.Tools.iterate(environment, category), limit)],
        columns("id", "name", "type", "category", "environment", "description"),
        empty="No tools. `rleaas tool create NAME --env ENV` adds one.",
    )


@command(app, "get", "get pay --env Bank")
def get(asked: Asked, tool: ToolRef, environment: EnvOption = None) -> None:
    """Show one tool."""
    asked.facts(asked.client.Tools.get(tool, env_name=environment), SHOWN)


@command(
    app,
    "create",
    "create pay --env Bank --description 'Pays a bill'",
    "create quote --env Bank --endpoint https://rates.example.com/quote",
    "create --file tool.yaml --env Bank",
)
def create(
    asked: Asked,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Its name.")] = None,
    environment: EnvOption = None,
    tool_type: Annotated[
        str | None, typer.Option("--type", help="Such as custom, api or docker.")
    ] = None,
    category: Annotated[str | None, typer.Option(help="Such as payments.")] = None,
    description: Annotated[str | None, typer.Option(help="What it does.")] = None,
    parameters: Parameters = None,
    compliance_tag: Tag = None,
    needs_approval: Approval = None,
    docker_image: Annotated[str | None, typer.Option(help="The image that has it.")] = None,
    spec: Annotated[
        str | None, typer.Option("--spec", metavar="FILE", help="Its OpenAPI or other description.")
    ] = None,
    endpoint: Annotated[
        str | None, typer.Option(metavar="URL", help="What calls of it in a world ask.")
    ] = None,
    file: SpecFile = None,
) -> None:
    """Add a tool to an environment, or without one to all.

    An endpoint, the operations of an OpenAPI file, or `effects` in --file make it one of the
    environment's built-in world, which calls it for real.
    """
    fields = fields_from(
        file,
        FIELDS,
        {
            "name": name,
            "environment": environment,
            "tool_type": tool_type,
            "category": category,
            "description": description,
            "parameters": optional_object("--parameters", parameters),
            "compliance_tags": compliance_tag,
            "authorization_required": needs_approval,
            "docker_image": docker_image,
            "spec_path": spec,
            "endpoint": None if endpoint is None else {"url": endpoint},
        },
        required=("name",),
    )
    fields["env_id"] = fields.pop("environment", None)
    asked.facts(call_with(asked.client.Tools.register, fields), SHOWN)


@command(app, "apply", "apply --file tools.yaml --env Bank", "apply --file - < tools.json")
def apply(asked: Asked, environment: EnvOption = None, file: SpecFile = None) -> None:
    """Add or change the tools in a file: a list, or an object with `tools`.

    A tool without an id is known by its name.
    """
    described = objects_from(file or STDIN, "tools")
    put = asked.client.Tools.upsert(described, environment)
    asked.done(put, f"{put.created} created, {put.updated} updated")


@command(app, "update", "update pay --description 'Pays a bill at once'")
def update(
    asked: Asked,
    tool: ToolRef,
    name: Annotated[str | None, typer.Option(help="A new name.")] = None,
    tool_type: Annotated[str | None, typer.Option("--type", help="Another type.")] = None,
    category: Annotated[str | None, typer.Option(help="Another category.")] = None,
    description: Annotated[str | None, typer.Option(help="What it does.")] = None,
    parameters: Parameters = None,
    compliance_tag: Tag = None,
    needs_approval: Approval = None,
    docker_image: Annotated[str | None, typer.Option(help="Another image.")] = None,
    file: SpecFile = None,
) -> None:
    """Change the fields of a tool that are given, and only those."""
    changes = fields_from(
        file,
        _UPDATED,
        {
            "name": name,
            "type": tool_type,
            "category": category,
            "description": description,
            "parameters": optional_object("--parameters", parameters),
            "compliance_tags": compliance_tag,
            "authorization_required": needs_approval,
            "docker_image": docker_image,
        },
    )
    require_changes(changes)
    found = asked.client.Tools.get(tool)
    asked.facts(asked.client.Tools.update(found.id, **changes), SHOWN)


@command(app, "delete", "delete pay --yes")
def delete(asked: Asked, tool: ToolRef, yes: Yes = False) -> None:
    """Delete a tool."""
    found = asked.client.Tools.get(tool)
    confirm(f"Delete tool {found.name!r} ({found.id})?", yes=yes)
    asked.done(asked.client.Tools.delete(found), f"deleted {found.id}")

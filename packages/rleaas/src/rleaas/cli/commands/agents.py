"""`rleaas agent …`: agents, their versions, bindings and exports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from rleaas.cli.command import Asked, command
from rleaas.cli.confirm import Yes, confirm
from rleaas.cli.console import Column, columns, print_facts, print_json, print_records, say
from rleaas.cli.nouns import noun
from rleaas.cli.options import Limit
from rleaas.cli.references import AgentRef, CheckpointRef, Env
from rleaas.cli.spec import SpecFile, call_with, fields_from, require_changes

app = noun("agent")

FIELDS: Mapping[str, type] = {
    "name": str,
    "agent_id": str,
    "base_model": str,
    "model_ref": str,
    "framework": str,
    "trainable": bool,
    "compatible_categories": list,
    "tool_permissions": list,
}
_UPDATED = {name: kind for name, kind in FIELDS.items() if name != "agent_id"}
SHOWN = (
    *columns("id", "name", "version", "base model", "model ref", "framework", "trainable"),
    Column("categories", "compatible_categories"),
    Column("tools", "tool_permissions"),
    Column("created", "created_at"),
    Column("updated", "updated_at"),
)
_DRY_RUN = (
    *columns("id", "status", "environment", "episodes"),
    Column("mean return", "avg_reward"),
    Column("pass rate", "pass_rate"),
    Column("evaluation", "evaluation_id"),
    *columns("error"),
)
_BINDING = (
    *columns("id", "environment", "label", "status", "agent version"),
    Column("created", "created_at"),
)

BaseModel = Annotated[str | None, typer.Option(help="The model it is built on.")]
ModelRef = Annotated[
    str | None, typer.Option(metavar="REF", help="Where its model is, such as checkpoint://ID.")
]
Framework = Annotated[
    str | None, typer.Option(help="`openai_compatible`, `anthropic` or `custom`.")
]
Trainable = Annotated[
    bool | None, typer.Option("--trainable/--not-trainable", help="Whether it can be trained.")
]
Category = Annotated[
    list[str] | None, typer.Option("--category", help="A vertical that it is for; repeatable.")
]
Tool = Annotated[
    list[str] | None, typer.Option("--tool", help="A tool that it may call; repeatable.")
]


@command(app, "list", "list --limit 20")
def list_agents(asked: Asked, limit: Limit = None) -> None:
    """List the agents, oldest first."""
    asked.rows(
        asked.client.Agent.list()[:limit],
        columns("id", "name", "version", "base model", "model ref", "framework"),
        empty="No agents. `rleaas agent register NAME` registers one.",
    )


@command(app, "get", "get agent_1")
def get(asked: Asked, agent: AgentRef) -> None:
    """Show one agent."""
    asked.facts(asked.client.Agent.get(agent), SHOWN)


@command(
    app,
    "register",
    "register Teller --model-ref checkpoint://ckpt_1 --tool pay",
    "register --file agent.yaml",
)
def register(
    asked: Asked,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Its name.")] = None,
    id: Annotated[
        str | None,
        typer.Option("--id", help="An id of your own; an agent that has it is changed."),
    ] = None,
    base_model: BaseModel = None,
    model_ref: ModelRef = None,
    framework: Framework = None,
    trainable: Trainable = None,
    category: Category = None,
    tool: Tool = None,
    file: SpecFile = None,
) -> None:
    """Register an agent, or change the one with the id that is given."""
    fields = fields_from(
        file,
        FIELDS,
        {
            "name": name,
            "agent_id": id,
            "base_model": base_model,
            "model_ref": model_ref,
            "framework": framework,
            "trainable": trainable,
            "compatible_categories": category,
            "tool_permissions": tool,
        },
        required=("name",),
    )
    asked.facts(call_with(asked.client.Agent.register, fields), SHOWN)


@command(app, "update", "update agent_1 --model-ref checkpoint://ckpt_2")
def update(
    asked: Asked,
    agent: AgentRef,
    name: Annotated[str | None, typer.Option(help="A new name.")] = None,
    base_model: BaseModel = None,
    model_ref: ModelRef = None,
    framework: Framework = None,
    trainable: Trainable = None,
    category: Category = None,
    tool: Tool = None,
    file: SpecFile = None,
) -> None:
    """Change the fields that are given, which makes a new version."""
    changes = fields_from(
        file,
        _UPDATED,
        {
            "name": name,
            "base_model": base_model,
            "model_ref": model_ref,
            "framework": framework,
            "trainable": trainable,
            "compatible_categories": category,
            "tool_permissions": tool,
        },
    )
    require_changes(changes)
    asked.facts(asked.client.Agent.configure(agent, **changes), SHOWN)


@command(app, "versions", "versions agent_1")
def versions(asked: Asked, agent: AgentRef) -> None:
    """List what an agent was configured as, oldest first."""
    asked.rows(
        asked.client.Agent.list_versions(agent),
        (*columns("version", "is current", "reason", "config"), Column("created", "created_at")),
        empty="No versions.",
    )


@command(app, "rollback", "rollback agent_1 v2")
def rollback(
    asked: Asked,
    agent: AgentRef,
    version: Annotated[str, typer.Argument(metavar="VERSION", help="Such as v2.")],
) -> None:
    """Configure an agent as it was at a version, which makes a new one."""
    asked.facts(asked.client.Agent.rollback(agent, version), SHOWN)


@command(app, "validate", "validate agent_1")
def validate(asked: Asked, agent: AgentRef) -> int:
    """Check an agent's model, its file and its permissions; exit with 1 if one does not hold."""
    found = asked.client.Agent.validate(agent)
    if asked.as_json:
        print_json(found)
    else:
        print_records(found.checks, columns("name", "passed", "detail"), empty="No checks.")
        say("valid" if found.valid else "not valid")
    return 0 if found.valid else 1


@command(app, "bind", "bind agent_1 Bank --label trial")
def bind(
    asked: Asked,
    agent: AgentRef,
    environment: Env,
    label: Annotated[str | None, typer.Option(help="What to call the binding.")] = None,
) -> None:
    """Bind an agent, at its current version, to an environment."""
    asked.facts(asked.client.Agent.deploy(agent, environment, label), _BINDING)


@command(app, "bindings", "bindings agent_1")
def bindings(asked: Asked, agent: AgentRef) -> None:
    """List what an agent was bound to, newest first."""
    asked.rows(
        asked.client.Agent.list_deployments(agent),
        _BINDING,
        empty="No bindings. `rleaas agent bind AGENT ENV` makes one.",
    )


@command(app, "dry-run", "dry-run agent_1 Bank --episodes 3")
def dry_run(
    asked: Asked,
    agent: AgentRef,
    environment: Env,
    episodes: Annotated[int, typer.Option(min=1, help="How many episodes.")] = 5,
) -> None:
    """Start a few episodes of an agent; `agent dry-runs` says how they went."""
    asked.facts(asked.client.Agent.dry_run(agent, environment, episodes), _DRY_RUN)


@command(app, "dry-runs", "dry-runs agent_1")
def dry_runs(asked: Asked, agent: AgentRef) -> None:
    """List an agent's dry runs as they stand now, newest first."""
    asked.rows(asked.client.Agent.list_dry_runs(agent), _DRY_RUN, empty="No dry runs.")


@command(app, "export", "export ckpt_1 --agent agent_1 --format huggingface --out agent.zip")
def export(
    asked: Asked,
    checkpoint: CheckpointRef,
    agent: Annotated[str | None, typer.Option("--agent", help="The agent that it is of.")] = None,
    format: Annotated[
        str, typer.Option(help="`huggingface`, `safetensors`, `pytorch` or `onnx`.")
    ] = "huggingface",
    metadata: Annotated[bool, typer.Option(help="With facts about the training.")] = True,
    audit_hash: Annotated[bool, typer.Option(help="With the head of the audit chain.")] = True,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Save the file here.")
    ] = None,
) -> None:
    """Give out a checkpoint as a file, and save it where --out says."""
    made = asked.client.Agent.export(
        checkpoint,
        agent_id=agent,
        format=format,
        include_metadata=metadata,
        include_audit_hash=audit_hash,
        download_to=out,
    )
    if asked.as_json:
        print_json(made)
        return
    print_facts(
        {
            "artifact": made.artifact_id,
            "format": made.format,
            "bytes": made.size_bytes,
            "sha256": made.sha256,
            "checked": made.checks,
            "saved as": made.downloaded_to,
            "download": None if made.downloaded_to else made.download_url,
        }
    )


@command(app, "delete", "delete agent_1 --yes")
def delete(asked: Asked, agent: AgentRef, yes: Yes = False) -> None:
    """Delete an agent with its versions and records."""
    found = asked.client.Agent.get(agent)
    confirm(f"Delete agent {found.name!r} ({found.id})?", yes=yes)
    asked.done(found.delete(), f"deleted {found.id}")

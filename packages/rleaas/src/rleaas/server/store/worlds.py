"""What an environment has of its built-in world: the tools and verifiers that it lists."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from rleaas.server.rules.json_values import fields
from rleaas.server.rules.worlds import world_of
from rleaas.server.store import catalogue, tools, verifiers
from rleaas.server.store.tables import EnvironmentRow, ToolRow, VerifierRow, VersionRow
from rleaas.sims import Tool, Vertical

BUILT_IN = "built-in"
"""The `source` of what comes with a world."""


def take_in(session: Session, version: VersionRow) -> None:
    """List the tools of the version's world, and none of another; have its verifiers at hand."""
    environment = version.environment
    vertical = world_of(version.source)
    kept = set[str]() if vertical is None else {tool.name for tool in vertical.tools}
    own = select(ToolRow).where(ToolRow.environment_id == environment.id)
    for row in session.scalars(own).all():
        if row.details.get("source") == BUILT_IN and row.name not in kept:
            session.delete(row)
    if vertical is None:
        return
    for tool in vertical.tools:
        tools.upsert(session, _change_of(tool, environment))
    _have_verifiers(session, vertical)
    session.flush()
    session.refresh(environment, ["tool_count"])


def _change_of(tool: Tool, environment: EnvironmentRow) -> tools.ToolChange:
    return tools.ToolChange(
        name=tool.name,
        type=tool.category,
        category=tool.category,
        description=tool.description,
        parameters=dict(tool.parameters),
        environment=str(environment.id),
        details={"source": BUILT_IN, "compliance_tags": list(tool.compliance_tags)},
    )


def _have_verifiers(session: Session, vertical: Vertical) -> None:
    for one in vertical.verifiers:
        change = verifiers.VerifierChange(
            name=one["name"],
            type=one["type"],
            system=vertical.name,
            description=one.get("description", ""),
            logic=fields(one["logic"]),
            details={"source": BUILT_IN, "compliance_tags": list(one["compliance_tags"])},
        )
        row = catalogue.by_id(session, VerifierRow, one["id"])
        if row is None:
            verifiers.create(session, one["id"], change)
        elif row.details.get("source") == BUILT_IN:
            verifiers.apply(session, row, change)  # a newer release may judge otherwise

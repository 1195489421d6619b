"""Agents, what they were configured as, and what was done with them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from rlcore import (
    AgentNotFound,
    CheckpointNotFound,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
)
from sqlalchemy import select
from sqlalchemy.orm import Session

from rleaas.server.rules.agent_checks import checkpoint_reference, names_file
from rleaas.server.rules.catalogue import merged, new_id
from rleaas.server.store import catalogue, jobs
from rleaas.server.store.tables import (
    AgentRecordRow,
    AgentRow,
    AgentVersionRow,
    CheckpointRow,
    JobRow,
    JsonObject,
)

DRY_RUN: Final = "dry_run"
DEPLOYMENT: Final = "deployment"
EXPORT: Final = "export"
_FIELDS: Final = (
    "name",
    "base_model",
    "model_ref",
    "framework",
    "trainable",
    "compatible_categories",
    "tool_permissions",
)
_PREFIX: Final = {DRY_RUN: "dry", DEPLOYMENT: "bind", EXPORT: "artifact"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentChange:
    """What a client says of an agent; None leaves as it is."""

    name: str | None = None
    base_model: str | None = None
    model_ref: str | None = None
    framework: str | None = None
    trainable: bool | None = None
    compatible_categories: list[str] | None = None
    tool_permissions: list[str] | None = None
    details: Mapping[str, object] = field(default_factory=dict[str, object])


def find(session: Session, reference: str) -> AgentRow:
    """The agent with this id, else the one with this name.

    Raises:
        AgentNotFound: there is none.
        ConflictError: several have the name.
    """
    return catalogue.find(session, AgentRow, reference, AgentNotFound)


def upsert(session: Session, agent_id: str | None, change: AgentChange) -> tuple[AgentRow, bool]:
    """Register an agent, or change the one with its id.

    Returns:
        The agent, and whether it is new.

    Raises:
        InvalidRequestError: a new one without a name.
    """
    row = None if agent_id is None else catalogue.by_id(session, AgentRow, agent_id)
    if row is not None:
        return configure(session, row, change), False
    if change.name is None:
        raise InvalidRequestError(
            f"the new agent {agent_id or ''!r} has no name",
            code="agent_without_name",
            hint="Give it a name",
        )
    now = datetime.now(UTC)
    row = AgentRow(
        id=agent_id or new_id("agent"),
        name=change.name,
        base_model=change.base_model or "",
        model_ref=change.model_ref,
        framework=change.framework or "openai_compatible",
        trainable=True if change.trainable is None else change.trainable,
        compatible_categories=change.compatible_categories or [],
        tool_permissions=change.tool_permissions or [],
        details=merged({}, change.details),
        version=1,
        created_at=now,
        updated_at=now,
    )
    session.add(row)
    session.flush()
    _keep_version(session, row, "registered")
    return row, True


def configure(session: Session, row: AgentRow, change: AgentChange) -> AgentRow:
    """Change what is said; an agent that differs has a new version."""
    before = config_of(row)
    catalogue.take(row, change, _FIELDS)
    row.details = merged(row.details, change.details)
    _advance(session, row, before, "configured")
    return row


def roll_back(session: Session, row: AgentRow, number: int) -> AgentRow:
    """Configure an agent as it was at a version, which makes a new one when it differs.

    Raises:
        NotFoundError: it has no such version.
    """
    found = session.scalar(
        select(AgentVersionRow).where(
            AgentVersionRow.agent_row_id == row.row_id, AgentVersionRow.version == number
        )
    )
    if found is None:
        raise NotFoundError(
            kind="agent_version",
            ref=f"v{number}",
            code="agent_version_not_found",
            hint=f"{row.id!r} has the versions v1 to v{row.version}",
        )
    before = config_of(row)
    for name, value in found.config.items():
        setattr(row, name, value)
    _advance(session, row, before, f"rolled back to v{number}")
    return row


def config_of(row: AgentRow) -> JsonObject:
    """What an agent is configured as."""
    return {
        "name": row.name,
        "base_model": row.base_model,
        "model_ref": row.model_ref,
        "framework": row.framework,
        "trainable": row.trainable,
        "compatible_categories": list(row.compatible_categories),
        "tool_permissions": list(row.tool_permissions),
        "details": dict(row.details),
    }


def page(session: Session, *, after: int, limit: int) -> tuple[Sequence[AgentRow], str | None]:
    """Agents in the order in which they came."""
    return catalogue.page(session, AgentRow, (), after=after, limit=limit)


def versions(session: Session, row: AgentRow) -> Sequence[AgentVersionRow]:
    """What an agent was configured as, oldest first."""
    return session.scalars(
        select(AgentVersionRow)
        .where(AgentVersionRow.agent_row_id == row.row_id)
        .order_by(AgentVersionRow.version)
    ).all()


def note(
    session: Session, row: AgentRow, kind: str, status: str, data: JsonObject
) -> AgentRecordRow:
    """Keep something that was done with an agent."""
    made = AgentRecordRow(
        id=new_id(_PREFIX[kind]),
        agent_row_id=row.row_id,
        kind=kind,
        status=status,
        data=data,
        created_at=datetime.now(UTC),
    )
    session.add(made)
    session.flush()
    return made


def notes(session: Session, row: AgentRow, kind: str) -> Sequence[AgentRecordRow]:
    """What was done with an agent of this kind, newest first."""
    return session.scalars(
        select(AgentRecordRow)
        .where(AgentRecordRow.agent_row_id == row.row_id, AgentRecordRow.kind == kind)
        .order_by(AgentRecordRow.created_at.desc(), AgentRecordRow.id.desc())
    ).all()


def latest_checkpoint(session: Session, row: AgentRow) -> CheckpointRow | None:
    """The newest checkpoint of the agent: of the trainings that were asked for it, or its model.

    None: no training of it has saved one, and its model is no checkpoint.

    Raises:
        ConflictError: its model is one that cannot be used.
    """
    own = own_checkpoint(session, row)
    if own is None and names_file(row.model_ref):
        raise ConflictError(
            f"agent {row.id!r} names the file {row.model_ref!r}, which this platform cannot read",
            code="agent_not_playable",
            hint="Configure model_ref='checkpoint://ID' with a checkpoint of this platform",
        )
    trained = session.scalars(
        select(CheckpointRow)
        .join(JobRow, JobRow.id == CheckpointRow.job_id)
        .where(JobRow.request["model"].as_string() == row.id)
        .order_by(CheckpointRow.created_at.desc(), CheckpointRow.episode.desc())
        .limit(1)
    ).first()
    found = [one for one in (own, trained) if one is not None]
    return max(found, key=lambda one: one.created_at, default=None)


def own_checkpoint(session: Session, row: AgentRow) -> CheckpointRow | None:
    """The checkpoint that an agent's model is; None: its model is something else.

    Raises:
        ConflictError: its `model_ref` names one that does not exist.
    """
    reference = checkpoint_reference(row.model_ref)
    if reference is None:
        return None
    try:
        return jobs.find_checkpoint(session, reference)
    except CheckpointNotFound as error:
        raise ConflictError(
            f"the checkpoint {reference!r} of agent {row.id!r} does not exist",
            code="agent_not_playable",
            hint="Configure model_ref with one that exists",
        ) from error


def _advance(session: Session, row: AgentRow, before: JsonObject, reason: str) -> None:
    if config_of(row) != before:
        row.version += 1
        row.updated_at = datetime.now(UTC)
        _keep_version(session, row, reason)
    session.flush()


def _keep_version(session: Session, row: AgentRow, reason: str) -> None:
    session.add(
        AgentVersionRow(
            agent_row_id=row.row_id,
            version=row.version,
            config=config_of(row),
            reason=reason,
            created_at=datetime.now(UTC),
        )
    )
    session.flush()

"""Environments and their versions in the database."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rlcore import ConflictError, EnvironmentNotFound
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from rleaas.server.rules import lifecycle
from rleaas.server.rules.names import environment_id
from rleaas.server.store import events
from rleaas.server.store.tables import EnvironmentRow, JobRow, JsonObject, VersionRow


@dataclass(frozen=True, slots=True)
class Registration:
    """What a client says about an environment when it registers one."""

    name: str
    description: str = ""
    vertical: str | None = None
    domain: str | None = None
    tags: list[str] = field(default_factory=list[str])
    details: JsonObject = field(default_factory=dict[str, object])
    source: str | None = None
    kwargs: JsonObject = field(default_factory=dict[str, object])
    config: JsonObject = field(default_factory=dict[str, object])


def find(session: Session, reference: str) -> EnvironmentRow:
    """The environment with this name or numeric id.

    Raises:
        EnvironmentNotFound: there is none.
    """
    number = environment_id(reference)
    where = EnvironmentRow.name == reference if number is None else EnvironmentRow.id == number
    row = session.scalar(select(EnvironmentRow).where(where))
    if row is None:
        raise EnvironmentNotFound(reference)
    return row


def find_version(session: Session, reference: str, version: int | None) -> VersionRow:
    """One version of an environment, the newest when none is named.

    Raises:
        EnvironmentNotFound: there is no such environment, or no such version of it.
    """
    row = find(session, reference)
    if version is None:
        return row.latest
    for candidate in row.versions:
        if candidate.version == version:
            return candidate
    raise EnvironmentNotFound(
        f"{row.name}@{version}",
        code="environment_version_not_found",
        hint=f"{row.name!r} has the versions 1 to {row.latest.version}",
    )


def upsert(session: Session, asked: Registration, reason: str | None) -> tuple[VersionRow, bool]:
    """Register an environment, or update it; a changed source, kwargs or config is a new version.

    Returns:
        The newest version, and whether it is new.
    """
    now = datetime.now(UTC)
    row = session.scalar(select(EnvironmentRow).where(EnvironmentRow.name == asked.name))
    if row is None:
        row = EnvironmentRow(name=asked.name, created_at=now, versions=[])
        session.add(row)
    row.description = asked.description
    row.vertical, row.domain = asked.vertical, asked.domain
    row.tags, row.details = asked.tags, asked.details
    row.updated_at = now
    if row.versions and _same_served(row.latest, asked):
        session.flush()
        return row.latest, False
    return _add_version(session, row, asked.source, asked.kwargs, asked.config, reason), True


def change(
    session: Session, row: EnvironmentRow, *, name: str | None, config: JsonObject | None
) -> tuple[VersionRow, bool]:
    """Rename an environment, or give it another config, which is a new version.

    Raises:
        ConflictError: another environment has the new name.
    """
    if name is not None and name != row.name:
        taken = session.scalar(select(EnvironmentRow.id).where(EnvironmentRow.name == name))
        if taken is not None:
            raise ConflictError(
                f"another environment is called {name!r}",
                code="name_taken",
                hint="Choose another name, or delete that one first",
            )
        row.name = name
    row.updated_at = datetime.now(UTC)
    latest = row.latest
    if config is None or config == latest.config:
        session.flush()
        return latest, False
    added = _add_version(session, row, latest.source, latest.kwargs, config, latest.status_reason)
    return added, True


def page(
    session: Session, *, status: str | None, vertical: str | None, after: int, limit: int | None
) -> Sequence[EnvironmentRow]:
    """Environments in the order of their ids, those after `after`."""
    newest = (
        select(VersionRow.environment_id, func.max(VersionRow.version).label("version"))
        .group_by(VersionRow.environment_id)
        .subquery()
    )
    query = (
        select(EnvironmentRow)
        .join(newest, newest.c.environment_id == EnvironmentRow.id)
        .join(
            VersionRow,
            (VersionRow.environment_id == EnvironmentRow.id)
            & (VersionRow.version == newest.c.version),
        )
        .where(EnvironmentRow.id > after)
        .order_by(EnvironmentRow.id)
        .limit(limit)
    )
    if status is not None:
        query = query.where(VersionRow.status == status)
    if vertical is not None:
        query = query.where(EnvironmentRow.vertical == vertical)
    return session.scalars(query).all()


def set_status(session: Session, version_id: int, status: str, reason: str | None = None) -> None:
    """Record how a version is doing."""
    session.execute(
        update(VersionRow)
        .where(VersionRow.id == version_id)
        .values(status=status, status_reason=reason)
    )


def tell(session: Session, version_id: int, kind: str, data: JsonObject) -> None:
    """Append an event about a version; one that was deleted meanwhile has none any more."""
    owner = session.scalar(select(VersionRow.organisation_id).where(VersionRow.id == version_id))
    if owner is not None:
        subject = f"environment_version:{version_id}"
        events.add(session, subject, kind, data, organisation=owner)


def keep_contract(
    session: Session, version_id: int, contract: JsonObject, digest: str
) -> tuple[str, JsonObject]:
    """Store a version's contract at its first start; later ones change nothing.

    Returns:
        The digest and the contract on record.
    """
    row = session.get_one(VersionRow, version_id)
    if row.contract_digest is None or row.contract is None:
        row.contract, row.contract_digest = contract, digest
        session.flush()
    return row.contract_digest or digest, row.contract or contract


def unfinished_jobs(session: Session, row: EnvironmentRow) -> Sequence[str]:
    """Ids of jobs that still use the environment."""
    return session.scalars(
        select(JobRow.id)
        .join(VersionRow, VersionRow.id == JobRow.version_id)
        .where(VersionRow.environment_id == row.id)
        .where(JobRow.status.not_in(lifecycle.TERMINAL))
    ).all()


def forget_processes(session: Session) -> None:
    """After a start: nothing is being provisioned any more, whatever the last server was doing."""
    session.execute(
        update(VersionRow)
        .where(VersionRow.status == lifecycle.PROVISIONING)
        .values(status=lifecycle.REGISTERED)
    )


def _same_served(version: VersionRow, asked: Registration) -> bool:
    return (
        version.source == asked.source
        and version.kwargs == asked.kwargs
        and version.config == asked.config
    )


def _add_version(
    session: Session,
    row: EnvironmentRow,
    source: str | None,
    kwargs: JsonObject,
    config: JsonObject,
    reason: str | None,
) -> VersionRow:
    version = VersionRow(
        version=row.latest.version + 1 if row.versions else 1,
        source=source,
        kwargs=kwargs,
        config=config,
        status=lifecycle.REGISTERED,
        status_reason=reason,
        created_at=datetime.now(UTC),
    )
    row.versions.append(version)
    session.flush()
    return version

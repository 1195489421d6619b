"""Environments and their versions in the database."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rlcore import ConflictError, EnvironmentNotFound
from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session, contains_eager

from rleaas.server.rules import lifecycle
from rleaas.server.rules.json_values import fields, items
from rleaas.server.rules.names import canonical_name, environment_id, split_version
from rleaas.server.store import events
from rleaas.server.store.tables import EnvironmentRow, JobRow, JsonObject, ToolRow, VersionRow


@dataclass(frozen=True, slots=True)
class Registration:
    """What a client says about an environment; what is None it does not say.

    Attributes:
        serves: whether it says how the environment is served; if so, kwargs and config belong to
            that.
    """

    name: str
    description: str | None = None
    vertical: str | None = None
    domain: str | None = None
    tags: list[str] | None = None
    details: JsonObject = field(default_factory=dict[str, object])
    serves: bool = False
    source: str | None = None
    kwargs: JsonObject | None = None
    config: JsonObject | None = None


def find(session: Session, reference: str) -> EnvironmentRow:
    """The environment with this name or numeric id.

    Raises:
        EnvironmentNotFound: there is none.
    """
    number = environment_id(reference)
    name = canonical_name(reference)
    where = EnvironmentRow.name == name if number is None else EnvironmentRow.id == number
    row = None if "\0" in name else session.scalar(select(EnvironmentRow).where(where))
    if row is None:
        raise EnvironmentNotFound(reference)
    return row


def find_version(session: Session, reference: str, version: int | None = None) -> VersionRow:
    """One version of an environment: the numbered one, that of `name@3`, or the newest.

    Raises:
        EnvironmentNotFound: there is no such environment, or no such version of it.
    """
    name, pinned = split_version(reference)
    row = find(session, name)
    wanted = pinned if version is None else version
    if wanted is None:
        return row.latest
    for candidate in row.versions:
        if candidate.version == wanted:
            return candidate
    raise EnvironmentNotFound(
        f"{row.name}@{wanted}",
        code="environment_version_not_found",
        hint=f"{row.name!r} has the versions 1 to {row.latest.version}",
    )


def read_version(session: Session, reference: str, version: int | None = None) -> VersionRow:
    """The same as `find_version`, for reading, by one question: not with all other versions.

    Raises:
        EnvironmentNotFound: there is no such environment, or no such version of it.
    """
    name, pinned = split_version(reference)
    wanted = pinned if version is None else version
    number = environment_id(name)
    name = canonical_name(name)
    named = EnvironmentRow.name == name if number is None else EnvironmentRow.id == number
    query = (
        select(VersionRow)
        .join(VersionRow.environment)
        .where(named)
        .order_by(VersionRow.version.desc())
        .limit(1)
        .options(contains_eager(VersionRow.environment).lazyload(EnvironmentRow.versions))
    )
    if wanted is not None:
        query = query.where(VersionRow.version == wanted)
    row = None if "\0" in name else session.scalar(query)
    return row or find_version(session, reference, version)  # which knows what is missing


def existing(session: Session, name: str) -> EnvironmentRow | None:
    """The environment with exactly this name, if there is one."""
    return session.scalar(select(EnvironmentRow).where(EnvironmentRow.name == name))


def upsert(session: Session, asked: Registration, reason: str | None) -> tuple[VersionRow, bool]:
    """Register an environment, or change what the registration says about it.

    A changed source, kwargs or config is a new version.

    Returns:
        The newest version, and whether it is new.
    """
    now = datetime.now(UTC)
    row = existing(session, asked.name)
    if row is None:
        row = EnvironmentRow(
            name=asked.name,
            description="",
            vertical=None,
            domain=None,
            tags=[],
            details={},
            created_at=now,
            versions=[],
        )
        session.add(row)
    return _apply(session, row, asked, reason)


def merge(session: Session, row: EnvironmentRow, asked: Registration) -> tuple[VersionRow, bool]:
    """Change what is said about an environment, its name included; everything else stays.

    Returns:
        The newest version, and whether it is new.

    Raises:
        ConflictError: another environment has the new name.
    """
    _rename(session, row, asked.name)
    return _apply(session, row, asked, row.latest.status_reason)


def repeat(session: Session, row: EnvironmentRow) -> VersionRow:
    """A new version that is served as the newest one, as what is served is another by now."""
    latest = row.latest
    row.updated_at = datetime.now(UTC)
    return _add_version(session, row, latest.source, latest.kwargs, latest.config, None)


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


def set_reason(session: Session, version_id: int, reason: str) -> None:
    """Say more about the status that a version has; one that is ready and has none is running."""
    session.execute(
        update(VersionRow).where(VersionRow.id == version_id).values(status_reason=reason)
    )


def versions_in_work(session: Session) -> set[int]:
    """The versions that unfinished jobs use."""
    return set(
        session.scalars(select(JobRow.version_id).where(JobRow.status.not_in(lifecycle.TERMINAL)))
    )


def versions_to_serve(session: Session, version_ids: Sequence[int]) -> set[int]:
    """Those of the versions that are still there and not deprovisioned."""
    return set(
        session.scalars(
            select(VersionRow.id).where(
                VersionRow.id.in_(version_ids), VersionRow.status != lifecycle.DEPROVISIONED
            )
        )
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


def tool_references(session: Session, row: EnvironmentRow) -> set[str]:
    """Ids and names of the tools that the environment's episodes could call."""
    query = select(ToolRow.id, ToolRow.name).where(
        or_(ToolRow.environment_id == row.id, ToolRow.environment_id.is_(None))
    )
    found = {text for pair in session.execute(query) for text in pair}
    for tool in items(row.details.get("tools")):
        given = {tool} if isinstance(tool, str) else {fields(tool).get(k) for k in ("id", "name")}
        found.update(text for text in given if isinstance(text, str))
    return found


def unfinished_jobs(session: Session, row: EnvironmentRow) -> Sequence[str]:
    """Ids of jobs that still use the environment."""
    return session.scalars(
        select(JobRow.id)
        .join(VersionRow, VersionRow.id == JobRow.version_id)
        .where(VersionRow.environment_id == row.id)
        .where(JobRow.status.not_in(lifecycle.TERMINAL))
    ).all()


def forget_processes(session: Session) -> None:
    """After a start: nothing is being provisioned or run, whatever the last server was doing."""
    session.execute(
        update(VersionRow)
        .where(VersionRow.status == lifecycle.PROVISIONING)
        .values(status=lifecycle.REGISTERED)
    )
    session.execute(
        update(VersionRow)
        .where(VersionRow.status == lifecycle.READY, VersionRow.status_reason.is_(None))
        .values(status_reason="stopped with the server; it starts again on demand")
    )


def _apply(
    session: Session, row: EnvironmentRow, asked: Registration, reason: str | None
) -> tuple[VersionRow, bool]:
    if asked.description is not None:
        row.description = asked.description
    if asked.vertical is not None:
        row.vertical = asked.vertical
    if asked.domain is not None:
        row.domain = asked.domain
    if asked.tags is not None:
        row.tags = asked.tags
    kept = {**row.details, **asked.details}
    row.details = {name: value for name, value in kept.items() if value is not None}
    row.updated_at = datetime.now(UTC)
    latest = row.latest if row.versions else None
    if latest is None or asked.serves:
        source, kwargs, config = asked.source, asked.kwargs or {}, asked.config or {}
    else:
        source = latest.source
        kwargs = latest.kwargs if asked.kwargs is None else asked.kwargs
        config = latest.config if asked.config is None else asked.config
        reason = latest.status_reason if latest.source is None else None
    if latest is not None and (source, kwargs, config) == (
        latest.source,
        latest.kwargs,
        latest.config,
    ):
        session.flush()
        return latest, False
    return _add_version(session, row, source, kwargs, config, reason), True


def _rename(session: Session, row: EnvironmentRow, name: str) -> None:
    if name == row.name:
        return
    taken = session.scalar(select(EnvironmentRow.id).where(EnvironmentRow.name == name))
    if taken is not None:
        raise ConflictError(
            f"another environment is called {name!r}",
            code="name_taken",
            hint="Choose another name, or delete that one first",
        )
    row.name = name


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

"""Verifiers, their versions, and the environments that they judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rlcore import (
    ConfigurationError,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    VerifierNotFound,
)
from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from rleaas.server.rules.catalogue import ACTIVE, VERIFIER_TYPES, merged, new_id, verifier_prefix
from rleaas.server.rules.verifiers import require_sound
from rleaas.server.store import catalogue, known_tools
from rleaas.server.store.tables import (
    EnvironmentRow,
    JsonObject,
    VerifierAttachmentRow,
    VerifierRow,
    VerifierVersionRow,
)
from rleaas.verify import Definition
from rleaas.verify.definition import COMPOSITE, DEEPEST, in_a_circle

DEFAULT_POLICY: JsonObject = {"hard_fail": False, "penalty": 0.0, "log_failure": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierChange:
    """What a client says of a verifier; None leaves as it is, `environment` "" is none."""

    name: str | None = None
    type: str | None = None
    system: str | None = None
    status: str | None = None
    description: str | None = None
    logic: JsonObject | None = None
    failure_policy: JsonObject | None = None
    environment: str | None = None
    details: Mapping[str, object] = field(default_factory=dict[str, object])


def find(session: Session, reference: str) -> VerifierRow:
    """The verifier with this id, else the one with this name.

    Raises:
        VerifierNotFound: there is none.
        ConflictError: several have the name.
    """
    return catalogue.find(session, VerifierRow, reference, VerifierNotFound)


def create(session: Session, verifier_id: str | None, change: VerifierChange) -> VerifierRow:
    """Add a verifier with version 1, under an id that is free.

    Raises:
        InvalidRequestError: it has no name or no type.
        ExpressionError: a condition cannot be read.
        ConfigurationError: another part of what it judges by is wrong, a component is not there, or
            its environment's world has no such tool.
    """
    if change.name is None or change.type is None:
        raise InvalidRequestError(
            f"the new verifier {verifier_id or ''!r} has no name or no type",
            code="verifier_incomplete",
            hint=f"Give it a name and one of the types {', '.join(VERIFIER_TYPES)}",
        )
    kind = change.type
    logic, policy = change.logic or {}, {**DEFAULT_POLICY, **(change.failure_policy or {})}
    row_id = verifier_id or new_id(verifier_prefix(kind))
    require_sound(
        kind=kind, logic=logic, failure_policy=policy, verifier_id=row_id, name=change.name
    )
    now = datetime.now(UTC)
    row = VerifierRow(
        id=row_id,
        environment_id=catalogue.environment_id(session, change.environment),
        name=change.name,
        type=kind,
        system=change.system or "Custom",
        status=change.status or ACTIVE,
        description=change.description or "",
        logic=logic,
        details=merged({}, change.details),
        failure_policy=policy,
        version=1,
        created_at=now,
        updated_at=now,
    )
    _require_components(session, definition_of_row(row), [row_id])
    known_tools.require_of_verifier(session, row.environment_id, definition_of_row(row))
    session.add(row)
    session.flush()
    _keep_version(session, row)
    return row


def definition_of_row(row: VerifierRow) -> Definition:
    """A verifier as it judges now."""
    return Definition(
        type=row.type,
        logic=row.logic,
        id=row.id,
        name=row.name,
        version=row.version,
        failure_policy=row.failure_policy,
        enabled=row.status == ACTIVE,
    )


def remove(session: Session, row: VerifierRow) -> None:
    """Delete a verifier that no composite consists of.

    Raises:
        ConflictError: one does (`verifier_in_use`).
    """
    composites = session.scalars(select(VerifierRow).where(VerifierRow.type == COMPOSITE))
    users = [
        one.id
        for one in composites
        if one.id != row.id and row.id in [part for part, _, _ in definition_of_row(one).components]
    ]
    if users:
        raise ConflictError(
            f"verifier {row.id!r} is a component of {', '.join(map(repr, users))}",
            code="verifier_in_use",
            hint="Take it out of their components first, or disable it",
        )
    session.delete(row)


def apply(session: Session, row: VerifierRow, change: VerifierChange) -> VerifierRow:
    """Change what is said; what it judges by makes a new version when it differs.

    Raises:
        ExpressionError: a condition cannot be read.
        ConfigurationError: another part of what it judges by is wrong, a component is not there, or
            its environment's world has no such tool.
    """
    before, place = (row.type, row.logic, row.failure_policy), row.environment_id
    if change.environment is not None:
        row.environment_id = catalogue.environment_id(session, change.environment)
    catalogue.take(row, change, ("name", "type", "system", "status", "description", "logic"))
    row.failure_policy = {**row.failure_policy, **(change.failure_policy or {})}
    row.details = merged(row.details, change.details)
    row.updated_at = datetime.now(UTC)
    if (row.type, row.logic, row.failure_policy) != before:
        require_sound(
            kind=row.type,
            logic=row.logic,
            failure_policy=row.failure_policy,
            verifier_id=row.id,
            name=row.name,
        )
        _require_components(session, definition_of_row(row), [row.id])
        known_tools.require_of_verifier(session, row.environment_id, definition_of_row(row))
        row.version += 1
        _keep_version(session, row)
    elif row.environment_id != place:
        known_tools.require_of_verifier(session, row.environment_id, definition_of_row(row))
    session.flush()
    return row


def copy(session: Session, row: VerifierRow, *, name: str, source: str) -> VerifierRow:
    """Add a verifier that judges the same, with an id and versions of its own."""
    change = VerifierChange(
        name=name,
        type=row.type,
        environment="" if row.environment_id is None else str(row.environment_id),
        system=row.system,
        status=row.status,
        description=row.description,
        logic=row.logic,
        failure_policy=row.failure_policy,
        details={**row.details, "source": source},
    )
    return create(session, None, change)


def page(
    session: Session,
    *,
    environment_id: int | None,
    kind: str | None,
    system: str | None,
    after: int,
    limit: int,
) -> tuple[Sequence[VerifierRow], str | None]:
    """Verifiers in the order in which they came: made for an environment or attached to it."""
    conditions: list[ColumnElement[bool]] = []
    if environment_id is not None:
        attached = select(VerifierAttachmentRow.verifier_row_id).where(
            VerifierAttachmentRow.environment_id == environment_id
        )
        conditions.append(
            (VerifierRow.environment_id == environment_id) | VerifierRow.row_id.in_(attached)
        )
    if kind:
        conditions.append(VerifierRow.type == kind)
    if system:
        conditions.append(func.lower(VerifierRow.system) == system.lower())
    return catalogue.page(session, VerifierRow, conditions, after=after, limit=limit)


def versions(session: Session, row: VerifierRow) -> Sequence[VerifierVersionRow]:
    """What a verifier judged by, oldest first."""
    return session.scalars(
        select(VerifierVersionRow)
        .where(VerifierVersionRow.verifier_row_id == row.row_id)
        .order_by(VerifierVersionRow.version)
    ).all()


def attach(
    session: Session, environment: EnvironmentRow, row: VerifierRow, weight: float
) -> VerifierAttachmentRow:
    """Let a verifier judge an environment, or change its weight there."""
    found = attachment(session, environment, row)
    if found is None:
        found = VerifierAttachmentRow(
            environment_id=environment.id,
            verifier_row_id=row.row_id,
            weight=weight,
            created_at=datetime.now(UTC),
        )
        session.add(found)
    found.weight = weight
    session.flush()
    return found


def detach(session: Session, environment: EnvironmentRow, row: VerifierRow) -> None:
    """Let a verifier judge an environment no more.

    Raises:
        NotFoundError: it does not.
    """
    found = attachment(session, environment, row)
    if found is None:
        raise NotFoundError(
            kind="attachment",
            ref=row.id,
            code="verifier_not_attached",
            hint=f"GET /api/environments/{environment.name}/verifiers lists those that are",
        )
    session.delete(found)
    session.flush()


def attached(
    session: Session, environment: EnvironmentRow
) -> Sequence[tuple[VerifierRow, VerifierAttachmentRow]]:
    """The verifiers that judge an environment, in the order in which they were attached."""
    found = session.execute(
        select(VerifierRow, VerifierAttachmentRow)
        .join(VerifierAttachmentRow, VerifierAttachmentRow.verifier_row_id == VerifierRow.row_id)
        .where(VerifierAttachmentRow.environment_id == environment.id)
        .order_by(VerifierAttachmentRow.id)
    ).all()
    return [(row, attachment) for row, attachment in found]


def clone(session: Session, source: EnvironmentRow, target: EnvironmentRow) -> list[VerifierRow]:
    """Copy an environment's verifiers to another: those made for it and those attached to it."""
    made: list[VerifierRow] = []
    weights = {row.row_id: one.weight for row, one in attached(session, source)}
    rows, _ = page(session, environment_id=source.id, kind=None, system=None, after=0, limit=0)
    for row in rows:
        copied = copy(session, row, name=row.name, source="cloned")
        copied.environment_id = target.id
        if row.row_id in weights:
            attach(session, target, copied, weights[row.row_id])
        made.append(copied)
    session.flush()
    return made


def attachment(
    session: Session, environment: EnvironmentRow, row: VerifierRow
) -> VerifierAttachmentRow | None:
    """How a verifier is attached to an environment; None: it is not."""
    return session.scalar(
        select(VerifierAttachmentRow).where(
            VerifierAttachmentRow.environment_id == environment.id,
            VerifierAttachmentRow.verifier_row_id == row.row_id,
        )
    )


def _require_components(session: Session, definition: Definition, path: list[str]) -> None:
    for verifier_id, _, _ in definition.components:
        if verifier_id in path:
            raise in_a_circle([*path, verifier_id])
        row = catalogue.by_id(session, VerifierRow, verifier_id)
        if row is None:
            raise ConfigurationError(
                f"{definition.label}: there is no verifier {verifier_id!r}, which it names as a "
                "component",
                code="invalid_verifier",
                hint="Create that first, or leave it out",
            )
        if len(path) < DEEPEST:
            _require_components(session, definition_of_row(row), [*path, verifier_id])


def _keep_version(session: Session, row: VerifierRow) -> None:
    session.add(
        VerifierVersionRow(
            verifier_row_id=row.row_id,
            version=row.version,
            logic=row.logic,
            failure_policy=row.failure_policy,
            created_at=datetime.now(UTC),
        )
    )

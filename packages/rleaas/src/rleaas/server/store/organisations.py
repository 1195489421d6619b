"""Organisations and the people in them."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rlcore import ConflictError, NotFoundError
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from rleaas.server.rules.grants import ADMIN, Role
from rleaas.server.store.tables import (
    ApiKeyRow,
    JsonObject,
    MemberRow,
    OrganisationRow,
    UserRow,
)


@dataclass(frozen=True, slots=True)
class Membership:
    """A member with who they are."""

    member: MemberRow
    user: UserRow


def create(session: Session, name: str, limits: JsonObject) -> OrganisationRow:
    """Add an organisation.

    Raises:
        ConflictError: there is one of this name.
    """
    if session.scalar(select(OrganisationRow.id).where(OrganisationRow.name == name)) is not None:
        raise ConflictError(
            f"another organisation is called {name!r}", code="name_taken", hint="Choose another"
        )
    row = OrganisationRow(name=name, limits=limits, created_at=datetime.now(UTC))
    session.add(row)
    session.flush()
    return row


def find(session: Session, reference: str) -> OrganisationRow:
    """Return the organisation with this name or id.

    Raises:
        NotFoundError: there is none.
    """
    is_number = reference.isascii() and reference.isdecimal() and len(reference) < 10
    where = OrganisationRow.id == int(reference) if is_number else OrganisationRow.name == reference
    row = session.scalar(select(OrganisationRow).where(where))
    if row is None:
        raise NotFoundError(
            f"organisation not found: {reference!r}", kind="organisation", ref=reference
        )
    return row


def every(session: Session) -> Sequence[OrganisationRow]:
    """Return all organisations, the oldest first."""
    return session.scalars(select(OrganisationRow).order_by(OrganisationRow.id)).all()


def user_of_email(session: Session, email: str) -> UserRow:
    """Return the user with this address, who is made where there is none."""
    row = session.scalar(select(UserRow).where(UserRow.email == email))
    return row or _add_user(session, f"user_{secrets.token_hex(6)}", email)


def user_of_id(session: Session, user_id: str, email: str) -> UserRow:
    """Return the user with this id, else this address, who is made where there is none."""
    found = session.get(UserRow, user_id) or session.scalar(
        select(UserRow).where(UserRow.email == email)
    )
    return found or _add_user(session, user_id, email)


def members(session: Session, organisation_id: int) -> list[Membership]:
    """Return the members of an organisation, in the order in which they joined."""
    found = session.execute(
        select(MemberRow, UserRow)
        .join(UserRow, UserRow.id == MemberRow.user_id)
        .where(MemberRow.organisation_id == organisation_id)
        .order_by(MemberRow.id)
    )
    return [Membership(member, user) for member, user in found]


def find_member(session: Session, organisation_id: int, reference: str) -> Membership:
    """Return the member with this user id or email.

    Raises:
        NotFoundError: there is none.
    """
    found = session.execute(
        select(MemberRow, UserRow)
        .join(UserRow, UserRow.id == MemberRow.user_id)
        .where(MemberRow.organisation_id == organisation_id)
        .where((UserRow.id == reference) | (UserRow.email == reference))
    ).first()
    if found is None:
        raise NotFoundError(f"member not found: {reference!r}", kind="member", ref=reference)
    return Membership(*found)


def put_member(session: Session, organisation_id: int, user: UserRow, role: Role) -> MemberRow:
    """Add a user to an organisation, or change their role; who is no admin has no admin's key.

    Raises:
        ConflictError: the organisation would be left without an admin.
    """
    row = session.scalar(
        select(MemberRow).where(
            MemberRow.organisation_id == organisation_id, MemberRow.user_id == user.id
        )
    )
    if row is None:
        row = MemberRow(
            organisation_id=organisation_id,
            user_id=user.id,
            role=role,
            created_at=datetime.now(UTC),
        )
        session.add(row)
    elif row.role != role:
        _require_another_admin(session, organisation_id, row)
        row.role = role
        if role != ADMIN:
            for key in _keys_of(session, organisation_id, user.id):
                key.scopes = [scope for scope in key.scopes if scope != ADMIN]
    session.flush()
    return row


def remove_member(session: Session, organisation_id: int, found: Membership) -> None:
    """Take a user out of an organisation, with their keys.

    Raises:
        ConflictError: the organisation would be left without an admin.
    """
    _require_another_admin(session, organisation_id, found.member)
    for key in _keys_of(session, organisation_id, found.user.id):
        key.is_active = False
    session.execute(delete(MemberRow).where(MemberRow.id == found.member.id))
    session.flush()


def _add_user(session: Session, user_id: str, email: str) -> UserRow:
    row = UserRow(id=user_id, email=email, profile={}, created_at=datetime.now(UTC))
    session.add(row)
    session.flush()
    return row


def _keys_of(session: Session, organisation_id: int, user_id: str) -> Sequence[ApiKeyRow]:
    return session.scalars(
        select(ApiKeyRow).where(
            ApiKeyRow.organisation_id == organisation_id, ApiKeyRow.user_id == user_id
        )
    ).all()


def _require_another_admin(session: Session, organisation_id: int, row: MemberRow) -> None:
    if row.role != ADMIN:
        return
    others = session.scalar(
        select(MemberRow.id)
        .where(MemberRow.organisation_id == organisation_id, MemberRow.role == ADMIN)
        .where(MemberRow.id != row.id)
        .limit(1)
    )
    if others is None:
        raise ConflictError(
            "an organisation needs an admin, and this is the last one",
            code="last_admin",
            hint="Make somebody else an admin first",
        )

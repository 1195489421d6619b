"""Organisations, the people in them, and the keys that they ask with."""

from datetime import datetime

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from rleaas.server.store.tables.base import Base, JsonObject, Owned


class OrganisationRow(Base):
    """Whoever owns rows; `limits` holds its quotas and rates, where it has some."""

    __tablename__ = "organisations"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    limits: Mapped[JsonObject]
    created_at: Mapped[datetime]


class UserRow(Base):
    """A person or a program that asks; the profile is what they say about themselves."""

    __tablename__ = "users"

    id: Mapped[str] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(unique=True)
    profile: Mapped[JsonObject]
    created_at: Mapped[datetime]


class MemberRow(Owned, Base):
    """A user in an organisation; `role` is member or admin."""

    __tablename__ = "members"
    __table_args__ = (UniqueConstraint("organisation_id", "user_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    role: Mapped[str]
    created_at: Mapped[datetime]


class ApiKeyRow(Owned, Base):
    """A key, by the digest of its secret; the secret itself was shown once and is nowhere."""

    __tablename__ = "api_keys"

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    name: Mapped[str]
    prefix: Mapped[str]
    digest: Mapped[str] = mapped_column(unique=True)
    scopes: Mapped[list[str]]
    limits: Mapped[JsonObject]
    is_active: Mapped[bool]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]

"""What the servers of one database need to work together, and records of where things run."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from rleaas.server.store.tables.base import Base, JsonObject, Owned


class IdempotencyRow(Owned, Base):
    """A request that was already answered, what it made, and what it was answered with."""

    __tablename__ = "idempotency_keys"
    __table_args__ = (UniqueConstraint("organisation_id", "scope", "key"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    scope: Mapped[str]
    key: Mapped[str]
    body_digest: Mapped[str]
    resource_id: Mapped[str]
    reply: Mapped[JsonObject | None]
    created_at: Mapped[datetime] = mapped_column(index=True)


class LeaseRow(Base):
    """Who may do something that only one server process may do, and until when."""

    __tablename__ = "leases"

    name: Mapped[str] = mapped_column(primary_key=True)
    holder: Mapped[str]
    expires_at: Mapped[datetime]


class DeploymentRow(Owned, Base):
    """What somebody wants to run on a cluster, and what is known of it."""

    __tablename__ = "deployments"
    __table_args__ = (Index("deployments_by_environment", "environment_id", "created_at"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    environment_id: Mapped[int | None] = mapped_column(
        ForeignKey("environments.id", ondelete="SET NULL")
    )
    provider: Mapped[str]
    cluster_name: Mapped[str]
    status: Mapped[str]
    app_status: Mapped[str]
    record: Mapped[JsonObject]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class SettingRow(Owned, Base):
    """A value that an organisation has changed, such as its cloud configuration."""

    __tablename__ = "settings"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(index=True)
    value: Mapped[JsonObject]
    updated_at: Mapped[datetime]

"""What happened: events, the audit chain, rollouts, figures, and who is told of it."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from rleaas.server.store.tables.base import Base, JsonObject, Large, Owned


class EventRow(Owned, Base):
    """Something that happened; rows are added in the order of their commits and never changed."""

    __tablename__ = "events"
    __table_args__ = (
        Index("events_by_subject", "subject", "kind", "id"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(Large, primary_key=True, autoincrement=True)
    at: Mapped[datetime]
    kind: Mapped[str]
    subject: Mapped[str]
    data: Mapped[JsonObject]


class AuditRow(Owned, Base):
    """Who did what and whether they could; each record has the digest of the one before it.

    `number` counts an organisation's records from 1; what was purged shows as a record of its own.
    """

    __tablename__ = "audit_records"
    __table_args__ = (
        UniqueConstraint("organisation_id", "number"),
        Index("audit_records_by_time", "organisation_id", "at"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(Large, primary_key=True, autoincrement=True)
    event_id: Mapped[str] = mapped_column(unique=True)
    number: Mapped[int] = mapped_column(Large)
    at: Mapped[datetime]
    actor: Mapped[str]
    action: Mapped[str]
    outcome: Mapped[str]
    subject: Mapped[str]
    environment_name: Mapped[str | None]
    job_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    request_id: Mapped[str | None]
    data: Mapped[JsonObject]
    previous: Mapped[str]
    digest: Mapped[str]


class RolloutRow(Owned, Base):
    """One episode that was played: by a job, an evaluation, or somebody who stored it here.

    The steps of those that jobs played are in a file of the artifacts, at a place from 0.
    """

    __tablename__ = "rollouts"
    __table_args__ = (Index("rollouts_by_environment", "environment_id", "created_at"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    environment_id: Mapped[int | None] = mapped_column(
        ForeignKey("environments.id", ondelete="CASCADE")
    )
    job_id: Mapped[str | None] = mapped_column(
        ForeignKey("jobs.id", ondelete="CASCADE"), index=True
    )
    scenario_id: Mapped[str | None]
    episode: Mapped[int]
    status: Mapped[str]
    total_reward: Mapped[float | None]
    total_steps: Mapped[int] = mapped_column(Large)
    data: Mapped[JsonObject]
    created_at: Mapped[datetime]
    file_sha256: Mapped[str | None] = mapped_column(index=True)
    file_place: Mapped[int | None]


class KpiRow(Owned, Base):
    """The figures of an environment at one moment, one for each evaluated checkpoint."""

    __tablename__ = "kpi_history"
    __table_args__ = (Index("kpi_history_by_environment", "environment_id", "at"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    environment_id: Mapped[int | None] = mapped_column(
        ForeignKey("environments.id", ondelete="CASCADE")
    )
    checkpoint_id: Mapped[str | None]
    figures: Mapped[JsonObject]
    at: Mapped[datetime]


class WebhookRow(Owned, Base):
    """Somebody who wants to be told; `job_id` narrows it to one job."""

    __tablename__ = "webhooks"

    id: Mapped[str] = mapped_column(primary_key=True)
    job_id: Mapped[str | None] = mapped_column(
        ForeignKey("jobs.id", ondelete="CASCADE"), index=True
    )
    url: Mapped[str]
    events: Mapped[list[str]]
    encrypted_secret: Mapped[str]
    is_active: Mapped[bool]
    after_event_id: Mapped[int] = mapped_column(Large)
    created_at: Mapped[datetime]


class DeliveryRow(Owned, Base):
    """One event on its way to a webhook, and how the attempts went."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        UniqueConstraint("webhook_id", "event_id"),
        Index("webhook_deliveries_due", "status", "due_at"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(Large, primary_key=True)
    webhook_id: Mapped[str] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"))
    event_id: Mapped[int] = mapped_column(Large, ForeignKey("events.id", ondelete="CASCADE"))
    status: Mapped[str]
    attempts: Mapped[int]
    due_at: Mapped[datetime]
    status_code: Mapped[int | None]
    error: Mapped[str | None]
    delivered_at: Mapped[datetime | None]


class GovernanceRow(Owned, Base):
    """How data is to be treated: for one environment, or without one for all."""

    __tablename__ = "governance"
    __table_args__ = (UniqueConstraint("organisation_id", "environment_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    environment_id: Mapped[int | None] = mapped_column(
        ForeignKey("environments.id", ondelete="CASCADE")
    )
    config: Mapped[JsonObject]
    updated_at: Mapped[datetime]

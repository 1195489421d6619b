"""The tables: what the server remembers between two starts."""

from datetime import UTC, datetime

from sqlalchemy import (
    JSON,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

JsonObject = dict[str, object]


class UtcTime(TypeDecorator[datetime]):
    """An aware time; SQLite keeps no zone, so it is stored in UTC and read back as UTC."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Store the moment in UTC."""
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give the moment back with its zone."""
        return None if value is None else value.replace(tzinfo=UTC)


class Base(DeclarativeBase):
    """All tables; the migrations are checked against its metadata."""

    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads it from the class
        JsonObject: JSON(none_as_null=True),
        list[str]: JSON,
        datetime: UtcTime,
        float: Float,
    }


class EnvironmentRow(Base):
    """A registered environment; what is served lives in its versions."""

    __tablename__ = "environments"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    description: Mapped[str]
    vertical: Mapped[str | None]
    domain: Mapped[str | None]
    tags: Mapped[list[str]]
    details: Mapped[JsonObject]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    versions: Mapped[list["VersionRow"]] = relationship(
        back_populates="environment",
        cascade="all, delete-orphan",
        order_by="VersionRow.version",
        lazy="selectin",
    )

    @property
    def latest(self) -> "VersionRow":
        """The newest version; there is always one."""
        return self.versions[-1]


class VersionRow(Base):
    """One version of an environment: how to serve it, and the contract it was registered with."""

    __tablename__ = "environment_versions"
    __table_args__ = (UniqueConstraint("environment_id", "version"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    environment_id: Mapped[int] = mapped_column(ForeignKey("environments.id", ondelete="CASCADE"))
    version: Mapped[int]
    source: Mapped[str | None]
    kwargs: Mapped[JsonObject]
    config: Mapped[JsonObject]
    status: Mapped[str]
    status_reason: Mapped[str | None]
    contract: Mapped[JsonObject | None]
    contract_digest: Mapped[str | None]
    created_at: Mapped[datetime]
    environment: Mapped[EnvironmentRow] = relationship(back_populates="versions", lazy="joined")


class JobRow(Base):
    """A training job or an evaluation: work that a worker process does and reports about."""

    __tablename__ = "jobs"
    __table_args__ = (Index("jobs_by_status", "status", "created_at"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    version_id: Mapped[int] = mapped_column(
        ForeignKey("environment_versions.id", ondelete="CASCADE"), index=True
    )
    name: Mapped[str | None]
    status: Mapped[str]
    request: Mapped[JsonObject]
    progress: Mapped[int]
    results: Mapped[JsonObject]
    error: Mapped[str | None]
    message: Mapped[str | None]
    cancel_requested_at: Mapped[datetime | None]
    last_seq: Mapped[int]
    last_seen_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    completed_at: Mapped[datetime | None]
    version: Mapped[VersionRow] = relationship(lazy="joined")
    checkpoints: Mapped[list["CheckpointRow"]] = relationship(
        back_populates="job",
        cascade="all, delete-orphan",
        order_by="CheckpointRow.episode, CheckpointRow.created_at",
        lazy="selectin",
    )


class CheckpointRow(Base):
    """A saved policy: the facts about it and the digest of its file."""

    __tablename__ = "checkpoints"

    id: Mapped[str] = mapped_column(primary_key=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), index=True)
    episode: Mapped[int]
    timestep: Mapped[int | None]
    label: Mapped[str | None]
    avg_reward: Mapped[float | None]
    success_rate: Mapped[float | None]
    sha256: Mapped[str]
    size_bytes: Mapped[int]
    created_at: Mapped[datetime]
    job: Mapped[JobRow] = relationship(back_populates="checkpoints", lazy="joined")


class EventRow(Base):
    """Something that happened; rows are added and never changed."""

    __tablename__ = "events"
    __table_args__ = (Index("events_by_subject", "subject", "kind", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    at: Mapped[datetime]
    kind: Mapped[str]
    subject: Mapped[str]
    data: Mapped[JsonObject]


class IdempotencyRow(Base):
    """A create request that was already answered, and what it made."""

    __tablename__ = "idempotency_keys"

    scope: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    body_digest: Mapped[str]
    resource_id: Mapped[str]
    created_at: Mapped[datetime]

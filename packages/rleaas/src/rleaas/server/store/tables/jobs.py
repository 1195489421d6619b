"""Jobs and what they leave behind."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column, relationship

from rleaas.server.store.tables.base import Base, JsonObject, Owned
from rleaas.server.store.tables.environments import VersionRow


class JobRow(Owned, Base):
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
    priority: Mapped[int]
    holder: Mapped[str | None]
    attempts: Mapped[int]
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


class CheckpointRow(Owned, Base):
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

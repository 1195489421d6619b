"""Jobs and what they leave behind."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column, relationship

from rleaas.server.store.tables.base import Base, JsonList, JsonObject, Large, Owned
from rleaas.server.store.tables.environments import VersionRow


class JobRow(Owned, Base):
    """A training job or an evaluation: work that a worker process does and reports about.

    Attributes:
        holder: the server that looks after its worker.
        worker: the executor's handle of its worker.
        attempts: how often it was started; the last is the one whose reports count.
        restarts: how often it was started again because its worker had died.
        not_before: before this time it is not started again.
        history: each attempt: when it began, from which checkpoint, and how it ended.
        last_seq: the last batch of reports of this attempt that was taken.
    """

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
    worker: Mapped[str | None]
    attempts: Mapped[int]
    restarts: Mapped[int]
    not_before: Mapped[datetime | None]
    history: Mapped[JsonList]
    error: Mapped[str | None]
    message: Mapped[str | None]
    cancel_requested_at: Mapped[datetime | None]
    last_seq: Mapped[int] = mapped_column(Large)
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
    timestep: Mapped[int | None] = mapped_column(Large)
    label: Mapped[str | None]
    avg_reward: Mapped[float | None]
    success_rate: Mapped[float | None]
    sha256: Mapped[str]
    size_bytes: Mapped[int] = mapped_column(Large)
    state_sha256: Mapped[str | None]
    state_bytes: Mapped[int | None] = mapped_column(Large)
    # What the file says about itself.
    manifest: Mapped[JsonObject | None]
    metrics: Mapped[JsonObject | None]
    created_at: Mapped[datetime]
    job: Mapped[JobRow] = relationship(back_populates="checkpoints", lazy="joined")


class ExportRow(Owned, Base):
    """A checkpoint in another form, made once; `recipe` is the digest of all that went into it."""

    __tablename__ = "checkpoint_exports"

    id: Mapped[str] = mapped_column(primary_key=True)
    checkpoint_id: Mapped[str] = mapped_column(
        ForeignKey("checkpoints.id", ondelete="CASCADE"), index=True
    )
    recipe: Mapped[str]
    format: Mapped[str]
    sha256: Mapped[str]
    size_bytes: Mapped[int] = mapped_column(Large)
    checks: Mapped[JsonObject]
    created_at: Mapped[datetime]

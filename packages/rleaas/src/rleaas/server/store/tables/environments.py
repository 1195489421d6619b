"""Registered environments and their versions."""

from datetime import datetime

from sqlalchemy import ForeignKey, UniqueConstraint, func, select
from sqlalchemy.orm import Mapped, column_property, mapped_column, relationship

from rleaas.server.store.tables.base import Base, JsonObject, Owned
from rleaas.server.store.tables.catalogue import ScenarioRow, ToolRow


class EnvironmentRow(Owned, Base):
    """A registered environment; what is served lives in its versions."""

    __tablename__ = "environments"
    __table_args__ = (
        UniqueConstraint("organisation_id", "name"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    description: Mapped[str]
    vertical: Mapped[str | None]
    domain: Mapped[str | None]
    tags: Mapped[list[str]]
    details: Mapped[JsonObject]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    tool_count: Mapped[int] = column_property(
        select(func.count(ToolRow.row_id)).where(ToolRow.environment_id == id).scalar_subquery(),
        expire_on_flush=False,  # records are rendered after their session has ended, too
    )
    scenario_count: Mapped[int] = column_property(
        select(func.count(ScenarioRow.row_id))
        .where(ScenarioRow.environment_id == id)
        .scalar_subquery(),
        expire_on_flush=False,
    )
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


class VersionRow(Owned, Base):
    """One version of an environment: how to serve it, and the contract it was registered with."""

    __tablename__ = "environment_versions"
    __table_args__ = (
        UniqueConstraint("environment_id", "version"),
        {"sqlite_autoincrement": True},
    )

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

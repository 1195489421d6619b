"""What environments are put together from: tools, verifiers, scenarios, agents, data.

Where callers may choose an id, it is theirs within their organisation; `row_id` is the table's own.
"""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from rleaas.server.store.tables.base import Base, JsonList, JsonObject, Owned


class ToolRow(Owned, Base):
    """A tool; without an environment it is for all of them."""

    __tablename__ = "tools"
    __table_args__ = (UniqueConstraint("organisation_id", "id"),)

    row_id: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[str]
    environment_id: Mapped[int | None] = mapped_column(
        ForeignKey("environments.id", ondelete="CASCADE"), index=True
    )
    name: Mapped[str]
    type: Mapped[str]
    category: Mapped[str]
    description: Mapped[str]
    parameters: Mapped[JsonObject]
    details: Mapped[JsonObject]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class VerifierRow(Owned, Base):
    """A verifier at its newest version; what it was before is in `VerifierVersionRow`."""

    __tablename__ = "verifiers"
    __table_args__ = (UniqueConstraint("organisation_id", "id"),)

    row_id: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[str]
    environment_id: Mapped[int | None] = mapped_column(
        ForeignKey("environments.id", ondelete="SET NULL"), index=True
    )
    name: Mapped[str]
    type: Mapped[str]
    system: Mapped[str]
    status: Mapped[str]
    description: Mapped[str]
    logic: Mapped[JsonObject]
    details: Mapped[JsonObject]
    failure_policy: Mapped[JsonObject]
    version: Mapped[int]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class VerifierVersionRow(Owned, Base):
    """A verifier as it was; results name the version."""

    __tablename__ = "verifier_versions"
    __table_args__ = (UniqueConstraint("verifier_row_id", "version"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    verifier_row_id: Mapped[int] = mapped_column(ForeignKey("verifiers.row_id", ondelete="CASCADE"))
    version: Mapped[int]
    logic: Mapped[JsonObject]
    failure_policy: Mapped[JsonObject]
    created_at: Mapped[datetime]


class VerifierAuditRow(Owned, Base):
    """A grader test of a verifier; it counts for what the verifier judged by then."""

    __tablename__ = "verifier_audits"

    id: Mapped[int] = mapped_column(primary_key=True)
    verifier_row_id: Mapped[int] = mapped_column(
        ForeignKey("verifiers.row_id", ondelete="CASCADE"), index=True
    )
    version: Mapped[int]
    judged_by: Mapped[str]
    passed: Mapped[bool]
    report: Mapped[JsonObject]
    created_at: Mapped[datetime]


class VerifierAttachmentRow(Owned, Base):
    """A verifier that judges an environment, with its weight."""

    __tablename__ = "verifier_attachments"
    __table_args__ = (UniqueConstraint("environment_id", "verifier_row_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    environment_id: Mapped[int] = mapped_column(ForeignKey("environments.id", ondelete="CASCADE"))
    verifier_row_id: Mapped[int] = mapped_column(
        ForeignKey("verifiers.row_id", ondelete="CASCADE"), index=True
    )
    weight: Mapped[float]
    created_at: Mapped[datetime]


class ScenarioRow(Owned, Base):
    """A scenario; `source` says whether it was written, cloned or taken from the library."""

    __tablename__ = "scenarios"
    __table_args__ = (UniqueConstraint("organisation_id", "id"),)

    row_id: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[str]
    environment_id: Mapped[int | None] = mapped_column(
        ForeignKey("environments.id", ondelete="CASCADE"), index=True
    )
    name: Mapped[str]
    tier: Mapped[int]
    task_prompt: Mapped[str]
    max_steps: Mapped[int]
    tags: Mapped[list[str]]
    details: Mapped[JsonObject]
    source: Mapped[str]
    version: Mapped[int]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class SuiteRow(Owned, Base):
    """Scenarios in their order, for one purpose."""

    __tablename__ = "scenario_suites"
    __table_args__ = (UniqueConstraint("organisation_id", "id"),)

    row_id: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[str]
    environment_id: Mapped[int | None] = mapped_column(
        ForeignKey("environments.id", ondelete="CASCADE"), index=True
    )
    name: Mapped[str]
    purpose: Mapped[str]
    scenario_ids: Mapped[list[str]]
    details: Mapped[JsonObject]
    version: Mapped[int]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class AgentRow(Owned, Base):
    """An agent at its current version."""

    __tablename__ = "agents"
    __table_args__ = (UniqueConstraint("organisation_id", "id"),)

    row_id: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[str]
    name: Mapped[str]
    base_model: Mapped[str]
    model_ref: Mapped[str | None]
    framework: Mapped[str]
    trainable: Mapped[bool]
    compatible_categories: Mapped[list[str]]
    tool_permissions: Mapped[list[str]]
    details: Mapped[JsonObject]
    version: Mapped[int]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class AgentVersionRow(Owned, Base):
    """What an agent was configured as."""

    __tablename__ = "agent_versions"
    __table_args__ = (UniqueConstraint("agent_row_id", "version"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    agent_row_id: Mapped[int] = mapped_column(ForeignKey("agents.row_id", ondelete="CASCADE"))
    version: Mapped[int]
    config: Mapped[JsonObject]
    reason: Mapped[str]
    created_at: Mapped[datetime]


class AgentRecordRow(Owned, Base):
    """Something an agent did or was put to: a dry run, a deployment, an export."""

    __tablename__ = "agent_records"
    __table_args__ = (Index("agent_records_by_kind", "agent_row_id", "kind", "created_at"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    agent_row_id: Mapped[int] = mapped_column(ForeignKey("agents.row_id", ondelete="CASCADE"))
    kind: Mapped[str]
    status: Mapped[str]
    data: Mapped[JsonObject]
    created_at: Mapped[datetime]
    completed_at: Mapped[datetime | None]


class DataAssetRow(Owned, Base):
    """An uploaded file, by the digest of its content."""

    __tablename__ = "data_assets"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    media_type: Mapped[str]
    sha256: Mapped[str]
    size_bytes: Mapped[int]
    created_at: Mapped[datetime]


class DataAttachmentRow(Owned, Base):
    """Data that an environment is given."""

    __tablename__ = "data_attachments"

    id: Mapped[int] = mapped_column(primary_key=True)
    environment_id: Mapped[int] = mapped_column(
        ForeignKey("environments.id", ondelete="CASCADE"), index=True
    )
    data_asset_id: Mapped[str] = mapped_column(ForeignKey("data_assets.id", ondelete="CASCADE"))
    injection_config: Mapped[JsonObject]
    created_at: Mapped[datetime]


class RepositoryRow(Owned, Base):
    """Where an environment's code comes from; the token is encrypted and never given back."""

    __tablename__ = "repositories"

    environment_id: Mapped[int] = mapped_column(
        ForeignKey("environments.id", ondelete="CASCADE"), primary_key=True
    )
    provider: Mapped[str]
    url: Mapped[str]
    branch: Mapped[str]
    context_path: Mapped[str]
    auth_type: Mapped[str]
    username: Mapped[str]
    encrypted_token: Mapped[str | None]
    checks: Mapped[JsonList]
    updated_at: Mapped[datetime]

"""Organisations and their keys, the catalogue, audit, webhooks, rollouts and deployments.

Everything that was there belongs to the first organisation.
"""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

OWNED = ("checkpoints", "environment_versions", "environments", "events", "jobs")
JOB_COLUMNS = ("priority", "attempts")


def upgrade() -> None:
    """Make the new tables, and give what is there to the first organisation."""
    _make_first_organisation()
    _make_tables()
    for table in OWNED:
        _add_owner(table)
    _add_to_jobs()
    _own_names()
    _own_idempotency()


def _make_first_organisation() -> None:
    op.create_table(
        "organisations",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("limits", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.get_bind().execute(
        sa.text(
            "INSERT INTO organisations (id, name, limits, created_at) "
            "VALUES (1, 'default', '{}', :now)"
        ).bindparams(sa.bindparam("now", datetime.now(UTC).replace(tzinfo=None), sa.DateTime()))
    )
    if op.get_context().dialect.name == "postgresql":
        op.execute("SELECT setval(pg_get_serial_sequence('organisations', 'id'), 1)")


def _add_owner(table: str) -> None:
    with op.batch_alter_table(table) as batch:
        batch.add_column(
            sa.Column("organisation_id", sa.Integer(), nullable=False, server_default="1")
        )
    with op.batch_alter_table(table) as batch:
        batch.alter_column("organisation_id", server_default=None, existing_type=sa.Integer())
        batch.create_index(f"ix_{table}_organisation_id", ["organisation_id"])
        batch.create_foreign_key(
            f"{table}_organisation_id_fkey",
            "organisations",
            ["organisation_id"],
            ["id"],
            ondelete="CASCADE",
        )


def _add_to_jobs() -> None:
    with op.batch_alter_table("jobs") as batch:
        for name in JOB_COLUMNS:
            batch.add_column(sa.Column(name, sa.Integer(), nullable=False, server_default="0"))
        batch.add_column(sa.Column("holder", sa.String(), nullable=True))
    with op.batch_alter_table("jobs") as batch:
        for name in JOB_COLUMNS:
            batch.alter_column(name, server_default=None, existing_type=sa.Integer())


def _own_names() -> None:
    postgresql = op.get_context().dialect.name == "postgresql"
    names = {"uq": "%(table_name)s_%(column_0_name)s_key"}
    with op.batch_alter_table(
        "environments", naming_convention=None if postgresql else names
    ) as batch:
        batch.drop_constraint("environments_name_key", type_="unique")
        batch.create_unique_constraint(
            "environments_organisation_id_name_key", ["organisation_id", "name"]
        )


def _own_idempotency() -> None:
    # What was answered is kept for a day at most: the few keys that are lost here cost nothing.
    op.drop_table("idempotency_keys")
    op.create_table(
        "idempotency_keys",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("body_digest", sa.String(), nullable=False),
        sa.Column("resource_id", sa.String(), nullable=False),
        sa.Column("reply", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("organisation_id", "scope", "key"),
    )
    for column in ("created_at", "organisation_id"):
        op.create_index(f"ix_idempotency_keys_{column}", "idempotency_keys", [column])


def _make_tables() -> None:
    op.create_table(
        "leases",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("expires_at", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("email", sa.String(), nullable=False),
        sa.Column("profile", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("email"),
    )
    op.create_table(
        "agents",
        sa.Column("row_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("base_model", sa.String(), nullable=False),
        sa.Column("model_ref", sa.String(), nullable=True),
        sa.Column("framework", sa.String(), nullable=False),
        sa.Column("trainable", sa.Boolean(), nullable=False),
        sa.Column("compatible_categories", sa.JSON(), nullable=False),
        sa.Column("tool_permissions", sa.JSON(), nullable=False),
        sa.Column("details", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("updated_at", sa.DateTime(), nullable=False),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("row_id"),
        sa.UniqueConstraint("organisation_id", "id"),
    )
    with op.batch_alter_table("agents", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_agents_organisation_id"), ["organisation_id"], unique=False
        )

    op.create_table(
        "api_keys",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("prefix", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("limits", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("expires_at", sa.DateTime(), nullable=True),
        sa.Column("last_used_at", sa.DateTime(), nullable=True),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest"),
    )
    with op.batch_alter_table("api_keys", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_api_keys_organisation_id"), ["organisation_id"], unique=False
        )

    op.create_table(
        "audit_records",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("event_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("environment_name", sa.String(), nullable=True),
        sa.Column("job_id", sa.String(), nullable=True),
        sa.Column("agent_id", sa.String(), nullable=True),
        sa.Column("request_id", sa.String(), nullable=True),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("previous", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("event_id"),
        sa.UniqueConstraint("organisation_id", "number"),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("audit_records", schema=None) as batch_op:
        batch_op.create_index("audit_records_by_time", ["organisation_id", "at"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_audit_records_organisation_id"), ["organisation_id"], unique=False
        )

    op.create_table(
        "data_assets",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("media_type", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("data_assets", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_data_assets_organisation_id"), ["organisation_id"], unique=False
        )

    op.create_table(
        "members",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("organisation_id", "user_id"),
    )
    with op.batch_alter_table("members", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_members_organisation_id"), ["organisation_id"], unique=False
        )

    op.create_table(
        "settings",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("value", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(), nullable=False),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("settings", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_settings_name"), ["name"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_settings_organisation_id"), ["organisation_id"], unique=False
        )

    op.create_table(
        "agent_records",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("agent_row_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("completed_at", sa.DateTime(), nullable=True),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["agent_row_id"], ["agents.row_id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("agent_records", schema=None) as batch_op:
        batch_op.create_index(
            "agent_records_by_kind", ["agent_row_id", "kind", "created_at"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_agent_records_organisation_id"), ["organisation_id"], unique=False
        )

    op.create_table(
        "agent_versions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("agent_row_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("config", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["agent_row_id"], ["agents.row_id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("agent_row_id", "version"),
    )
    with op.batch_alter_table("agent_versions", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_agent_versions_organisation_id"), ["organisation_id"], unique=False
        )

    op.create_table(
        "data_attachments",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("environment_id", sa.Integer(), nullable=False),
        sa.Column("data_asset_id", sa.String(), nullable=False),
        sa.Column("injection_config", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["data_asset_id"], ["data_assets.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["environment_id"], ["environments.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("data_attachments", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_data_attachments_environment_id"), ["environment_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_data_attachments_organisation_id"), ["organisation_id"], unique=False
        )

    op.create_table(
        "deployments",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("environment_id", sa.Integer(), nullable=True),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("cluster_name", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("app_status", sa.String(), nullable=False),
        sa.Column("record", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("updated_at", sa.DateTime(), nullable=False),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["environment_id"], ["environments.id"], ondelete="SET NULL"),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("deployments", schema=None) as batch_op:
        batch_op.create_index(
            "deployments_by_environment", ["environment_id", "created_at"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_deployments_organisation_id"), ["organisation_id"], unique=False
        )

    op.create_table(
        "governance",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("environment_id", sa.Integer(), nullable=True),
        sa.Column("config", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(), nullable=False),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["environment_id"], ["environments.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("organisation_id", "environment_id"),
    )
    with op.batch_alter_table("governance", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_governance_organisation_id"), ["organisation_id"], unique=False
        )

    op.create_table(
        "kpi_history",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("environment_id", sa.Integer(), nullable=True),
        sa.Column("checkpoint_id", sa.String(), nullable=True),
        sa.Column("figures", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["environment_id"], ["environments.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("kpi_history", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_kpi_history_organisation_id"), ["organisation_id"], unique=False
        )
        batch_op.create_index("kpi_history_by_environment", ["environment_id", "at"], unique=False)

    op.create_table(
        "repositories",
        sa.Column("environment_id", sa.Integer(), nullable=False),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("branch", sa.String(), nullable=False),
        sa.Column("context_path", sa.String(), nullable=False),
        sa.Column("auth_type", sa.String(), nullable=False),
        sa.Column("username", sa.String(), nullable=False),
        sa.Column("encrypted_token", sa.String(), nullable=True),
        sa.Column("checks", sa.JSON(), nullable=False),
        sa.Column("updated_at", sa.DateTime(), nullable=False),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["environment_id"], ["environments.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("environment_id"),
    )
    with op.batch_alter_table("repositories", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_repositories_organisation_id"), ["organisation_id"], unique=False
        )

    op.create_table(
        "scenario_suites",
        sa.Column("row_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("environment_id", sa.Integer(), nullable=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("scenario_ids", sa.JSON(), nullable=False),
        sa.Column("details", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("updated_at", sa.DateTime(), nullable=False),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["environment_id"], ["environments.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("row_id"),
        sa.UniqueConstraint("organisation_id", "id"),
    )
    with op.batch_alter_table("scenario_suites", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_scenario_suites_environment_id"), ["environment_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_scenario_suites_organisation_id"), ["organisation_id"], unique=False
        )

    op.create_table(
        "scenarios",
        sa.Column("row_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("environment_id", sa.Integer(), nullable=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("tier", sa.Integer(), nullable=False),
        sa.Column("task_prompt", sa.String(), nullable=False),
        sa.Column("max_steps", sa.Integer(), nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("details", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("updated_at", sa.DateTime(), nullable=False),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["environment_id"], ["environments.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("row_id"),
        sa.UniqueConstraint("organisation_id", "id"),
    )
    with op.batch_alter_table("scenarios", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_scenarios_environment_id"), ["environment_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_scenarios_organisation_id"), ["organisation_id"], unique=False
        )

    op.create_table(
        "tools",
        sa.Column("row_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("environment_id", sa.Integer(), nullable=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("category", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("parameters", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("details", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("updated_at", sa.DateTime(), nullable=False),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["environment_id"], ["environments.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("row_id"),
        sa.UniqueConstraint("organisation_id", "id"),
    )
    with op.batch_alter_table("tools", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_tools_environment_id"), ["environment_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_tools_organisation_id"), ["organisation_id"], unique=False
        )

    op.create_table(
        "verifiers",
        sa.Column("row_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("environment_id", sa.Integer(), nullable=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("system", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("logic", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("details", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("failure_policy", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("updated_at", sa.DateTime(), nullable=False),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["environment_id"], ["environments.id"], ondelete="SET NULL"),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("row_id"),
        sa.UniqueConstraint("organisation_id", "id"),
    )
    with op.batch_alter_table("verifiers", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_verifiers_environment_id"), ["environment_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_verifiers_organisation_id"), ["organisation_id"], unique=False
        )

    op.create_table(
        "verifier_attachments",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("environment_id", sa.Integer(), nullable=False),
        sa.Column("verifier_row_id", sa.Integer(), nullable=False),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["environment_id"], ["environments.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["verifier_row_id"], ["verifiers.row_id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("environment_id", "verifier_row_id"),
    )
    with op.batch_alter_table("verifier_attachments", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_verifier_attachments_organisation_id"), ["organisation_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_verifier_attachments_verifier_row_id"), ["verifier_row_id"], unique=False
        )

    op.create_table(
        "verifier_versions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("verifier_row_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("logic", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("failure_policy", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["verifier_row_id"], ["verifiers.row_id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("verifier_row_id", "version"),
    )
    with op.batch_alter_table("verifier_versions", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_verifier_versions_organisation_id"), ["organisation_id"], unique=False
        )

    op.create_table(
        "rollouts",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("environment_id", sa.Integer(), nullable=True),
        sa.Column("job_id", sa.String(), nullable=True),
        sa.Column("scenario_id", sa.String(), nullable=True),
        sa.Column("episode", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("total_reward", sa.Float(), nullable=True),
        sa.Column("total_steps", sa.Integer(), nullable=False),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["environment_id"], ["environments.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("rollouts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_rollouts_job_id"), ["job_id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_rollouts_organisation_id"), ["organisation_id"], unique=False
        )
        batch_op.create_index(
            "rollouts_by_environment", ["environment_id", "created_at"], unique=False
        )

    op.create_table(
        "webhooks",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=True),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("events", sa.JSON(), nullable=False),
        sa.Column("encrypted_secret", sa.String(), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("after_event_id", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("webhooks", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_webhooks_job_id"), ["job_id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_webhooks_organisation_id"), ["organisation_id"], unique=False
        )

    op.create_table(
        "webhook_deliveries",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("webhook_id", sa.String(), nullable=False),
        sa.Column("event_id", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.DateTime(), nullable=False),
        sa.Column("status_code", sa.Integer(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("delivered_at", sa.DateTime(), nullable=True),
        sa.Column("organisation_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["event_id"], ["events.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisations.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["webhook_id"], ["webhooks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("webhook_id", "event_id"),
    )
    with op.batch_alter_table("webhook_deliveries", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_webhook_deliveries_organisation_id"), ["organisation_id"], unique=False
        )
        batch_op.create_index("webhook_deliveries_due", ["status", "due_at"], unique=False)

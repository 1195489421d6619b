"""Checkpoints have a training state, figures and what their file says; exports are kept."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

BYTES = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Checkpoints of before have no state; their figures are in their other columns."""
    op.add_column("checkpoints", sa.Column("state_sha256", sa.String()))
    op.add_column("checkpoints", sa.Column("state_bytes", BYTES))
    op.add_column("checkpoints", sa.Column("manifest", sa.JSON()))
    op.add_column("checkpoints", sa.Column("metrics", sa.JSON()))
    if op.get_context().dialect.name != "sqlite":
        op.alter_column("checkpoints", "size_bytes", type_=sa.BigInteger())
    op.create_table(
        "checkpoint_exports",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column(
            "organisation_id",
            sa.Integer(),
            sa.ForeignKey("organisations.id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column(
            "checkpoint_id",
            sa.String(),
            sa.ForeignKey("checkpoints.id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("recipe", sa.String(), nullable=False),
        sa.Column("format", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("size_bytes", BYTES, nullable=False),
        sa.Column("checks", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
    )
    op.create_index(
        "ix_checkpoint_exports_organisation_id", "checkpoint_exports", ["organisation_id"]
    )
    op.create_index("ix_checkpoint_exports_checkpoint_id", "checkpoint_exports", ["checkpoint_id"])

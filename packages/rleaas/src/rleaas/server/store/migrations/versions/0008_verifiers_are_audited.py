"""Grader tests of verifiers are kept."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Verifiers of before are not audited."""
    op.create_table(
        "verifier_audits",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column(
            "verifier_row_id",
            sa.Integer(),
            sa.ForeignKey("verifiers.row_id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("judged_by", sa.String(), nullable=False),
        sa.Column("passed", sa.Boolean(), nullable=False),
        sa.Column("report", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column(
            "organisation_id",
            sa.Integer(),
            sa.ForeignKey("organisations.id", ondelete="CASCADE"),
            nullable=False,
        ),
    )
    op.create_index("ix_verifier_audits_verifier_row_id", "verifier_audits", ["verifier_row_id"])
    op.create_index("ix_verifier_audits_organisation_id", "verifier_audits", ["organisation_id"])

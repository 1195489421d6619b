"""Rollouts know the file that has their steps, and where they are in it."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rollouts of before have no file; what is known of their steps is in their data."""
    op.add_column("rollouts", sa.Column("file_sha256", sa.String()))
    op.add_column("rollouts", sa.Column("file_place", sa.Integer()))
    op.create_index("ix_rollouts_file_sha256", "rollouts", ["file_sha256"])

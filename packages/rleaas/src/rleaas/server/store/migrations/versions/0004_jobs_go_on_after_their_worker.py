"""Jobs know their worker process, and what became of the ones before it."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Jobs of before have no worker that could be found again, and began once."""
    op.add_column("jobs", sa.Column("worker", sa.String()))
    op.add_column("jobs", sa.Column("restarts", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("jobs", sa.Column("not_before", sa.DateTime()))
    op.add_column("jobs", sa.Column("history", sa.JSON(), nullable=False, server_default="[]"))

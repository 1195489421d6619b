"""Steps, events, audit records and deliveries count beyond 32 bits on PostgreSQL too."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

LARGE = (
    ("checkpoints", "timestep"),
    ("jobs", "last_seq"),
    ("rollouts", "total_steps"),
    ("events", "id"),
    ("webhooks", "after_event_id"),
    ("webhook_deliveries", "event_id"),
    ("webhook_deliveries", "id"),
    ("audit_records", "id"),
    ("audit_records", "number"),
)
NUMBERED = ("events", "webhook_deliveries", "audit_records")


def upgrade() -> None:
    """SQLite's integers are as large as they need to be."""
    if op.get_context().dialect.name == "sqlite":
        return
    for table, column in LARGE:
        op.alter_column(table, column, type_=sa.BigInteger())
    run = op.get_bind()
    for table in NUMBERED:
        # The column's own sequence would still end at 32 bits.
        name = run.scalar(sa.text("SELECT pg_get_serial_sequence(:table, 'id')"), {"table": table})
        op.execute(sa.text(f"ALTER SEQUENCE {name} AS bigint"))

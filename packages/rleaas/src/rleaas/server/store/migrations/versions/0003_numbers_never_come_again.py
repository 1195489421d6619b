"""Numbers of deleted rows are never given again; PostgreSQL has kept it so from the beginning."""

import re

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# Clients keep their ids; secrets and records are bound to those of versions, cursors to events.
NUMBERED = ("environments", "environment_versions", "events", "webhook_deliveries")
# How records name rows that may have been deleted since.
SUBJECTS = {"environments": "environment", "environment_versions": "environment_version"}


def upgrade() -> None:
    """Make SQLite remember the last number of each of these tables."""
    if op.get_context().dialect.name != "sqlite":
        return
    for table in NUMBERED:
        with op.batch_alter_table(
            table, recreate="always", table_kwargs={"sqlite_autoincrement": True}
        ):
            pass  # to be made anew is all that changes
        _go_on_after(table, max(_highest(table), _highest_told(table)))


def _highest(table: str) -> int:
    return op.get_bind().scalar(sa.text(f"SELECT max(id) FROM {table}")) or 0


def _highest_told(table: str) -> int:
    if table not in SUBJECTS:
        return 0
    told = op.get_bind().scalars(
        sa.text("SELECT subject FROM events UNION SELECT subject FROM audit_records")
    )
    subject = re.compile(f"{SUBJECTS[table]}:([0-9]{{1,15}})")
    return max((int(one[1]) for one in map(subject.fullmatch, told) if one), default=0)


def _go_on_after(table: str, last: int) -> None:
    said = {"name": table, "last": last}
    run = op.get_bind().execute
    run(sa.text("DELETE FROM sqlite_sequence WHERE name = :name"), said)
    if last:
        run(sa.text("INSERT INTO sqlite_sequence VALUES (:name, :last)"), said)

"""Data of every earlier revision is there after the upgrade, on both engines."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from rleaas.server.store import environments, events, schema
from rleaas.server.store.database import Database
from rleaas.server.store.environments import Registration
from rleaas.server.store.tables import Base, EventRow
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    DateTime,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    delete,
    insert,
    select,
    text,
)

# Any: rows hold what their columns can.
Row = Mapping[str, Any]
Rows = dict[str, list[Row]]

EARLIER = [script.revision for script in ScriptDirectory(str(schema.MIGRATIONS)).walk_revisions()][
    ::-1
]
# What requests were answered with is kept for a day at most; 0002 begins that anew.
BEGUN_ANEW = {"0001": {"idempotency_keys"}}
# Of the tables in which rows are numbered as work goes on, and those that count it.
NUMBERED = ("events", "audit_records", "webhook_deliveries")
LARGE = (
    ("checkpoints", "timestep"),
    ("jobs", "last_seq"),
    ("rollouts", "total_steps"),
    ("webhooks", "after_event_id"),
    ("webhook_deliveries", "event_id"),
    ("webhook_deliveries", "id"),
    ("audit_records", "id"),
    ("audit_records", "number"),
)
# The first that fits a column is what is put there.
VALUES: list[tuple[type, Any]] = [
    (Boolean, True),
    (DateTime, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
    (Float, 1.5),
    (Integer, 7),
    (JSON, {"ü": [1, "a/b"]}),
    (LargeBinary, b"\0\xff"),
    (String, "ü %"),
]


def value_of(column: Column[Any], filled: Rows) -> Any:
    for key in column.foreign_keys:
        return filled[key.column.table.name][-1][key.column.name]
    return next(value for kind, value in VALUES if isinstance(column.type, kind))


def fill(connection: Connection) -> Rows:
    """Put a row into each table that there is, and return all that is in them then."""
    before = MetaData()
    before.reflect(connection)
    filled: Rows = {}
    for table in before.sorted_tables:
        if table.name != "alembic_version":
            row = {column.name: value_of(column, filled) for column in table.columns}
            connection.execute(insert(table).values(row))
            filled[table.name] = rows_of(connection, table)
    return filled


def rows_of(connection: Connection, table: Table) -> list[Row]:
    return [dict(row) for row in connection.execute(select(table)).mappings()]


@pytest.mark.parametrize("revision", EARLIER)
def test_every_row_of_an_earlier_revision_is_as_it_was(
    database_place: Path | str, revision: str
) -> None:
    database = Database(database_place)
    database.migrate(revision)
    with database.whole() as connection:
        before = fill(connection)
    assert len(before) > 5

    database.migrate()

    after = MetaData()
    with database.whole() as connection:
        assert MigrationContext.configure(connection).get_current_revision() == EARLIER[-1]
        after.reflect(connection)
        for name in before.keys() - BEGUN_ANEW.get(revision, set()):
            table = after.tables[name]
            kept = rows_of(connection, table)
            assert all(any(row.items() <= one.items() for one in kept) for row in before[name]), (
                name
            )
    database.close()


def test_new_rows_are_numbered_behind_the_old_ones(database_place: Path | str) -> None:
    database = Database(database_place)
    database.migrate(EARLIER[0])
    with database.whole() as connection:
        events = MetaData()
        events.reflect(connection, only=["events"])
        old = events.tables["events"]
        row: dict[str, Any] = {"at": datetime.now(UTC), "kind": "k", "subject": "s", "data": {}}
        connection.execute(insert(old).values([row, row, row]))

    database.migrate()

    new = Base.metadata.tables["events"]
    with database.whole() as connection:
        connection.execute(insert(new).values(organisation_id=1, **row))
        assert connection.scalars(select(new.c.id).order_by(new.c.id)).all() == [1, 2, 3, 4]
    database.close()


def test_what_grows_with_the_work_counts_beyond_32_bits(database_place: Path | str) -> None:
    large = 2**40
    database = Database(database_place)
    database.migrate()
    with database.whole() as connection:
        schema = MetaData()
        schema.reflect(connection)
        told, kept = schema.tables["events"], schema.tables["checkpoints"]
        row: dict[str, Any] = {"at": datetime.now(UTC), "kind": "k", "subject": "s", "data": {}}
        row["organisation_id"] = 1
        connection.execute(insert(told).values(id=large, **row))
        filled = {name: rows for name, rows in fill(connection).items() if name != "events"}
        for table, column in LARGE:
            connection.execute(schema.tables[table].update().values({column: large}))
            assert connection.scalar(select(schema.tables[table].c[column])) == large, table
        assert filled[kept.name]
        if not database.is_sqlite:
            for table in NUMBERED:
                connection.execute(
                    text("SELECT setval(pg_get_serial_sequence(:table, 'id'), :last)"),
                    {"table": table, "last": large},
                )
        assert connection.scalar(insert(told).values(**row).returning(told.c.id)) == large + 1
    database.close()


@pytest.mark.parametrize("revision", ["0001", "0002"])
def test_the_number_of_a_deleted_row_never_comes_again(
    database_place: Path | str, revision: str
) -> None:
    database = Database(database_place)
    database.migrate(revision)
    with database.whole() as connection:
        before = MetaData()
        before.reflect(connection)
        told = before.tables["events"]
        row: dict[str, Any] = {
            column.name: value_of(column, {}) for column in told.columns if not column.foreign_keys
        }
        owner = {"organisation_id": 1} if "organisation_id" in told.columns else {}
        for id, subject in ((1, "environment:41"), (2, "environment_version:42")):
            connection.execute(insert(told).values({**row, **owner, "id": id, "subject": subject}))
        if not database.is_sqlite:
            for table, last in (("environments", 41), ("environment_versions", 42), ("events", 2)):
                connection.execute(
                    text("SELECT setval(pg_get_serial_sequence(:table, 'id'), :last)"),
                    {"table": table, "last": last},
                )

    database.migrate()

    for number in range(2):
        with database.write(1) as session:
            made = environments.upsert(session, Registration("A"), None)[0].environment
            events.add(session, "x", "y", {})
            session.flush()
            numbers = (made.id, made.latest.id, events.newest(session))
            assert numbers == (42 + number, 43 + number, 3 + number)
            session.delete(made)
            session.execute(delete(EventRow).where(EventRow.id > 2))
    database.close()

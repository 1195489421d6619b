"""Data of every earlier revision is there after the upgrade, on both engines."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from rleaas.server.store import schema
from rleaas.server.store.database import Database
from rleaas.server.store.tables import Base
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
    insert,
    select,
)

# Any: rows hold what their columns can.
Row = Mapping[str, Any]
Rows = dict[str, list[Row]]

EARLIER = [script.revision for script in ScriptDirectory(str(schema.MIGRATIONS)).walk_revisions()][
    ::-1
]
# What requests were answered with is kept for a day at most; 0002 begins that anew.
BEGUN_ANEW = {"0001": {"idempotency_keys"}}
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

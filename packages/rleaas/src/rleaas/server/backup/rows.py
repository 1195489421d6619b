"""Tables as lines of JSON, which every database of ours can take up again.

The tables are looked up in the database, so that one of an older revision is written as it is.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    DateTime,
    MetaData,
    Table,
    Text,
    bindparam,
    delete,
    event,
    insert,
    select,
    text,
)
from sqlalchemy import cast as sql_cast
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.types import UserDefinedType

from rleaas.server.backup.archive import damaged

# Not what is kept, but who is alive, and the revision, which the manifest has.
_LEFT_OUT: Final = frozenset({"alembic_version", "leases"})
MOST_LINE: Final = 256 * 1024**2
_AT_ONCE: Final = 500


class _JsonText(UserDefinedType[str]):
    """A column of JSON whose values stay the text that they are kept as."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "JSON"

    def column_expression(self, colexpr: ColumnElement[str]) -> ColumnElement[str]:
        return sql_cast(colexpr, Text)


@dataclass(frozen=True, slots=True)
class Content:
    """What a table has: its columns in the order of the lines, how many rows, the last number."""

    columns: list[str]
    rows: int
    last: int | None = None


def tables(connection: Connection) -> list[Table]:
    """The tables of a database that a backup has, owners first."""
    metadata = MetaData()

    @event.listens_for(metadata, "column_reflect")
    def _(inspector: object, table: object, column: dict[str, object]) -> None:
        if isinstance(column["type"], JSON):
            column["type"] = _JsonText()

    metadata.reflect(connection)
    return [table for table in metadata.sorted_tables if table.name not in _LEFT_OUT]


def lines(connection: Connection, table: Table, counted: list[int]) -> Iterator[bytes]:
    """The rows of a table, one line each; how many there were is added to `counted`."""
    asked = select(table).order_by(*table.primary_key.columns)
    count = 0
    for part in connection.execute(asked.execution_options(yield_per=_AT_ONCE)).partitions():
        count += len(part)
        yield "".join(f"{json.dumps([_plain(one) for one in row])}\n" for row in part).encode()
    counted.append(count)


def clear(connection: Connection, found: Sequence[Table]) -> None:
    """Remove every row, such as those that migrations make."""
    for table in reversed(found):
        connection.execute(delete(table))


def take(connection: Connection, table: Table, content: Content, given: Iterator[bytes]) -> None:
    """Add the rows of a table.

    Raises:
        RLEaaSError: they are not rows of this table.
    """
    columns = {column.name: column for column in table.columns}
    if set(content.columns) != set(columns):
        odd = sorted(set(content.columns) ^ set(columns))
        raise damaged(f"table {table.name!r} differs in the columns {', '.join(odd)}")
    times = {name for name, column in columns.items() if isinstance(column.type, DateTime)}
    statement = insert(table).values({name: bindparam(name) for name in content.columns})
    waiting: list[dict[str, object]] = []
    count = 0
    try:
        for line in given:
            waiting.append(_row(table.name, content.columns, times, line))
            count += 1
            if len(waiting) == _AT_ONCE:
                connection.execute(statement, waiting)
                waiting.clear()
        if waiting:
            connection.execute(statement, waiting)
    except SQLAlchemyError as error:
        cause = str(getattr(error, "orig", error)).splitlines()[0]
        raise damaged(f"table {table.name!r} has rows that cannot be taken: {cause}") from error
    if count != content.rows:
        raise damaged(f"table {table.name!r} has {count} rows, not {content.rows}")


def last_number(connection: Connection, table: Table) -> int | None:
    """The last number that was given to a row of the table, which may be gone; None: unknown."""
    key = _numbered(table)
    if key is None:
        return None
    if connection.dialect.name == "sqlite":
        if not _remembers_numbers(connection, table):
            return None
        return connection.execute(
            text("SELECT seq FROM sqlite_sequence WHERE name = :name"), {"name": table.name}
        ).scalar()
    sequence = _sequence(connection, table, key)
    if sequence is None:
        return None
    value, was_given = connection.execute(
        text(f"SELECT last_value, is_called FROM {sequence}")
    ).one()
    return int(value) if was_given else None


def go_on_after(connection: Connection, table: Table, last: int | None) -> None:
    """Give new rows numbers after all that were ever given."""
    key = _numbered(table)
    if key is None:
        return
    highest = connection.scalar(select(table.c[key]).order_by(table.c[key].desc()).limit(1))
    numbers = [int(one) for one in (highest, last) if one is not None]
    if not numbers:
        return
    if connection.dialect.name != "sqlite":
        sequence = _sequence(connection, table, key)
        if sequence is not None:
            connection.execute(text("SELECT setval(:s, :n)"), {"s": sequence, "n": max(numbers)})
    elif _remembers_numbers(connection, table):
        said = {"name": table.name, "seq": max(numbers)}
        connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), said)
        connection.execute(text("INSERT INTO sqlite_sequence VALUES (:name, :seq)"), said)


def content_of(table: str, said: object) -> Content:
    """Read what a manifest says of a table.

    Raises:
        RLEaaSError: it does not say it.
    """
    facts: Mapping[str, object] = (
        cast("Mapping[str, object]", said) if isinstance(said, dict) else {}
    )
    columns, rows, last = facts.get("columns"), facts.get("rows"), facts.get("last")
    names = cast("list[object]", columns) if isinstance(columns, list) else []
    known = [name for name in names if isinstance(name, str)]
    usable = known and len(known) == len(names) == len(set(known))
    if not usable or not _is_count(rows) or not (last is None or _is_count(last)):
        raise damaged(f"its manifest does not describe table {table!r}")
    return Content(known, cast("int", rows), cast("int | None", last))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _row(table: str, columns: Sequence[str], times: set[str], line: bytes) -> dict[str, object]:
    try:
        values: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise damaged(f"table {table!r} has a line that is no row: {error}") from error
    if not isinstance(values, list) or len(cast("list[object]", values)) != len(columns):
        raise damaged(f"table {table!r} has a line that is no row of its {len(columns)} columns")
    row: dict[str, object] = dict(zip(columns, cast("list[object]", values), strict=True))
    for name, value in row.items():
        if isinstance(value, list | dict):
            raise damaged(f"table {table!r} has a value in {name!r} that no column can hold")
        if name in times and value is not None:
            row[name] = _moment(table, name, value)
    return row


def _moment(table: str, column: str, value: object) -> datetime:
    try:
        return datetime.fromisoformat(str(value))
    except ValueError as error:
        raise damaged(f"table {table!r} has no time in {column!r}: {str(value)[:80]!r}") from error


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"a backup cannot hold a {type(value).__name__}")


def _numbered(table: Table) -> str | None:
    keys = list(table.primary_key.columns)
    if len(keys) != 1 or keys[0].type.python_type is not int:
        return None
    return keys[0].name


def _remembers_numbers(connection: Connection, table: Table) -> bool:
    made = connection.execute(
        text("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = :name"),
        {"name": table.name},
    ).scalar()
    return "AUTOINCREMENT" in str(made).upper()


def _sequence(connection: Connection, table: Table, key: str) -> str | None:
    return connection.execute(
        text("SELECT pg_get_serial_sequence(:table, :key)"), {"table": table.name, "key": key}
    ).scalar()

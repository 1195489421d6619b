"""What all tables share: times, JSON, and who a row belongs to."""

from datetime import UTC, datetime

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Integer,
    TypeDecorator,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, declared_attr, mapped_column

JsonObject = dict[str, object]
JsonList = list[JsonObject]

# What grows with the work that is done passes what 32 bits count; SQLite has one kind of integer.
Large = BigInteger().with_variant(Integer(), "sqlite")

# The organisation that the migration makes: the one of a server without keys.
FIRST_ORGANISATION = 1


class UtcTime(TypeDecorator[datetime]):
    """An aware time; SQLite keeps no zone, so it is stored in UTC and read back as UTC."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Store the moment in UTC."""
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give the moment back with its zone."""
        return None if value is None else value.replace(tzinfo=UTC)


class Base(DeclarativeBase):
    """All tables; the migrations are checked against its metadata."""

    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads it from the class
        JsonObject: JSON(none_as_null=True),
        JsonList: JSON,
        list[str]: JSON,
        datetime: UtcTime,
        float: Float,
    }


class Owned:
    """A row of one organisation; sessions of others neither find nor change it.

    `Database.read` and `Database.write` see to that, and new rows get the session's organisation.
    """

    @declared_attr
    def organisation_id(cls) -> Mapped[int]:  # noqa: N805 - SQLAlchemy calls it with the class
        """Whose it is."""
        return mapped_column(ForeignKey("organisations.id", ondelete="CASCADE"), index=True)

"""Revisions of the tables: which one a database has, which the code has, and what lies between."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from rlcore import ConfigurationError
from sqlalchemy import Connection

MIGRATIONS: Final = Path(__file__).parent / "migrations"


@dataclass(frozen=True, slots=True)
class Step:
    """A migration that is still to be run."""

    revision: str
    what: str


@dataclass(frozen=True, slots=True)
class Schema:
    """Where a database is, and where this code would bring it; `current` None: it is empty."""

    current: str | None
    newest: str
    pending: tuple[Step, ...]


def migration_config(connection: Connection) -> Config:
    """Alembic's settings for the migrations that ship inside the package."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def look(connection: Connection) -> Schema:
    """Find out what revision a database has; nothing is changed.

    Raises:
        ConfigurationError: it is one that this code does not know.
    """
    current = MigrationContext.configure(connection).get_current_revision()
    return compare(current)


def compare(current: str | None) -> Schema:
    """What is between a revision and the newest.

    Raises:
        ConfigurationError: this code does not know the revision.
    """
    scripts = _scripts()
    newest = scripts.get_current_head()
    assert newest is not None  # the package has migrations
    # Not whatever Alembic understands: that takes `head` and `-1`, too.
    if current is not None and current not in {one.revision for one in scripts.walk_revisions()}:
        raise ConfigurationError(
            f"the tables have revision {current!r}, which this rleaas does not know; it knows none "
            f"later than {newest!r}",
            code="schema_newer",
            hint="They were made by a newer rleaas: use that one",
        )
    found = list(scripts.iterate_revisions(newest, current or "base"))
    steps = (Step(one.revision, one.doc) for one in reversed(found))
    return Schema(current, newest, tuple(steps))


@cache
def _scripts() -> ScriptDirectory:
    # To read them takes longer than all else that a server does at its start.
    return ScriptDirectory(str(MIGRATIONS))

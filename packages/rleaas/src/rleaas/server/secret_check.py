"""Whether a server has the secret that its database was written with.

Servers that share a database share a data directory too: the secret that signs and seals, and the
files that rows refer to, are there.
"""

import hashlib
import logging
from datetime import UTC, datetime
from typing import Final

from rlcore import ConfigurationError
from sqlalchemy import select

from rleaas.server.keys import ServerKeys
from rleaas.server.store.database import Database
from rleaas.server.store.tables import FIRST_ORGANISATION, JsonObject, SettingRow

logger = logging.getLogger("rleaas.server")

_NAME: Final = "server_secret"


def require_own_secret(database: Database, keys: ServerKeys) -> None:
    """Note which secret is used, or compare it with the one that was.

    Raises:
        ConfigurationError: the database is shared, and another server's data directory goes with
            it. A file beside a new secret only warns: it is one's own that was lost.
    """
    found: JsonObject = {"sha256": hashlib.sha256(keys.mark.reveal().encode()).hexdigest()}
    with database.write(FIRST_ORGANISATION) as session:
        row = session.scalar(select(SettingRow).where(SettingRow.name == _NAME))
        if row is None:
            session.add(SettingRow(name=_NAME, value=found, updated_at=datetime.now(UTC)))
            return
        if row.value == found:
            return
        if not database.is_sqlite:
            raise ConfigurationError(
                "the database belongs to servers with another data directory",
                code="another_secret",
                hint="Servers of one database share one data directory: name it with --data",
            )
        logger.warning(
            "server.key is not the one that the database was written with: tokens of repositories "
            "and secrets of webhooks that were saved cannot be read any more; put it back, or save "
            "them again"
        )
        row.value, row.updated_at = found, datetime.now(UTC)

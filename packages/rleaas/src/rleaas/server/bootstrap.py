"""The first admin key of a server, made where its database is."""

from dataclasses import dataclass
from pathlib import Path

from rlcore import ConflictError, Secret
from sqlalchemy import select

from rleaas.server.keys import ServerKeys
from rleaas.server.rules.grants import ADMIN, SCOPES
from rleaas.server.store import audit, keys, organisations
from rleaas.server.store.database import Database
from rleaas.server.store.tables import FIRST_ORGANISATION, ApiKeyRow


@dataclass(frozen=True, slots=True)
class FirstKey:
    """A key of the server's operators."""

    id: str
    prefix: str
    email: str
    secret: Secret


def bootstrap(
    place: Path | str,
    *,
    email: str,
    name: str,
    another: bool = False,
    data_dir: Path | None = None,
) -> FirstKey:
    """Make a key that may do everything; it works at once, also where a server is running.

    Args:
        place: the database, as for `Database`.
        email: whose key it is; they become an admin of the first organisation.
        name: what it is called.
        another: whether to make one although there is an admin's key already.
        data_dir: the server's data directory, by default the one of the file `place`; its
            server.key seals the record of this.

    Raises:
        ConfigurationError: the audit chain is sealed, and the server.key is not there.
        ConflictError: there is one already.
    """
    database = Database(place)
    try:
        database.migrate()
        secret_file = None if data_dir is None else data_dir / "server.key"
        if secret_file is None and isinstance(place, Path):
            secret_file = place.with_name("server.key")
        if secret_file is not None and secret_file.exists():
            database.seal_audit(ServerKeys(secret_file).audit)
        with database.write() as session:
            found = session.scalars(
                select(ApiKeyRow).where(
                    ApiKeyRow.organisation_id == FIRST_ORGANISATION, ApiKeyRow.is_active.is_(True)
                )
            )
            admin = next((row for row in found if ADMIN in row.scopes), None)
            if admin is not None and not another:
                raise ConflictError(
                    f"there is an admin's key already: {admin.name!r} ({admin.prefix}...)",
                    code="bootstrapped_before",
                    hint="Use that one, or add --another where it was lost",
                )
            user = organisations.user_of_email(session, email)
            organisations.put_member(session, FIRST_ORGANISATION, user, ADMIN)
            row, secret = keys.make(session, FIRST_ORGANISATION, user, name=name, scopes=SCOPES)
            audit.record(
                session,
                audit.ServerItself(FIRST_ORGANISATION, actor="rleaas keys bootstrap"),
                action="key.created",
                subject=f"key:{row.id}",
                data={"prefix": row.prefix, "scopes": row.scopes, "user_id": user.id},
            )
            return FirstKey(str(row.id), row.prefix, user.email, secret)
    finally:
        database.close()

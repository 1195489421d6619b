"""Which files the rows of a database need, whatever its revision."""

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, Table, select

from rleaas.server.backup.files import PREFIX


def needed(connection: Connection, tables: Sequence[Table]) -> Iterator[tuple[str, str]]:
    """The members that rows refer to, each with the SHA-256 that it must have."""
    found = {table.name: table for table in tables}
    checkpoints, assets = found.get("checkpoints"), found.get("data_assets")
    if checkpoints is not None:
        columns = (checkpoints.c.job_id, checkpoints.c.id, checkpoints.c.sha256)
        for job_id, checkpoint_id, sha256 in connection.execute(select(*columns)):
            yield f"{PREFIX}checkpoints/{job_id}/{checkpoint_id}.zip", sha256
    if assets is not None:
        columns = (assets.c.organisation_id, assets.c.sha256, assets.c.sha256)
        for organisation, name, sha256 in connection.execute(select(*columns).distinct()):
            yield f"{PREFIX}assets/{organisation}/{name}", sha256

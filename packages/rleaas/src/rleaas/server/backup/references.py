"""Which files the rows of a database need, whatever its revision."""

from collections.abc import Iterator, Sequence

from sqlalchemy import Column, Connection, Table, select

from rleaas.server.artifacts.store import member_of
from rleaas.server.backup.files import PREFIX


def needed(
    connection: Connection, tables: Sequence[Table]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """What rows refer to: the members that it may be, each with the SHA-256 that it must have."""
    found = {table.name: table for table in tables}
    checkpoints, assets = found.get("checkpoints"), found.get("data_assets")
    rollouts = found.get("rollouts")
    if rollouts is not None and "file_sha256" in rollouts.c:
        yield from _artifacts(connection, rollouts.c.file_sha256)
    if checkpoints is not None:
        columns = (checkpoints.c.job_id, checkpoints.c.id, checkpoints.c.sha256)
        for job_id, checkpoint_id, sha256 in connection.execute(select(*columns)):
            # The second is where releases before artifacts kept it.
            before = f"{PREFIX}checkpoints/{job_id}/{checkpoint_id}.zip"
            yield (PREFIX + member_of(sha256), before), sha256
        if "state_sha256" in checkpoints.c:
            yield from _artifacts(connection, checkpoints.c.state_sha256)
    if assets is not None:
        columns = (assets.c.organisation_id, assets.c.sha256, assets.c.sha256)
        for organisation, name, sha256 in connection.execute(select(*columns).distinct()):
            yield (f"{PREFIX}assets/{organisation}/{name}",), sha256


def _artifacts(
    connection: Connection, column: Column[str]
) -> Iterator[tuple[tuple[str, ...], str]]:
    for sha256 in connection.scalars(select(column).where(column.is_not(None)).distinct()):
        yield (PREFIX + member_of(sha256),), sha256

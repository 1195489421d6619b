"""Uploaded data, and which environments are given it."""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime

from rlcore import NotFoundError
from sqlalchemy import select
from sqlalchemy.orm import Session

from rleaas.server.store.tables import (
    DataAssetRow,
    DataAttachmentRow,
    EnvironmentRow,
    JsonObject,
)


def add(session: Session, *, name: str, media_type: str, sha256: str, size: int) -> DataAssetRow:
    """Keep what is known of an upload."""
    row = DataAssetRow(
        id=f"data_{secrets.token_hex(8)}",
        name=name,
        media_type=media_type,
        sha256=sha256,
        size_bytes=size,
        created_at=datetime.now(UTC),
    )
    session.add(row)
    session.flush()
    return row


def find(session: Session, asset_id: str) -> DataAssetRow:
    """The asset with this id.

    Raises:
        NotFoundError: there is none.
    """
    row = session.scalar(select(DataAssetRow).where(DataAssetRow.id == asset_id))
    if row is None:
        raise NotFoundError(kind="data_asset", ref=asset_id)
    return row


def page(session: Session) -> Sequence[DataAssetRow]:
    """Every asset, oldest first."""
    return session.scalars(
        select(DataAssetRow).order_by(DataAssetRow.created_at, DataAssetRow.id)
    ).all()


def is_kept(session: Session, sha256: str) -> bool:
    """Whether some asset still has this content."""
    where = DataAssetRow.sha256 == sha256
    return session.scalar(select(DataAssetRow.id).where(where).limit(1)) is not None


def is_attached(session: Session, asset: DataAssetRow) -> bool:
    """Whether some environment is given it."""
    where = DataAttachmentRow.data_asset_id == asset.id
    return session.scalar(select(DataAttachmentRow.id).where(where).limit(1)) is not None


def attach(
    session: Session, environment: EnvironmentRow, asset: DataAssetRow, injection: JsonObject
) -> DataAttachmentRow:
    """Give an environment the data; given twice, the second injection replaces the first."""
    row = session.scalar(
        select(DataAttachmentRow).where(
            DataAttachmentRow.environment_id == environment.id,
            DataAttachmentRow.data_asset_id == asset.id,
        )
    )
    if row is None:
        row = DataAttachmentRow(
            environment_id=environment.id, data_asset_id=asset.id, created_at=datetime.now(UTC)
        )
        session.add(row)
    row.injection_config = injection
    session.flush()
    return row


def attached(
    session: Session, environment: EnvironmentRow
) -> Sequence[tuple[DataAttachmentRow, DataAssetRow]]:
    """What an environment is given, in the order in which it was."""
    found = session.execute(
        select(DataAttachmentRow, DataAssetRow)
        .join(DataAssetRow, DataAssetRow.id == DataAttachmentRow.data_asset_id)
        .where(DataAttachmentRow.environment_id == environment.id)
        .order_by(DataAttachmentRow.id)
    )
    return [(row[0], row[1]) for row in found]


def detach(session: Session, environment: EnvironmentRow, asset_id: str) -> None:
    """Take the data away from an environment; the asset stays.

    Raises:
        NotFoundError: the environment has not got it.
    """
    row = session.scalar(
        select(DataAttachmentRow).where(
            DataAttachmentRow.environment_id == environment.id,
            DataAttachmentRow.data_asset_id == asset_id,
        )
    )
    if row is None:
        raise NotFoundError(kind="data_attachment", ref=asset_id)
    session.delete(row)

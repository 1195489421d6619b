"""Deployments in the database, and what happened to them."""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from rlcore import NotFoundError
from sqlalchemy import select
from sqlalchemy.orm import Session

from rleaas.server.render import moment
from rleaas.server.rules.json_values import fields, items
from rleaas.server.store import events
from rleaas.server.store.tables import (
    DeploymentRow,
    EnvironmentRow,
    EventRow,
    JsonObject,
    SettingRow,
)

# Kept encrypted beside the record, and never told.
SECRETS: Final = "sealed"
CLOUD_CONFIG: Final = "cloud_config"


def add(
    session: Session,
    environment: EnvironmentRow | None,
    record: JsonObject,
    status: str,
) -> DeploymentRow:
    """Keep a new deployment."""
    now = datetime.now(UTC)
    row = DeploymentRow(
        id=f"dep_{secrets.token_hex(8)}",
        environment_id=None if environment is None else environment.id,
        provider=str(record["provider"]),
        cluster_name=str(record["cluster_name"]),
        status=status,
        app_status=status,
        record=record,
        created_at=now,
        updated_at=now,
    )
    session.add(row)
    session.flush()
    return row


def find(session: Session, deployment_id: str) -> DeploymentRow:
    """The deployment with this id.

    Raises:
        NotFoundError: there is none.
    """
    row = session.scalar(select(DeploymentRow).where(DeploymentRow.id == deployment_id))
    if row is None:
        raise NotFoundError(kind="deployment", ref=deployment_id)
    return row


def page(session: Session, environment: EnvironmentRow | None) -> Sequence[DeploymentRow]:
    """Every deployment, or those of one environment, oldest first."""
    query = select(DeploymentRow).order_by(DeploymentRow.created_at, DeploymentRow.id)
    if environment is not None:
        query = query.where(DeploymentRow.environment_id == environment.id)
    return session.scalars(query).all()


def change(row: DeploymentRow, **changes: object) -> None:
    """Change fields of the record; the others stay."""
    row.record = {**row.record, **changes}
    row.updated_at = datetime.now(UTC)


def log(session: Session, row: DeploymentRow, line: str) -> None:
    """Append a line to the deployment's log."""
    events.add(session, _subject(row), "log", {"line": line})


def lines(session: Session, row: DeploymentRow, after: int) -> Sequence[EventRow]:
    """The lines of the log after the one with this number."""
    return events.about(session, _subject(row), ("log",), after=after)


def shown(session: Session, row: DeploymentRow) -> JsonObject:
    """A deployment as clients read it, without its secrets."""
    environment = None
    if row.environment_id is not None:
        environment = session.get(EnvironmentRow, row.environment_id)
    record = {name: value for name, value in row.record.items() if name != SECRETS}
    sealed = fields(row.record.get(SECRETS))
    return {
        **record,
        "id": row.id,
        "provider": row.provider,
        "cluster_name": row.cluster_name,
        "env_name": None if environment is None else environment.name,
        "environment_id": row.environment_id,
        "status": row.status,
        "app_status": row.app_status,
        "deployment_urls": items(row.record.get("deployment_urls")),
        "secrets": sorted(sealed),
        "created_at": moment(row.created_at),
        "updated_at": moment(row.updated_at),
    }


def cloud_config(session: Session) -> JsonObject:
    """What the organisation changed of the cloud configuration."""
    row = session.scalar(select(SettingRow).where(SettingRow.name == CLOUD_CONFIG))
    return {} if row is None else row.value


def change_cloud_config(session: Session, changes: JsonObject) -> JsonObject:
    """Replace the given keys; the others stay."""
    row = session.scalar(select(SettingRow).where(SettingRow.name == CLOUD_CONFIG))
    if row is None:
        row = SettingRow(name=CLOUD_CONFIG, value={})
        session.add(row)
    row.value = {**row.value, **changes}
    row.updated_at = datetime.now(UTC)
    session.flush()
    return row.value


def _subject(row: DeploymentRow) -> str:
    return f"deployment:{row.id}"

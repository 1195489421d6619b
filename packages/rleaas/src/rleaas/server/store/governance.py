"""How each organisation, and each of its environments, wants its data treated."""

from collections.abc import Mapping
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from rleaas.server.rules import governance
from rleaas.server.rules.governance import Config
from rleaas.server.store.tables import EnvironmentRow, GovernanceRow


def configure(
    session: Session, environment: EnvironmentRow | None, given: Mapping[str, object]
) -> Config:
    """Merge settings into those of an environment, or without one of the platform.

    Raises:
        InvalidRequestError: a setting cannot be used.
    """
    environment_id = None if environment is None else environment.id
    row = session.scalar(select(GovernanceRow).where(_about(environment_id)))
    if row is None:
        row = GovernanceRow(environment_id=environment_id, config={})
        session.add(row)
    row.config = governance.merged(row.config, given)
    row.updated_at = datetime.now(UTC)
    session.flush()
    return row.config


def own(session: Session, environment_id: int | None) -> Config:
    """What was configured for an environment itself, or without one for the platform."""
    row = session.scalar(select(GovernanceRow).where(_about(environment_id)))
    return {} if row is None else row.config


def of_environments(session: Session, organisation: int) -> dict[int, Config]:
    """What an organisation configured for each of its environments, by their number."""
    rows = session.scalars(
        select(GovernanceRow).where(
            GovernanceRow.organisation_id == organisation,
            GovernanceRow.environment_id.is_not(None),
        )
    )
    return {row.environment_id: row.config for row in rows if row.environment_id is not None}


def effective(session: Session, organisation: int, environment_id: int | None) -> Config:
    """What holds for an environment of an organisation; without one, for the platform."""
    found: dict[int | None, Config] = {
        row.environment_id: row.config
        for row in session.scalars(
            select(GovernanceRow).where(
                GovernanceRow.organisation_id == organisation,
                GovernanceRow.environment_id.is_(None)
                | (GovernanceRow.environment_id == environment_id),
            )
        )
    }
    platform = found.get(None, {})
    return governance.effective(
        platform, {} if environment_id is None else found.get(environment_id, {})
    )


def _about(environment_id: int | None) -> ColumnElement[bool]:
    if environment_id is None:
        return GovernanceRow.environment_id.is_(None)
    return GovernanceRow.environment_id == environment_id

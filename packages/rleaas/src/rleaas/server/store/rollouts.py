"""Rollouts in the database: episodes of evaluations, and those that somebody stored."""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime

from rlcore import NotFoundError
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from rleaas.server.rules import governance as rules
from rleaas.server.rules.json_values import integer, number
from rleaas.server.store import governance
from rleaas.server.store.tables import EnvironmentRow, JobRow, JsonObject, RolloutRow

COMPLETED = "completed"
FAILED = "failed"


def add(
    session: Session,
    environment: EnvironmentRow,
    data: JsonObject,
    *,
    episode: int,
    status: str,
    total_reward: float | None,
    total_steps: int,
    job_id: str | None = None,
    scenario_id: str | None = None,
    rollout_id: str | None = None,
    at: datetime | None = None,
) -> RolloutRow:
    """Store an episode; fields that governance names are masked before."""
    organisation = environment.organisation_id
    config = governance.effective(session, organisation, environment.id)
    hidden = rules.texts(config["pii_fields"])
    kept = rules.masked(data, hidden)
    assert isinstance(kept, dict)
    row = RolloutRow(
        organisation_id=organisation,
        id=rollout_id or f"roll_{secrets.token_hex(8)}",
        environment_id=environment.id,
        job_id=job_id,
        scenario_id=scenario_id,
        episode=episode,
        status=status,
        total_reward=total_reward,
        total_steps=total_steps,
        data=kept,
        created_at=at or datetime.now(UTC),
    )
    session.add(row)
    session.flush()
    return row


def add_episode(session: Session, job: JobRow, record: JsonObject) -> RolloutRow:
    """Store an episode that a worker reported."""
    reward = number(record.get("reward"))
    scenario = record.get("scenario_id")
    return add(
        session,
        job.version.environment,
        {**record, "source": job.kind},
        episode=integer(record.get("index")) or 0,
        status=FAILED if reward is None else COMPLETED,
        total_reward=reward,
        total_steps=integer(record.get("steps")) or 0,
        job_id=job.id,
        scenario_id=scenario if isinstance(scenario, str) else None,
    )


def find(session: Session, rollout_id: str) -> RolloutRow:
    """The rollout with this id.

    Raises:
        NotFoundError: there is none.
    """
    row = session.scalar(select(RolloutRow).where(RolloutRow.id == rollout_id))
    if row is None:
        raise NotFoundError(kind="rollout", ref=rollout_id, code="rollout_not_found")
    return row


def page(
    session: Session,
    *,
    environment_id: int | None = None,
    job_id: str | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> tuple[Sequence[RolloutRow], int]:
    """Rollouts, newest first, and how many there are in all."""
    query = select(RolloutRow)
    if environment_id is not None:
        query = query.where(RolloutRow.environment_id == environment_id)
    if job_id is not None:
        query = query.where(RolloutRow.job_id == job_id)
    total = session.scalar(select(func.count()).select_from(query.subquery())) or 0
    newest = query.order_by(RolloutRow.created_at.desc(), RolloutRow.episode.desc(), RolloutRow.id)
    return session.scalars(newest.limit(limit).offset(offset or None)).all(), total


def names(session: Session, rows: Sequence[RolloutRow]) -> dict[int, str]:
    """The names of the environments that these rollouts were played on, by their number."""
    ids = {row.environment_id for row in rows if row.environment_id is not None}
    found = session.execute(
        select(EnvironmentRow.id, EnvironmentRow.name).where(EnvironmentRow.id.in_(ids))
    )
    return {row.id: row.name for row in found}

"""Rollouts in the database: episodes of evaluations, and those that somebody stored."""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

from rlcore import NotFoundError
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from rleaas.server.rules import governance as rules
from rleaas.server.rules.json_values import fields, integer, items, number
from rleaas.server.store import governance
from rleaas.server.store.tables import EnvironmentRow, JobRow, JsonObject, RolloutRow, VerifierRow

COMPLETED = "completed"
FAILED = "failed"
_AT_ONCE = 500


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
    row = RolloutRow(
        organisation_id=environment.organisation_id,
        id=rollout_id or f"roll_{secrets.token_hex(8)}",
        environment_id=environment.id,
        job_id=job_id,
        scenario_id=scenario_id,
        episode=episode,
        status=status,
        total_reward=total_reward,
        total_steps=total_steps,
        data=_masked(data, _hidden(session, environment)),
        created_at=at or datetime.now(UTC),
    )
    session.add(row)
    session.flush()
    return row


def id_of(job_id: str, episode: int) -> str:
    """What a job's episode is called: the same each time that it is told."""
    return f"roll_{hashlib.sha256(f'{job_id}:{episode}'.encode()).hexdigest()[:16]}"


def add_episode(session: Session, job: JobRow, record: JsonObject) -> RolloutRow:
    """Store an episode that a worker reported, in place of what was said of it before."""
    return add_episodes(session, job, [record])[0]


def add_episodes(
    session: Session, job: JobRow, records: Sequence[JsonObject], file: str | None = None
) -> list[RolloutRow]:
    """Store what a worker said of these episodes, in place of what was said of them before.

    Args:
        session: a transaction.
        job: who played them.
        records: each with its `index`.
        file: the digest of the file that has their steps, in this order.
    """
    environment, now = job.version.environment, datetime.now(UTC)
    hidden = _hidden(session, environment)
    rows: list[RolloutRow] = []
    for place, record in enumerate(records):
        reward, scenario = number(record.get("reward")), record.get("scenario_id")
        episode = integer(record.get("index")) or 0
        said = {**record, **_tagged(session, job, record), "source": job.kind}
        rows.append(
            RolloutRow(
                organisation_id=environment.organisation_id,
                id=id_of(job.id, episode),
                environment_id=environment.id,
                job_id=job.id,
                scenario_id=scenario if isinstance(scenario, str) else None,
                episode=episode,
                status=FAILED if reward is None else COMPLETED,
                total_reward=reward,
                total_steps=integer(record.get("steps")) or 0,
                data=_masked(said, hidden),
                created_at=now,
                file_sha256=file,
                file_place=None if file is None else place,
            )
        )
    for begin in range(0, len(rows), _AT_ONCE):
        again = [row.id for row in rows[begin : begin + _AT_ONCE]]
        session.execute(delete(RolloutRow).where(RolloutRow.id.in_(again)))
    session.add_all(rows)
    session.flush()
    return rows


def _hidden(session: Session, environment: EnvironmentRow) -> Sequence[str]:
    config = governance.effective(session, environment.organisation_id, environment.id)
    return rules.texts(config["pii_fields"])


def _masked(data: JsonObject, hidden: Sequence[str]) -> JsonObject:
    return cast("JsonObject", rules.masked(data, hidden))


def _tagged(session: Session, job: JobRow, record: JsonObject) -> JsonObject:
    """What verifiers said, with the tags of those that judge the job."""
    said = items(record.get("verifier_results"))
    if not said:
        return {}
    known: dict[str, dict[str, list[str]]] = session.info.setdefault("compliance_tags", {})
    if job.id not in known:
        known[job.id] = _tags_of(session, job)
    told: list[JsonObject] = []
    for one in map(fields, said):
        tags = known[job.id].get(str(one.get("verifier_id")))
        told.append({"compliance_tags": tags, **one} if tags else one)
    return {"verifier_results": told}


def _tags_of(session: Session, job: JobRow) -> dict[str, list[str]]:
    listed = map(fields, items(fields(job.request.get("verifiers")).get("definitions")))
    logic = {str(one.get("id")): fields(one.get("logic")) for one in listed}
    found = {one: rules.texts(said.get("compliance_tags")) for one, said in logic.items()}
    asked = [one for one, tags in found.items() if not tags]
    for row in session.scalars(select(VerifierRow).where(VerifierRow.id.in_(asked))):
        # Those of a built-in world have them beside what they judge by.
        found[row.id] = rules.texts(row.details.get("compliance_tags"))
    return found


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


def of_job(
    session: Session, job_id: str, *, limit: int | None = None, offset: int = 0
) -> tuple[Sequence[RolloutRow], int]:
    """A job's rollouts in the order of its episodes, and how many there are in all."""
    query = select(RolloutRow).where(RolloutRow.job_id == job_id)
    total = session.scalar(select(func.count()).select_from(query.subquery())) or 0
    ordered = query.order_by(RolloutRow.episode, RolloutRow.id)
    return session.scalars(ordered.limit(limit).offset(offset or None)).all(), total


def files_of(session: Session, job_id: str) -> list[str]:
    """The digests of the files that have the steps of a job's rollouts."""
    column = RolloutRow.file_sha256
    query = select(column).where(RolloutRow.job_id == job_id, column.is_not(None))
    return sorted(one for one in session.scalars(query.distinct()) if one is not None)


def has_file(session: Session, sha256: str) -> bool:
    """Whether a rollout has its steps in this file."""
    query = select(RolloutRow.id).where(RolloutRow.file_sha256 == sha256)
    return session.scalar(query.limit(1)) is not None


def names(session: Session, rows: Sequence[RolloutRow]) -> dict[int, str]:
    """The names of the environments that these rollouts were played on, by their number."""
    ids = {row.environment_id for row in rows if row.environment_id is not None}
    found = session.execute(
        select(EnvironmentRow.id, EnvironmentRow.name).where(EnvironmentRow.id.in_(ids))
    )
    return {row.id: row.name for row in found}

"""Figures of environments, computed from what was played and from nothing else."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from rleaas.server.rules.governance import texts
from rleaas.server.rules.json_values import items
from rleaas.server.store.tables import JobRow, JsonObject, KpiRow, RolloutRow

# The published names of two rates of tags; other tags are in `rates` only.
_PUBLISHED = {"aml": "aml_compliance_rate", "kyc": "kyc_check_rate"}
_AT_A_TIME = 500


def of_environment(session: Session, environment_id: int | None) -> JsonObject:
    """The figures of an environment's rollouts, or without one of all; unknown ones are None."""
    query = select(RolloutRow).order_by(RolloutRow.id)
    if environment_id is not None:
        query = query.where(RolloutRow.environment_id == environment_id)
    return figures(session.scalars(query.execution_options(yield_per=_AT_A_TIME)))


def of_job(session: Session, job_id: str) -> JsonObject:
    """The figures of one evaluation."""
    query = select(RolloutRow).where(RolloutRow.job_id == job_id)
    return figures(session.scalars(query.execution_options(yield_per=_AT_A_TIME)))


def figures(rollouts: Iterator[RolloutRow] | Sequence[RolloutRow]) -> JsonObject:
    """Means and rates over rollouts; a rate counts only those of which it is known."""
    rewards: list[float] = []
    steps: list[int] = []
    passes: list[bool] = []
    tagged: dict[str, list[bool]] = {}
    count = failed = 0
    for row in rollouts:
        count += 1
        if row.total_reward is None:
            failed += 1
            continue
        rewards.append(row.total_reward)
        steps.append(row.total_steps)
        success = row.data.get("success")
        if isinstance(success, bool):
            passes.append(success)
        for tag, passed in _tags(row.data).items():
            tagged.setdefault(tag, []).append(passed)
    rates = {tag: _mean(found) for tag, found in sorted(tagged.items())}
    return {
        "avg_reward": _mean(rewards),
        "pass_rate": _mean(passes),
        "avg_completion_steps": _mean(steps),
        **{name: rates.get(tag) for tag, name in _PUBLISHED.items()},
        "rates": rates,
        "episodes": count,
        "failed_episodes": failed,
    }


def note(session: Session, job: JobRow) -> None:
    """Keep the figures of an evaluation that is complete."""
    checkpoint = job.request.get("checkpoint_id")
    session.add(
        KpiRow(
            organisation_id=job.organisation_id,
            environment_id=job.version.environment_id,
            checkpoint_id=checkpoint if isinstance(checkpoint, str) else None,
            figures={**of_job(session, job.id), "evaluation_id": job.id},
            at=datetime.now(UTC),
        )
    )
    session.flush()


def history(
    session: Session, environment_id: int | None, limit: int | None, offset: int
) -> Sequence[KpiRow]:
    """One entry for each evaluation, newest first."""
    query = select(KpiRow).order_by(KpiRow.at.desc(), KpiRow.id.desc())
    if environment_id is not None:
        query = query.where(KpiRow.environment_id == environment_id)
    return session.scalars(query.limit(limit).offset(offset or None)).all()


def clear(session: Session) -> int:
    """Forget the history; the rollouts stay. Returns how many entries there were."""
    gone = session.scalars(select(KpiRow.id)).all()
    session.execute(delete(KpiRow))
    return len(gone)


def _tags(data: Mapping[str, object]) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for one in items(data.get("verifier_results")):
        if isinstance(one, dict):
            result = cast("JsonObject", one)
            for tag in texts(result.get("compliance_tags")):
                key = tag.casefold()
                found[key] = found.get(key, True) and result.get("passed") is True
    return found


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None

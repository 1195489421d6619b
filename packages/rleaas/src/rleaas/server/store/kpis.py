"""Figures of environments, computed from what was played and from nothing else."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

from rlmesh.runs.statistics import bootstrap_mean_interval, wilson_interval
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from rleaas.server.rules.governance import texts
from rleaas.server.rules.json_values import fields, items
from rleaas.server.store import jobs
from rleaas.server.store.tables import JobRow, JsonObject, KpiRow, RolloutRow

# The published names of two rates of tags; other tags are in `rates` only.
_PUBLISHED = {"aml": "aml_compliance_rate", "kyc": "kyc_check_rate"}
_AT_A_TIME = 500


def of_environment(session: Session, environment_id: int | None) -> JsonObject:
    """The figures of an environment's rollouts, or without one of all; unknown ones are None.

    Those that a training played while it still learned tell nothing of how well things go.
    """
    training = select(JobRow.id).where(JobRow.kind == jobs.TRAINING)
    learned = RolloutRow.file_sha256.is_not(None) & RolloutRow.job_id.in_(training)
    query = select(RolloutRow).where(~learned).order_by(RolloutRow.id)
    if environment_id is not None:
        query = query.where(RolloutRow.environment_id == environment_id)
    return figures(session.scalars(query.execution_options(yield_per=_AT_A_TIME)))


def of_job(session: Session, job_id: str) -> JsonObject:
    """The figures of one evaluation."""
    query = select(RolloutRow).where(RolloutRow.job_id == job_id)
    return figures(session.scalars(query.execution_options(yield_per=_AT_A_TIME)))


def figures(rollouts: Iterator[RolloutRow] | Sequence[RolloutRow]) -> JsonObject:
    """Means and rates over rollouts, with their intervals.

    A rate counts only those rollouts of which it is known; where it is known of none it is None.
    `applied` says of how many each rate of the domain is.
    A rate of a domain's metric has its name; one of the verifiers' tags has the tag's, in `rates`.
    """
    rewards: list[float] = []
    steps: list[float] = []
    passes: list[bool] = []
    tagged: dict[str, list[bool]] = {}
    domain: dict[str, list[bool]] = {}
    count = failed = 0
    for row in rollouts:
        count += 1
        if row.total_reward is None:
            failed += 1
            continue
        rewards.append(row.total_reward)
        steps.append(float(row.total_steps))
        success = row.data.get("passed", row.data.get("success"))
        if isinstance(success, bool):
            passes.append(success)
        for tag, passed in _tags(row.data).items():
            tagged.setdefault(tag, []).append(passed)
        for name, met in fields(row.data.get("domain_metrics")).items():
            if isinstance(met, bool):
                domain.setdefault(name, []).append(met)
    known = {_PUBLISHED[tag]: found for tag, found in tagged.items() if tag in _PUBLISHED} | domain
    metrics = {name: _mean(known[name]) for name in sorted(known)}
    rates = {tag: _mean(found) for tag, found in sorted(tagged.items())}
    counted = {"pass_rate": passes, **known}
    return {
        **dict.fromkeys(_PUBLISHED.values()),
        **metrics,
        "avg_reward": _mean(rewards),
        "pass_rate": _mean(passes),
        "avg_completion_steps": _mean(steps),
        "rates": rates,
        "metrics": metrics,
        "applied": {name: len(found) for name, found in sorted(domain.items())},
        "intervals": {
            "avg_reward": _of_mean(rewards),
            "avg_completion_steps": _of_mean(steps),
            **{name: _of_rate(found) for name, found in counted.items()},
        },
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


def before(session: Session, job: JobRow) -> JsonObject | None:
    """The figures of the evaluation before this one on its environment; None: it is the first."""
    query = select(KpiRow.figures).where(KpiRow.environment_id == job.version.environment_id)
    newest = session.scalars(query.order_by(KpiRow.at.desc(), KpiRow.id.desc()).limit(2))
    return next((one for one in newest if one.get("evaluation_id") != job.id), None)


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
    return math.fsum(values) / len(values) if values else None


def _of_mean(values: Sequence[float]) -> list[float] | None:
    # Sorted: the same values have the same interval, in whatever order they are read.
    return list(bootstrap_mean_interval(sorted(values))) if len(values) > 1 else None


def _of_rate(values: Sequence[bool]) -> list[float] | None:
    return list(wilson_interval(sum(values), len(values))) if values else None

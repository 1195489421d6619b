"""Figures of environments, computed from what was played and from nothing else."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple, cast

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from rleaas.evaluation.intervals import Played, evidence_of
from rleaas.server.rules.governance import texts
from rleaas.server.rules.json_values import fields, integer, items, number
from rleaas.server.store import jobs
from rleaas.server.store.tables import JobRow, JsonObject, KpiRow, RolloutRow

# The published names of two rates of tags; other tags are in `rates` only.
_PUBLISHED = {"aml": "aml_compliance_rate", "kyc": "kyc_check_rate"}
_AT_A_TIME = 500
_Told = tuple[int, bool]
"""Of which episode, and whether it passed."""


def of_environment(session: Session, environment_id: int | None) -> JsonObject:
    """The figures of an environment's rollouts, or without one of all; unknown ones are None.

    Those that a training played while it still learned tell nothing of how well things go, and what
    an evaluation judged anew, or played once more to see whether it comes out the same, was counted
    when it was played first. `agents` has the same figures of each who played.
    """
    training = select(JobRow.id).where(JobRow.kind == jobs.TRAINING)
    learned = RolloutRow.file_sha256.is_not(None) & RolloutRow.job_id.in_(training)
    query = select(RolloutRow).where(~learned).order_by(RolloutRow.id)
    if environment_id is not None:
        query = query.where(RolloutRow.environment_id == environment_id)
    players = _players(session)
    everybody = _Tally()
    of_each: dict[_Player, _Tally] = {}
    for row in session.scalars(query.execution_options(yield_per=_AT_A_TIME)):
        player = players.get(row.job_id or "", _UNKNOWN)
        if player is None:
            continue
        everybody.add(row)
        of_each.setdefault(player, _Tally()).add(row)
    agents = [
        {**player._asdict(), **of_each[player].figures()}
        for player in sorted(of_each, key=lambda one: [part or "" for part in one])
    ]
    return {**everybody.figures(), "agents": agents}


def of_job(session: Session, job_id: str) -> JsonObject:
    """The figures of one evaluation."""
    query = select(RolloutRow).where(RolloutRow.job_id == job_id)
    return figures(session.scalars(query.execution_options(yield_per=_AT_A_TIME)))


def figures(rollouts: Iterator[RolloutRow] | Sequence[RolloutRow]) -> JsonObject:
    """Means and rates over rollouts, with their intervals (see `evaluation.intervals`).

    A rate counts only those rollouts of which it is known; where it is known of none it is None.
    `applied` says of how many each rate of the domain is.
    A rate of a domain's metric has its name; one of the verifiers' tags has the tag's, in `rates`.
    """
    tally = _Tally()
    for row in rollouts:
        tally.add(row)
    return tally.figures()


class _Player(NamedTuple):
    agent: str | None
    model: str | None
    checkpoint_id: str | None


_UNKNOWN: Final = _Player(None, None, None)
"""Who played what no evaluation did."""


def _players(session: Session) -> dict[str, _Player | None]:
    """Who played each evaluation, by its id; None: it counts no episode that is not counted."""
    asked = JobRow.request
    found = session.execute(
        select(
            JobRow.id,
            asked["source_evaluation_id"].as_string(),
            asked["reproduces"].as_string(),
            asked["checkpoint_id"].as_string(),
            asked["agent"].as_string(),
            asked[("agent", "model")].as_string(),
        ).where(JobRow.kind == jobs.EVALUATION)
    )
    return {
        id: None
        if source or again
        else _Player(None if checkpoint else "llm" if model else agent, model, checkpoint)
        for id, source, again, checkpoint, agent, model in found
    }


class _Tally:
    """What rollouts add up to."""

    def __init__(self) -> None:
        self._played: list[Played] = []
        self._rewards: list[float] = []
        self._steps: list[float] = []
        self._passes: list[_Told] = []
        self._tagged: dict[str, list[_Told]] = {}
        self._domain: dict[str, list[_Told]] = {}
        self._count = 0

    def add(self, row: RolloutRow) -> None:
        self._count += 1
        if row.total_reward is None:
            return
        place = len(self._played)
        self._played.append(_played(row, row.total_reward))
        self._rewards.append(row.total_reward)
        self._steps.append(float(row.total_steps))
        success = row.data.get("passed", row.data.get("success"))
        if isinstance(success, bool):
            self._passes.append((place, success))
        for tag, passed in _tags(row.data).items():
            self._tagged.setdefault(tag, []).append((place, passed))
        for name, met in fields(row.data.get("domain_metrics")).items():
            if isinstance(met, bool):
                self._domain.setdefault(name, []).append((place, met))

    def figures(self) -> JsonObject:
        tagged, domain = self._tagged, self._domain
        known = {_PUBLISHED[tag]: told for tag, told in tagged.items() if tag in _PUBLISHED}
        known |= domain
        metrics = {name: _rate(known[name]) for name in sorted(known)}
        evidence = evidence_of(self._played)
        return {
            **dict.fromkeys(_PUBLISHED.values()),
            **metrics,
            "avg_reward": _mean(self._rewards),
            "pass_rate": _rate(self._passes),
            "avg_completion_steps": _mean(self._steps),
            "rates": {tag: _rate(told) for tag, told in sorted(tagged.items())},
            "metrics": metrics,
            "applied": {name: len(told) for name, told in sorted(domain.items())},
            "intervals": {
                "avg_reward": evidence.of_mean(self._rewards),
                "avg_completion_steps": evidence.of_mean(self._steps),
                "pass_rate": self._interval(self._passes),
                **{name: self._interval(told) for name, told in known.items()},
            },
            "episodes": self._count,
            "failed_episodes": self._count - len(self._played),
        }

    def _interval(self, told: Sequence[_Told]) -> list[float] | None:
        evidence = evidence_of([self._played[place] for place, _ in told])
        return evidence.of_rate([passed for _, passed in told])


def _played(row: RolloutRow, reward: float) -> Played:
    data = row.data
    digest, outcome = data.get("actions_digest"), data.get("outcome")
    return Played(
        row.scenario_id,
        integer(data.get("seed")),
        digest if isinstance(digest, str) else None,
        outcome if isinstance(outcome, str) else None,
        reward,
        number(data.get("score")),
    )


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


def _rate(told: Sequence[_Told]) -> float | None:
    return _mean([float(passed) for _, passed in told])


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None

"""Alerts: a job that crosses a threshold of its environment's governance says so, and may end."""

from typing import cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from rleaas.server.rules import governance as rules
from rleaas.server.rules import lifecycle
from rleaas.server.rules.governance import AVG_REWARD_DROP, Alert
from rleaas.server.rules.json_values import integer, items, number
from rleaas.server.store import audit, jobs, kpis
from rleaas.server.store.audit import ServerItself
from rleaas.server.store.tables import JobRow, JsonObject, RolloutRow

REWARD_COLLAPSE = "reward_collapse_alert"
ALERT = "alert"
# Before so many episodes the running mean is over too few: one lucky episode would be a peak.
SETTLED = 10
_PEAK = "peak_avg_reward"
_RAISED = "alerts"


def watch(session: Session, row: JobRow, kind: str, data: JsonObject, config: rules.Config) -> None:
    """Look at a job after a worker's report; each threshold alerts once in a job's life.

    Args:
        session: a transaction.
        row: the job.
        kind: of the report.
        data: what it says.
        config: how its environment is governed.
    """
    if kind == "metric":
        if (integer(data.get("episode")) or 0) >= SETTLED:
            _watch_training(session, row, number(data.get("avg_reward")), config)
    elif kind == "completed":
        rate = row.results.get("pass_rate", row.results.get("success_rate"))
        failed = rules.compliance_fail_rate(
            _checks(session, row), rules.texts(config["compliance_tags"])
        )
        found = rules.alerts_of_result(config, number(rate), failed)
        told = rules.unchecked(config, failed)
        if told:
            row.results = {**row.results, "warnings": [*items(row.results.get("warnings")), *told]}
        if row.kind == jobs.EVALUATION:
            found = [*found, *_against_the_last(session, row, config)]
        _raise_all(session, row, config, found)


def _watch_training(session: Session, row: JobRow, now: float | None, config: rules.Config) -> None:
    if now is None:
        return
    best = number(row.results.get(_PEAK))
    if best is None or now >= best:
        row.results = {**row.results, _PEAK: now}
        return
    if AVG_REWARD_DROP in items(row.results.get(_RAISED)):
        return
    _raise_all(session, row, config, rules.alerts_of_training(config, best, now))


def _against_the_last(session: Session, row: JobRow, config: rules.Config) -> list[Alert]:
    earlier = kpis.before(session, row)
    best = None if earlier is None else number(earlier.get("avg_reward"))
    now = number(kpis.of_job(session, row.id)["avg_reward"])
    return [] if best is None or now is None else rules.alerts_of_training(config, best, now)


def _raise_all(session: Session, row: JobRow, config: rules.Config, alerts: list[Alert]) -> None:
    for alert in alerts:
        if alert.threshold not in items(row.results.get(_RAISED)):
            _raise(session, row, alert, stop=rules.stops(config, alert))


def _raise(session: Session, row: JobRow, alert: Alert, *, stop: bool) -> None:
    raised = [*items(row.results.get(_RAISED)), alert.threshold]
    row.results = {**row.results, _RAISED: raised}
    stopped = stop and row.status not in lifecycle.TERMINAL
    told: JsonObject = {
        "threshold": alert.threshold,
        "limit": alert.limit,
        "value": alert.value,
        "stopped": stopped,
    }
    jobs.tell(session, row, REWARD_COLLAPSE if alert.threshold == AVG_REWARD_DROP else ALERT, told)
    audit.record(
        session,
        ServerItself(row.organisation_id),
        action="alert.raised",
        subject=jobs.subject(row),
        environment_name=row.version.environment.name,
        job_id=row.id,
        data=told,
    )
    if stopped:
        row.message = f"stopped by the alert {alert.threshold}: {alert.value:g}"
        jobs.request_cancel(session, ServerItself(row.organisation_id), row)


def _checks(session: Session, row: JobRow) -> list[JsonObject]:
    found = session.scalars(select(RolloutRow.data).where(RolloutRow.job_id == row.id))
    return [
        cast("JsonObject", one)
        for data in found
        for one in items(data.get("verifier_results"))
        if isinstance(one, dict)
    ]

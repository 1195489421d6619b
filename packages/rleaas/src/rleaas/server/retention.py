"""The removal of what is older than its organisation wants to keep.

It goes in small steps, so that nobody waits long for the database. What happened to jobs that go on
is not touched. The audit chain is kept as long as the longest of the settings asks for, as only its
beginning can go.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement, delete, literal, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from rleaas.server.job_logs import JobLogs
from rleaas.server.report_files import ReportFiles
from rleaas.server.rules import lifecycle
from rleaas.server.rules.governance import Config
from rleaas.server.store import audit, governance
from rleaas.server.store.audit import ServerItself
from rleaas.server.store.database import Database
from rleaas.server.store.tables import (
    EventRow,
    GovernanceRow,
    JobRow,
    KpiRow,
    OrganisationRow,
    RolloutRow,
    VersionRow,
)

STEP: Final = 1000
EVERY_SECONDS: Final = 3600.0


class Retention:
    """Removes what is too old, a step at a time."""

    def __init__(
        self, database: Database, logs: JobLogs, reports: ReportFiles | None = None
    ) -> None:
        self._database = database
        self._logs = logs
        self._reports = reports

    def step(self) -> bool:
        """Do one step for each organisation; returns whether there may be more to remove."""
        with self._database.read() as session:
            organisations = session.scalars(
                select(OrganisationRow.id).where(
                    OrganisationRow.id.in_(select(GovernanceRow.organisation_id))
                )
            ).all()
        steps = [self._step(organisation) for organisation in organisations]
        return any(steps)

    def _step(self, organisation: int) -> bool:
        now = datetime.now(UTC)
        with self._database.write(organisation) as session:
            platform = governance.own(session, None)
            own = {
                environment: kept
                for environment, config in governance.of_environments(session, organisation).items()
                if (kept := _days(config)) is not None
            }
            removed = 0
            reports = 0
            logs: list[str] = []
            for environment, kept in own.items():
                removed += _remove(session, [environment], None, now - kept)
                logs += _old_jobs(session, [environment], None, now - kept)
            default = _days(platform)
            chain = 0
            if default is not None:
                removed += _remove(session, None, [*own], now - default)
                logs += _old_jobs(session, None, [*own], now - default)
                if self._reports is not None:
                    # Of all environments together, so that the platform's setting counts.
                    reports = self._reports.remove_older(organisation, now - default)
                longest = max([default, *own.values()])
                chain = audit.purge(session, organisation, now - longest, STEP)
            present = [job for job in logs if self._logs.exists(job)][:STEP]
            if removed or present or reports:
                audit.record(
                    session,
                    ServerItself(organisation),
                    action="data.purged",
                    subject="retention",
                    data={"rows": removed, "logs": len(present), "reports": reports},
                )
        for job_id in present:
            self._logs.remove(job_id)
        return removed >= STEP or chain >= STEP or len(present) >= STEP


def _days(config: Config) -> timedelta | None:
    days = config.get("data_retention_days")
    return timedelta(days=days) if isinstance(days, int) else None


def _remove(
    session: Session, only: Sequence[int] | None, but: Sequence[int] | None, before: datetime
) -> int:
    rollouts = session.scalars(
        select(RolloutRow.id)
        .where(RolloutRow.created_at < before, *_of(RolloutRow.environment_id, only, but))
        .limit(STEP)
    ).all()
    session.execute(delete(RolloutRow).where(RolloutRow.id.in_(rollouts)))
    figures = session.scalars(
        select(KpiRow.id)
        .where(KpiRow.at < before, *_of(KpiRow.environment_id, only, but))
        .limit(STEP)
    ).all()
    session.execute(delete(KpiRow).where(KpiRow.id.in_(figures)))
    jobs = select(literal("job:") + JobRow.id).join(VersionRow)
    ended = jobs.where(
        JobRow.status.in_(lifecycle.TERMINAL), *_of(VersionRow.environment_id, only, but)
    )
    about: ColumnElement[bool] = EventRow.subject.in_(ended)
    if only is None:
        others = _subjects(session, but or ())
        about = about | EventRow.subject.not_in(jobs) & EventRow.subject.not_in(others)
    else:
        about = about | EventRow.subject.in_(_subjects(session, only))
    events = session.scalars(
        select(EventRow.id).where(EventRow.at < before, about).order_by(EventRow.id).limit(STEP)
    ).all()
    session.execute(delete(EventRow).where(EventRow.id.in_(events)))
    return len(rollouts) + len(figures) + len(events)


def _subjects(session: Session, environments: Sequence[int]) -> list[str]:
    versions = session.scalars(
        select(VersionRow.id).where(VersionRow.environment_id.in_(environments))
    )
    return [
        *(f"environment:{one}" for one in environments),
        *(f"environment_version:{one}" for one in versions),
    ]


def _old_jobs(
    session: Session, only: Sequence[int] | None, but: Sequence[int] | None, before: datetime
) -> Sequence[str]:
    return session.scalars(
        select(JobRow.id)
        .join(VersionRow)
        .where(
            JobRow.status.in_(lifecycle.TERMINAL),
            JobRow.completed_at < before,
            *_of(VersionRow.environment_id, only, but),
        )
    ).all()


def _of(
    column: InstrumentedAttribute[int] | InstrumentedAttribute[int | None],
    only: Sequence[int] | None,
    but: Sequence[int] | None,
) -> list[ColumnElement[bool]]:
    if only is not None:
        return [column.in_(only)]
    return [column.is_(None) | column.not_in(but)] if but else []

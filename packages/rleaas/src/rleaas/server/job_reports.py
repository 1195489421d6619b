"""What the reports of workers change: the job, its curves, its events, and who has to judge it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol, cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from rleaas.server import alerts, outcomes
from rleaas.server.rules import governance as rules
from rleaas.server.rules import lifecycle
from rleaas.server.rules.json_values import integer, items
from rleaas.server.rules.restarts import StartAgain, after_death
from rleaas.server.store import attempts, events, governance, jobs
from rleaas.server.store.tables import JobRow, JsonObject, VerifierRow

HUMAN_EVALUATION = "human_evaluation"
# What a worker may warn of; the rest are kinds of our own, which nobody else may tell.
_TIER_ADVANCE = "tier_advance"
_WARNINGS = frozenset({_TIER_ADVANCE, "reward_collapse_alert"})
_TIERS = ("from_tier", "current_tier")
_WARNING = "alert"
_NO_EVENTS = frozenset({"log", "heartbeat"})  # one has a file, the other a column
_HIGHEST = "highest_episode"


class Report(Protocol):
    """One thing that a worker tells about its job."""

    @property
    def type(self) -> lifecycle.ReportType:
        """The kind of the report."""
        ...

    @property
    def at(self) -> datetime | None:
        """When it happened."""
        ...

    @property
    def data(self) -> JsonObject:
        """What it says."""
        ...


def take(
    session: Session, row: JobRow, reports: Sequence[Report], *, stopping: bool, most_restarts: int
) -> None:
    """Change the job by each of the reports of its current attempt.

    Args:
        session: a transaction.
        row: the job.
        reports: what its worker tells, in order.
        stopping: whether the server stops, and therefore tells workers to give their jobs back.
        most_restarts: how often a job is started again whose worker gave it up otherwise.
    """
    config = governance.effective(session, row.organisation_id, row.version.environment_id)
    for report in reports:
        if row.status != lifecycle.RUNNING:
            return
        if report.type == "interrupted":
            _interrupted(session, row, report.data, stopping=stopping, most=most_restarts)
        elif report.type == "alert":
            _warned(session, row, _masked(report.data, _hidden(config)), report.at)
        else:
            _reported(session, row, report, config)


def _hidden(config: rules.Config) -> Sequence[str]:
    return rules.texts(config["pii_fields"])


def _reported(session: Session, row: JobRow, report: Report, config: rules.Config) -> None:
    # Figures come from what was said, and only what is masked is kept.
    hidden = _hidden(config)
    kept = _masked(report.data, hidden)
    if report.type == attempts.STARTED:
        kept = attempts.resumed(session, row, kept)
    elif report.type == "metric":
        kept = _measured(row, kept)
    before = lifecycle.JobState(row.status, row.progress, row.results, row.error)
    ask = report.type == "completed" and asks_people(session, row)
    after = lifecycle.after_report(before, report.type, report.data, _goal(row), asks_people=ask)
    row.status, row.progress, row.error = after.status, after.progress, after.error
    row.results = _masked(dict(after.results), hidden)
    if after.finished:
        row.completed_at = datetime.now(UTC)
        attempts.note_end(row, f"reported {report.type}")
    outcomes.note(session, row, report.type, kept)
    alerts.watch(session, row, report.type, report.data, config)
    if report.type not in _NO_EVENTS:
        waits = row.status == lifecycle.AWAITING_HUMAN_EVAL
        kind = lifecycle.AWAITING_HUMAN_EVAL if waits else report.type
        jobs.tell(session, row, kind, kept, report.at)


def asks_people(session: Session, row: JobRow) -> bool:
    """Whether the job is complete only when somebody has judged it.

    Its environment is governed so, or its request names a verifier of the type `human_evaluation`.
    """
    if row.kind != jobs.TRAINING:
        return False
    config = governance.effective(session, row.organisation_id, row.version.environment_id)
    if config.get("human_in_the_loop") is True:
        return True
    asked = [row.request, _object(row.request.get("config"))]
    if any(_object(one.get("verifier_config")).get("type") == HUMAN_EVALUATION for one in asked):
        return True
    named = [*(items(one.get("verifier_ids")) for one in asked)]
    references = [str(each) for one in named for each in one]
    references += [str(one["verifier_id"]) for one in asked if one.get("verifier_id")]
    if not references:
        return False
    found = select(VerifierRow.id).where(
        VerifierRow.organisation_id == row.organisation_id,
        VerifierRow.type == HUMAN_EVALUATION,
        VerifierRow.id.in_(references) | VerifierRow.name.in_(references),
    )
    return session.scalar(found.limit(1)) is not None


def _measured(row: JobRow, kept: JsonObject) -> JsonObject:
    """What a later attempt measures says so; what is done again, too."""
    episode = integer(kept.get("episode")) or 0
    highest = integer(row.results.get(_HIGHEST)) or 0
    if row.attempts > 1:
        kept = {**kept, "attempt": row.attempts}
        if episode <= highest and kept.get("episode_reward") is not None:
            # Whoever counts events, such as a webhook, has heard of this episode already.
            kept["again"] = True
    if episode > highest:
        row.results = {**row.results, _HIGHEST: episode}
    return kept


def _interrupted(
    session: Session, row: JobRow, data: JsonObject, *, stopping: bool, most: int
) -> None:
    how = f"was stopped by {data.get('reason') or 'an interrupt'}"
    if row.cancel_requested_at is not None:
        jobs.finish(session, row, lifecycle.CANCELLED)
        return
    if stopping:
        attempts.requeue(session, row, how, died=False)
        return
    verdict = after_death(
        how, [], exceeded=None, restarts=row.restarts, most_restarts=most, first_delay=1.0
    )
    if isinstance(verdict, StartAgain):
        attempts.requeue(session, row, how, died=True, delay=verdict.delay)
    else:
        attempts.note_end(row, how)
        row.results = {**row.results, "failure_reason": verdict.reason}
        jobs.finish(session, row, lifecycle.FAILED, verdict.error)


def _warned(session: Session, row: JobRow, data: JsonObject, at: datetime | None) -> None:
    given = data.get("kind")
    kind = given if isinstance(given, str) and given in _WARNINGS else _WARNING
    told = {name: value for name, value in data.items() if name != "kind" or kind == _WARNING}
    if row.attempts > 1:
        # What is done again warns again, and everybody has heard of it.
        known = events.about(session, jobs.subject(row), [kind])
        if any(_same_warning(kind, event.data, told) for event in known):
            return
    jobs.tell(session, row, kind, told, at)


def _same_warning(kind: str, one: JsonObject, other: JsonObject) -> bool:
    # Tiers are mastered once, though an environment that draws lots may give it another rate.
    names = _TIERS if kind == _TIER_ADVANCE else {*one, *other}
    return all(one.get(name) == other.get(name) for name in names)


def _masked(data: JsonObject, hidden: Sequence[str]) -> JsonObject:
    return cast("JsonObject", rules.masked(data, hidden))


def _goal(row: JobRow) -> int:
    asked = integer(row.request.get("asked"))
    if asked is not None:
        return asked
    seeds = row.request.get("seeds")
    return len(items(seeds)) if seeds else integer(row.request.get("num_episodes")) or 0


def _object(value: object) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}

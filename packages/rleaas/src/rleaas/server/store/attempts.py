"""The attempts of jobs in the database: each start of a worker, and what counts of what it said."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, and_, delete, func, or_, select
from sqlalchemy.orm import Session

from rleaas.server.rules import lifecycle
from rleaas.server.rules.json_values import integer
from rleaas.server.rules.queue import Waiting, in_turn, to_start
from rleaas.server.store import events, jobs
from rleaas.server.store.tables import CheckpointRow, EventRow, JobRow, JsonObject, RolloutRow

LAUNCHED = "launched"
STARTED = "started"
REQUEUED = "requeued"


def queue(session: Session, *, but: Sequence[str] = ()) -> list[Waiting]:
    """The jobs that wait, in the order of their turns."""
    found = session.execute(
        select(
            JobRow.id, JobRow.organisation_id, JobRow.priority, JobRow.created_at, JobRow.not_before
        ).where(JobRow.status == lifecycle.PENDING, JobRow.id.not_in(but))
    )
    running = session.execute(
        select(JobRow.organisation_id, func.count())
        .where(JobRow.status == lifecycle.RUNNING)
        .group_by(JobRow.organisation_id)
    )
    counts = {row[0]: row[1] for row in running}
    return in_turn((Waiting(*row) for row in found), counts, datetime.now(UTC))


def next_due(session: Session, free: int, *, but: Sequence[str] = ()) -> JobRow | None:
    """The job that gets one of the `free` places; None: none is to be started now."""
    first = to_start(queue(session, but=but), free, datetime.now(UTC))
    return None if first is None else session.get(JobRow, first.job_id)


def begin(session: Session, row: JobRow, holder: str) -> None:
    """Give the job to a worker that is about to be started; reports of earlier ones are refused."""
    now = datetime.now(UTC)
    last = last_checkpoint(row) if row.attempts else None
    row.status = lifecycle.RUNNING
    row.holder = holder
    row.worker = None
    row.attempts += 1
    row.last_seq = 0
    row.last_seen_at = None
    row.not_before = None
    row.started_at = row.started_at or now
    attempt: JsonObject = {
        "attempt": row.attempts,
        "started_at": now.isoformat(),
        "from_checkpoint": None if last is None else last.id,
        "ended_at": None,
        "ended": None,
        "exit_code": None,
    }
    row.history = [*row.history, attempt]
    jobs.tell(session, row, LAUNCHED, {"attempt": row.attempts} if row.attempts > 1 else {})
    session.flush()


def note_end(row: JobRow, how: str, code: int | None = None) -> None:
    """Keep how the last attempt ended, with the exit code where it is known; what is kept stays."""
    if row.history and row.history[-1].get("ended") is None:
        at = datetime.now(UTC).isoformat()
        ended = {**row.history[-1], "ended_at": at, "ended": how, "exit_code": code}
        row.history = [*row.history[:-1], ended]


def requeue(session: Session, row: JobRow, how: str, *, died: bool, delay: float = 0.0) -> None:
    """Let the job wait for its next attempt; one that ended meanwhile stays as it is."""
    if row.status != lifecycle.RUNNING:
        return
    note_end(row, how)
    row.status = lifecycle.PENDING
    row.holder = None
    row.worker = None
    row.restarts += died
    row.not_before = datetime.now(UTC) + timedelta(seconds=delay) if delay else None
    jobs.tell(session, row, REQUEUED, {"attempt": row.attempts, "reason": how, "died": died})
    session.flush()


def last_checkpoint(row: JobRow) -> CheckpointRow | None:
    """The checkpoint from which the job goes on: the one that it had come farthest with."""
    if row.kind != jobs.TRAINING or not row.checkpoints:
        return None
    return max(row.checkpoints, key=lambda one: (one.timestep or 0, one.episode, one.created_at))


def resumed(session: Session, row: JobRow, data: JsonObject) -> JsonObject:
    """Take in that an attempt has begun, and return what its event says.

    What earlier attempts told of the part that is done again does not count any more.
    """
    if row.attempts < 2:
        return data
    at, steps = integer(data.get("episode")), integer(data.get("timestep"))
    if at is None:
        last = row.history[-1].get("from_checkpoint") if row.history else None
        found = next((one for one in row.checkpoints if one.id == last), None)
        at = 0 if found is None else found.episode
        steps = 0 if found is None else found.timestep
    told: JsonObject = {**data, "attempt": row.attempts, "episode": at, "timestep": steps}
    if row.kind == jobs.EVALUATION:
        session.execute(delete(RolloutRow).where(RolloutRow.job_id == row.id))
        row.results = {**row.results, "episodes_done": 0}
        row.progress = 0
        return told
    goal = integer(row.request.get("num_episodes")) or 0
    row.results = {**row.results, "current_episode": at, "total_steps": steps or 0}
    row.progress = min(99, 100 * at // goal) if goal else 0
    return told


def points(
    session: Session,
    row: JobRow,
    kind: str,
    *,
    after: int = 0,
    limit: int | None = None,
) -> Sequence[EventRow]:
    """What the job's workers measured, oldest first, without what was done again since."""
    query = select(EventRow).where(
        EventRow.subject == jobs.subject(row), EventRow.id > after, EventRow.kind == kind
    )
    if row.attempts > 1:
        begun = events.about(session, jobs.subject(row), [STARTED])
        query = query.where(*(_counts(row, one) for one in begun if one.data.get("attempt")))
    return session.scalars(query.order_by(EventRow.id).limit(limit)).all()


def _counts(row: JobRow, begun: EventRow) -> ColumnElement[bool]:
    since = EventRow.id > begun.id
    if row.kind == jobs.EVALUATION:
        return since
    episode = EventRow.data["episode"].as_float()
    at = integer(begun.data.get("episode")) or 0
    kept = or_(episode.is_(None), episode <= at)
    steps = integer(begun.data.get("timestep"))
    if steps is not None:
        # Of the episode in which the checkpoint was saved, there may be more than it has.
        timestep = EventRow.data["timestep"].as_float()
        kept = and_(kept, or_(timestep.is_(None), timestep <= steps))
    return or_(since, kept)

"""What the reports of an evaluation leave behind: its episodes as rollouts, and its figures."""

from sqlalchemy.orm import Session

from rleaas.server.store import jobs, kpis, rollouts
from rleaas.server.store.tables import JobRow, JsonObject


def note(session: Session, row: JobRow, kind: str, data: JsonObject) -> None:
    """Keep what a report says for those who compare, export and count."""
    if row.kind != jobs.EVALUATION:
        return
    if kind == "episode":
        rollouts.add_episode(session, row, data)
    elif kind == "completed":
        kpis.note(session, row)

"""Routes about figures, computed from stored rollouts."""

from datetime import UTC
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from sqlalchemy import select

from rleaas.server.access import Caller, CallerOf, require_user
from rleaas.server.failures import documented
from rleaas.server.store import audit, environments, kpis
from rleaas.server.store.tables import EnvironmentRow, JsonObject

router = APIRouter(tags=["kpis"], dependencies=[Depends(require_user)], responses=documented(401))


@router.get("/kpis", responses=documented(404))
def get_kpis(caller: Caller, environment_name: str = "", refresh: bool = False) -> JsonObject:
    """The figures of an environment, or of all, over every rollout that is stored.

    They are computed when they are asked for, whether or not `refresh` is said. What nothing is
    known of is null.
    """
    environment = _environment(caller, environment_name)
    with caller.read() as session:
        figures = kpis.of_environment(session, None if environment is None else environment.id)
    return {**figures, "environment_name": None if environment is None else environment.name}


@router.get("/kpis/history", responses=documented(404, 422))
def get_kpi_history(
    caller: Caller,
    limit: Annotated[int, Query(ge=0, le=10**6)] = 50,
    offset: Annotated[int, Query(ge=0, le=2**62)] = 0,
    environment_name: str = "",
) -> JsonObject:
    """The figures of each evaluation, newest first; `limit` 0 is all."""
    environment = _environment(caller, environment_name)
    with caller.read() as session:
        rows = kpis.history(
            session, None if environment is None else environment.id, limit or None, offset
        )
        ids = {row.environment_id for row in rows}
        found = session.execute(
            select(EnvironmentRow.id, EnvironmentRow.name).where(EnvironmentRow.id.in_(ids))
        )
        names = {row.id: row.name for row in found}
    entries: list[JsonObject] = [
        {
            **row.figures,
            "checkpoint": row.checkpoint_id,
            "timestamp": row.at.astimezone(UTC).isoformat(),
            "environment_name": names.get(row.environment_id or 0),
        }
        for row in rows
    ]
    return {"history": entries, "count": len(entries)}


@router.delete("/kpis/history")
def clear_kpi_history(caller: Caller) -> JsonObject:
    """Forget the history of all environments; rollouts and evaluations stay."""
    with caller.write() as session:
        gone = kpis.clear(session)
        audit.record(session, caller, action="kpis.cleared", subject="kpis", data={"entries": gone})
    return {"status": "cleared", "entries": gone}


def _environment(caller: CallerOf, reference: str) -> EnvironmentRow | None:
    if not reference:
        return None
    with caller.read() as session:
        return environments.find(session, reference)

"""Routes about the audit chain."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse
from rlcore import EnvironmentNotFound

from rleaas.server import render_audit
from rleaas.server.access import Caller, CallerOf, require_user
from rleaas.server.failures import documented
from rleaas.server.store import audit, audit_chain, environments
from rleaas.server.store.audit_filters import Filters
from rleaas.server.store.tables import AuditRow, JsonObject

router = APIRouter(tags=["audit"], dependencies=[Depends(require_user)], responses=documented(401))

_AT_A_TIME: Final = 500
_Name = Annotated[str | None, Query(max_length=300)]


def _filters(
    caller: Caller,
    environment_name: _Name = None,
    event_types: Annotated[
        str | None, Query(max_length=2000, description="Separated by commas")
    ] = None,
    start_time: datetime | None = None,
    end_time: datetime | None = None,
    job_id: _Name = None,
    agent_id: _Name = None,
    actor: _Name = None,
    outcome: Literal["allowed", "denied"] | None = None,
    subject: _Name = None,
) -> Filters:
    types = [one.strip() for one in (event_types or "").split(",")]
    return Filters(
        environment_name=_name(caller, environment_name) if environment_name else None,
        event_types=tuple(one for one in types if one) or None,
        start=_aware(start_time),
        end=_aware(end_time),
        job_id=job_id or None,
        agent_id=agent_id or None,
        actor=actor or None,
        outcome=outcome,
        subject=subject or None,
    )


Filtered = Annotated[Filters, Depends(_filters)]


@router.get("/api/audit", responses=documented(422), response_model=None)
def query_audit(
    caller: Caller,
    filters: Filtered,
    limit: Annotated[int, Query(ge=0, le=10**9)] = 100,
    offset: Annotated[int, Query(ge=0, le=2**62)] = 0,
    cursor: Annotated[
        int, Query(ge=0, le=2**62, description="Only records with a lower number")
    ] = 0,
) -> JsonObject | StreamingResponse:
    """Records, newest first; `limit` 0 is all of them, sent as they are read."""
    if limit == 0:
        rows = _newest_first(caller, filters, cursor, offset)
        return _stream(render_audit.as_json(rows, '{"events": ', "}"), "application/json")
    with caller.read() as session:
        found = audit.page(session, filters, limit=limit + 1, offset=offset, before=cursor)
        total = audit.count(session, filters)
    shown = found[:limit]
    return {
        "events": [render_audit.audit_record(row) for row in shown],
        "count": len(shown),
        "total": total,
        "cursor": shown[-1].number if len(found) > limit else None,
    }


@router.get("/api/audit/export", responses=documented(422), response_class=StreamingResponse)
def export_audit(
    caller: Caller,
    filters: Filtered,
    format: Literal["json", "csv"] = "json",
) -> StreamingResponse:
    """All records in the order of the chain, as a file that is sent as it is read."""
    rows = _oldest_first(caller, filters)
    name = {"content-disposition": f'attachment; filename="audit.{format}"'}
    if format == "csv":
        return _stream(render_audit.as_csv(rows), "text/csv; charset=utf-8", name)
    return _stream(render_audit.as_json(rows, "", ""), "application/json", name)


@router.get("/api/audit/verify")
def verify_audit(caller: Caller) -> JsonObject:
    """Check the organisation's chain and its seal; keep `head` to tell it from a later forgery."""
    with caller.read() as session:
        problem = audit_chain.verify(session)
        head = audit_chain.head(session)
    return {
        "valid": problem is None,
        "problem": None if problem is None else problem.what,
        "number": None if problem is None else problem.number,
        "records": 0 if head is None else head.number,
        "head": audit_chain.START if head is None else head.digest,
    }


@router.get("/api/audit/{event_id}", responses=documented(404))
def get_audit_event(event_id: str, caller: Caller) -> JsonObject:
    """One record with its place in the chain."""
    with caller.read() as session:
        return render_audit.audit_record(audit.find(session, event_id))


def _name(caller: CallerOf, reference: str) -> str:
    try:
        with caller.read() as session:
            return environments.find(session, reference).name
    except EnvironmentNotFound:
        return reference  # it may be gone, and its records are not


def _oldest_first(caller: CallerOf, filters: Filters) -> Iterator[AuditRow]:
    def after(number: int) -> list[AuditRow]:
        with caller.read() as session:
            return [
                *audit.page(session, filters, limit=_AT_A_TIME, after=number, oldest_first=True)
            ]

    return _in_parts(after, 0)


def _newest_first(
    caller: CallerOf, filters: Filters, cursor: int, offset: int
) -> Iterator[AuditRow]:
    if offset:
        with caller.read() as session:
            skipped = audit.page(session, filters, limit=1, offset=offset - 1, before=cursor)
        if not skipped:
            return iter(())
        cursor = skipped[0].number

    def before(number: int) -> list[AuditRow]:
        with caller.read() as session:
            return [*audit.page(session, filters, limit=_AT_A_TIME, before=number)]

    return _in_parts(before, cursor)


def _in_parts(next_part: Callable[[int], list[AuditRow]], number: int) -> Iterator[AuditRow]:
    while part := next_part(number):
        yield from part
        number = part[-1].number
        if number == 1:
            return


def _stream(
    lines: Iterator[str], media_type: str, headers: dict[str, str] | None = None
) -> StreamingResponse:
    return StreamingResponse(_together(lines), media_type=media_type, headers=headers)


def _together(lines: Iterator[str]) -> Iterator[str]:
    # Each piece that is sent costs a change of threads.
    held: list[str] = []
    for line in lines:
        held.append(line)
        if len(held) >= _AT_A_TIME:
            yield "".join(held)
            held = []
    yield "".join(held)


def _aware(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment

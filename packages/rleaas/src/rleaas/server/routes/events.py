"""The events of the platform, as a stream or in answers that wait for the next one."""

import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from datetime import UTC
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.concurrency import run_in_threadpool

from rleaas.server.access import Caller, CallerOf, may_still, require_still, require_user
from rleaas.server.event_stream import STREAM, EventStream, message, messages, preamble
from rleaas.server.failures import documented
from rleaas.server.feed import Feed
from rleaas.server.store import environments, events
from rleaas.server.store.events import Wanted
from rleaas.server.store.tables import EventRow, JsonObject

router = APIRouter(tags=["events"], dependencies=[Depends(require_user)], responses=documented(401))

# How soon it is noticed that somebody who waits has gone.
_GLANCE_SECONDS: Final = 1.0
_AT_A_TIME: Final = 500


@router.get(
    "/api/events",
    responses={
        **documented(404, 422, 429),
        200: {"content": {STREAM: {"schema": {"type": "string"}}}},
    },
    response_model=None,
)
async def get_events(
    request: Request,
    caller: Caller,
    subject: Annotated[str | None, Query(max_length=300)] = None,
    kind: Annotated[str | None, Query(max_length=1000, description="Separated by commas")] = None,
    environment: Annotated[str | None, Query(max_length=300)] = None,
    job: Annotated[str | None, Query(max_length=100)] = None,
    after: Annotated[
        int | None,
        Query(ge=0, lt=2**62, description="A cursor; 0 is the beginning, none is from now on"),
    ] = None,
    wait_seconds: Annotated[float, Query(ge=0, le=25)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = _AT_A_TIME,
    seconds: Annotated[
        float | None, Query(ge=0, le=10**9, description="How long a stream goes on at most")
    ] = None,
    accept: Annotated[str, Header()] = "",
    last_event_id: Annotated[
        str | None, Header(alias="Last-Event-ID", pattern="^[0-9]{1,18}$")
    ] = None,
) -> JsonObject | EventStream:
    """Events after a cursor: as server-sent events for whoever accepts those, else as JSON.

    JSON waits up to `wait_seconds` for the first event; its `cursor` is the next call's `after`.
    """
    kinds = tuple(one.strip() for one in (kind or "").split(",") if one.strip()) or None
    wanted = Wanted(
        subject=subject,
        kinds=kinds,
        environment_id=await run_in_threadpool(_environment_id, caller, environment),
        job_id=job,
    )
    cursor = int(last_event_id) if last_event_id is not None else after
    if cursor is None:
        cursor = await run_in_threadpool(_newest, caller)
    feed = caller.state.feed
    if STREAM in accept:
        place = ExitStack()
        place.enter_context(feed.place(caller.principal.organisation_id))
        return EventStream(place, _stream(request, caller, feed, wanted, cursor, seconds))
    found: Sequence[EventRow] = await run_in_threadpool(_following, caller, wanted, cursor, limit)
    if not found and wait_seconds:
        with feed.place(caller.principal.organisation_id):
            found = await _first(request, caller, feed, wanted, cursor, limit, wait_seconds)
    return {
        "events": [event(row) for row in found],
        "cursor": found[-1].id if found else cursor,
    }


def event(row: EventRow) -> JsonObject:
    """One event as clients read it."""
    return {
        "id": row.id,
        "at": row.at.astimezone(UTC).isoformat(timespec="microseconds"),
        "kind": row.kind,
        "subject": row.subject,
        "job_id": row.subject.removeprefix("job:") if row.subject.startswith("job:") else None,
        "data": row.data,
    }


async def _first(
    request: Request,
    caller: CallerOf,
    feed: Feed,
    wanted: Wanted,
    cursor: int,
    limit: int,
    seconds: float,
) -> Sequence[EventRow]:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        await feed.changed(min(left, _GLANCE_SECONDS))
        found = await run_in_threadpool(_following, caller, wanted, cursor, limit)
        await require_still(request, caller)
        if found or feed.closed or await request.is_disconnected():
            return found
    return []


async def _stream(
    request: Request,
    caller: CallerOf,
    feed: Feed,
    wanted: Wanted,
    cursor: int,
    seconds: float | None,
) -> AsyncIterator[str]:
    yield preamble(cursor)

    async def following() -> str:
        nonlocal cursor
        found = await run_in_threadpool(_following, caller, wanted, cursor, _AT_A_TIME)
        cursor = found[-1].id if found else cursor
        return "".join(message(row.id, json.dumps(event(row)), row.kind) for row in found)

    async for text in messages(
        request,
        feed,
        following,
        feed.changed,
        allowed=lambda: may_still(request, caller),
        over=lambda: False,
        glance=_GLANCE_SECONDS,
        seconds=seconds,
    ):
        yield text


def _environment_id(caller: CallerOf, reference: str | None) -> int | None:
    if not reference:
        return None
    with caller.read() as session:
        return environments.find(session, reference).id


def _newest(caller: CallerOf) -> int:
    with caller.read() as session:
        return events.newest(session)


def _following(caller: CallerOf, wanted: Wanted, after: int, limit: int) -> Sequence[EventRow]:
    with caller.read() as session:
        return events.following(session, wanted, after, limit)

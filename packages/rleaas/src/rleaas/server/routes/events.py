"""The events of the platform, as a stream or in answers that wait for the next one."""

import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from datetime import UTC
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from rleaas.server.access import Caller, CallerOf, require_user
from rleaas.server.failures import documented
from rleaas.server.feed import Feed
from rleaas.server.store import environments, events
from rleaas.server.store.events import Wanted
from rleaas.server.store.tables import EventRow, JsonObject

router = APIRouter(tags=["events"], dependencies=[Depends(require_user)], responses=documented(401))

STREAM: Final = "text/event-stream"
# How soon it is noticed that somebody who waits has gone.
_GLANCE_SECONDS: Final = 1.0
_AT_A_TIME: Final = 500
_RECONNECT_MILLISECONDS: Final = 1000


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
    accept: Annotated[str, Header()] = "",
    last_event_id: Annotated[
        str | None, Header(alias="Last-Event-ID", pattern="^[0-9]{1,18}$")
    ] = None,
) -> JsonObject | StreamingResponse:
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
        return _EventStream(place, _stream(request, caller, feed, wanted, cursor))
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
        if found or feed.closed or await request.is_disconnected():
            return found
    return []


class _EventStream(StreamingResponse):
    """A stream with its place among those who wait, which it gives back however it ends."""

    def __init__(self, place: ExitStack, content: AsyncIterator[str]) -> None:
        headers = {"cache-control": "no-cache", "x-accel-buffering": "no"}
        super().__init__(content, media_type=STREAM, headers=headers)
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until the reader or the server ends it."""
        with self._place:
            await super().__call__(scope, receive, send)


async def _stream(
    request: Request, caller: CallerOf, feed: Feed, wanted: Wanted, cursor: int
) -> AsyncIterator[str]:
    yield f"retry: {_RECONNECT_MILLISECONDS}\nid: {cursor}\n\n"
    silent_since = time.monotonic()
    while not feed.closed and not await request.is_disconnected():
        found = await run_in_threadpool(_following, caller, wanted, cursor, _AT_A_TIME)
        if found:
            cursor = found[-1].id
            yield "".join(map(_message, found))
            silent_since = time.monotonic()
            continue
        if time.monotonic() - silent_since >= feed.heartbeat_seconds:
            yield ": still here\n\n"
            silent_since = time.monotonic()
        await feed.changed(min(_GLANCE_SECONDS, feed.heartbeat_seconds))


def _message(row: EventRow) -> str:
    # An event name with a line break could forge a message; JSON has none in it.
    name = " ".join(row.kind.split())
    return f"id: {row.id}\nevent: {name}\ndata: {json.dumps(event(row))}\n\n"


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

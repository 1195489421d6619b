"""Requests whose work is no single transaction, made safe to repeat: one key gets one reply.

Routes that only change rows keep their reply in the transaction that does so; see `store.once`.
"""

import hashlib
import json
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fastapi import Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from rlcore import ConflictError
from sqlalchemy import select

from rleaas.server.access import Asking, State
from rleaas.server.routes.requests import IdempotencyHeader
from rleaas.server.store import once
from rleaas.server.store.database import Database
from rleaas.server.store.jobs import IdempotencyKey
from rleaas.server.store.tables import IdempotencyRow

_UNDER_WAY: Final = "under way"
_ANSWERED: Final = "answered"
# Longer than any request takes: then the server that was answering it has died.
_GIVEN_UP: Final = timedelta(minutes=5)


class _AnsweredBefore(Exception):
    def __init__(self, reply: object) -> None:
        super().__init__("answered before")
        self.reply = reply


class _Repeat:
    """A request with a key, which is being answered for the first time."""

    def __init__(self, database: Database, organisation: int, asked: IdempotencyKey) -> None:
        self._database = database
        self._organisation = organisation
        self._asked = asked

    def begin(self) -> None:
        """Take the key.

        Raises:
            ConflictError: it was used for another request, or the request is being answered.
            _AnsweredBefore: it was answered.
        """
        asked, now = self._asked, datetime.now(UTC)
        with self._database.write(self._organisation) as session:
            reply = once.earlier(session, asked)
            if reply is None:
                once.keep(session, asked, _UNDER_WAY, {})
                return
            row = session.scalars(self._row()).one()
            if row.resource_id == _ANSWERED:
                raise _AnsweredBefore(reply["reply"])
            if row.created_at > now - _GIVEN_UP:
                raise ConflictError(
                    f"the request with the idempotency key {asked.key!r} is being answered",
                    code="idempotency_under_way",
                    retryable=True,
                    hint="Ask again in a moment",
                )
            row.created_at = now

    def end(self, reply: object) -> None:
        """Keep what it was answered with."""
        with self._database.write(self._organisation) as session:
            row = session.scalars(self._row()).one_or_none()
            if row is not None:
                row.resource_id, row.reply = _ANSWERED, {"reply": reply}

    def give_up(self) -> None:
        """Let the key be used again: what failed may be asked for once more."""
        with self._database.write(self._organisation) as session:
            row = session.scalars(self._row()).one_or_none()
            if row is not None:
                session.delete(row)

    def _row(self) -> Any:  # Any: a statement's type names its rows in several ways
        return select(IdempotencyRow).where(
            IdempotencyRow.scope == self._asked.scope, IdempotencyRow.key == self._asked.key
        )


async def _remember(
    request: Request, state: State, asking: Asking, key: IdempotencyHeader = None
) -> None:
    if key is None:
        return
    url, body = request.url, await request.body()
    said = hashlib.sha256(f"{url.path}?{url.query}\n".encode() + body).hexdigest()
    asked = IdempotencyKey(f"{request.method} {request.scope['route'].path}", key, said)
    repeat = _Repeat(state.database, asking.organisation_id, asked)
    await run_in_threadpool(repeat.begin)
    request.state.repeat = repeat


Once: Final = Depends(_remember)
"""A dependency of a route of the class below: its requests may carry an `Idempotency-Key`."""


class RepeatableRoute(APIRoute):
    """Keeps the replies of requests that `Once` has looked at."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, which answers what was answered before."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                response = await handle(request)
            except _AnsweredBefore as earlier:
                return JSONResponse(earlier.reply)
            except BaseException:
                repeat = getattr(request.state, "repeat", None)
                if repeat is not None:
                    await run_in_threadpool(repeat.give_up)
                raise
            repeat = getattr(request.state, "repeat", None)
            if repeat is not None:
                await run_in_threadpool(repeat.end, json.loads(bytes(response.body)))
            return response

        return answer

"""Failures as replies: one JSON body for all of them, with the request's id."""

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Literal, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from rlcore import Error, RLEaaSAPIError, http_from_error
from starlette.exceptions import HTTPException

from rleaas.server.denials import note_refused
from rleaas.server.rules.json_values import MAX_DEPTH
from rleaas.server.segments import as_asked
from rleaas.server.store.outages import outage_of

logger = logging.getLogger("rleaas.server")

REQUEST_ID = "x-request-id"
# What is not offered is no failure of the server, and neither is that it stops when it is told to.
_NOT_OFFERED = 501
_EXPECTED = frozenset({"server_stopping"})


class Problem(BaseModel):
    """The body of every reply that is not a success."""

    detail: str
    code: str
    request_id: str | None = None
    kind: str | None = None
    ref: str | None = None
    hint: str | None = None
    retryable: bool | None = None


Status = Literal[400, 401, 402, 403, 404, 409, 413, 422, 429, 503, 504]


def documented(*statuses: Status) -> dict[int | str, dict[str, object]]:
    """The failures that a route can answer with, for its description."""
    return {
        status: {"model": Problem, "description": HTTPStatus(status).phrase} for status in statuses
    }


def install(app: FastAPI) -> None:
    """Answer every failure of the app's routes with a `Problem`."""
    app.add_exception_handler(Error, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)


async def _ours(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Error)  # registered for this class
    return ours(request, error)


def ours(request: Request, error: Error) -> JSONResponse:
    """Answer a failure that has its class in our tree."""
    status, body = http_from_error(error)
    if status >= 500 and status != _NOT_OFFERED and body["code"] not in _EXPECTED:
        logger.error("%s %s: %s", request.method, request.url.path, error)
    if status in (401, 403):
        note_refused(request, status, str(body["code"]), str(body["detail"]))
    if error.retryable:
        body["retryable"] = True
    reply = _reply(request, status, body)
    if isinstance(error, RLEaaSAPIError) and error.retry_after is not None:
        reply.headers["retry-after"] = f"{error.retry_after:.0f}"
    return reply


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # registered for this class
    complaints = cast("Sequence[Mapping[str, object]]", error.errors())
    first = complaints[0]
    if first.get("type") == "json_invalid":
        context = cast("Mapping[str, object]", first.get("ctx") or {})
        detail = f"the body is not JSON: {context.get('error', first.get('msg'))}"
        return _reply(request, 400, {"detail": detail, "code": "invalid_json"})
    body: dict[str, object] = {
        "detail": "; ".join(_complaint(item) for item in complaints[:5]),
        "code": "invalid_request",
    }
    return _reply(request, 422, body)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # registered for this class
    path = _printable(as_asked(request.url.path))
    if error.status_code == 404:
        detail, code = f"no route {request.method} {path}", "route_not_found"
    elif error.status_code == 405:
        detail, code = f"no method {request.method} for {path}", "method_not_allowed"
    elif error.status_code == 413:
        detail, code = str(error.detail), "body_too_large"
    elif error.status_code == 400 and error.__cause__ is not None:
        detail, code = f"the body {_unreadable(error.__cause__)}", "invalid_json"
    else:
        detail, code = str(error.detail), "invalid_request"
    reply = _reply(request, error.status_code, {"detail": detail, "code": code})
    reply.headers.update(error.headers or {})
    return reply


def unexpected(request: Request, error: Exception) -> JSONResponse:
    """Answer a failure that no route knows: an outage, or one that nobody foresaw.

    The traceback of the latter is in the log, under the same id.
    """
    outage = outage_of(error)
    if outage is not None:
        logger.warning("%s", str(error).splitlines()[0])
        return ours(request, outage)
    request_id = request.state.request_id
    logger.error("%s %s failed (%s)", request.method, request.url.path, request_id, exc_info=error)
    detail = "the server failed unexpectedly; its log has the traceback under this request id"
    return _reply(request, 500, {"detail": detail, "code": "server_failure"})


def stopping(request: Request) -> JSONResponse:
    """Answer a request that the end of the server cuts short."""
    body: dict[str, object] = {
        "detail": "the server is stopping",
        "code": "server_stopping",
        "retryable": True,
    }
    return _reply(request, 503, body)


def _reply(request: Request, status: int, body: dict[str, object]) -> JSONResponse:
    request_id = getattr(request.state, "request_id", None)
    reply = JSONResponse({**body, "request_id": request_id}, status)
    if request_id:
        reply.headers[REQUEST_ID] = request_id
    if status == 401:
        reply.headers["www-authenticate"] = "Bearer"
    return reply


def _unreadable(cause: BaseException) -> str:
    if isinstance(cause, RecursionError):
        return f"is nested deeper than {MAX_DEPTH} levels"
    if isinstance(cause, UnicodeDecodeError):
        return f"is not UTF-8 text: {cause.reason} at byte {cause.start}"
    if isinstance(cause, ValueError) and "digits" in str(cause):
        return "holds an integer of too many digits"
    return "cannot be read as JSON"


def _complaint(item: Mapping[str, object]) -> str:
    place = cast("Sequence[object]", item.get("loc") or ())
    where = ".".join(str(part) for part in place if part != "body") or "the body"
    if item.get("type") == "value_error":
        return _printable(f"{where}: {str(item.get('msg')).removeprefix('Value error, ')}")
    if item.get("type") == "missing" and where == "the body":
        return "the body is empty; send a JSON object, with content type application/json"
    if item.get("type") == "model_attributes_type" and where == "the body":
        return "the body is not a JSON object; send one, with content type application/json"
    return _printable(f"{where}: {item.get('msg')}, got {repr(item.get('input'))[:80]}")


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()

"""From an answer to a typed value, or to the error that the answer stands for."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from types import GenericAlias
from typing import Any, TypeVar, cast

from pydantic import BaseModel, TypeAdapter, ValidationError
from rlcore import (
    ConflictError,
    EnvironmentFailed,
    RLEaaSAPIError,
    RLEaaSError,
    UnexpectedReply,
    error_from_http,
)

from rleaas._flow.wire import Reply, Request

M = TypeVar("M", bound=BaseModel)

EXCERPT = 200
FAULTS_TOLD = 3


def failure(request: Request, reply: Reply) -> RLEaaSError | None:
    """Return what is wrong with an answer by its status alone; None for a 2xx."""
    if 200 <= reply.status < 300:
        return None
    if reply.status < 400:
        place = reply.headers.get("location")
        return UnexpectedReply(
            f"{request} was answered with a redirect ({reply.status})"
            + (f" to {place!r}" if place else ""),
            hint="Redirects are not followed, so that a key goes to one host only. "
            "Set base_url to the server's own address.",
            request_id=reply.request_id,
        )
    return _api_error(request, reply)


def decode(request: Request, reply: Reply) -> object:
    """Return the JSON of a good answer; None where the answer has no body.

    Raises:
        UnexpectedReply: the body is not JSON.
    """
    if not reply.body.strip():
        return None
    try:
        return cast("object", json.loads(reply.body))
    except (ValueError, RecursionError) as error:
        raise _unexpected(request, reply, f"not JSON but {_excerpt(reply)}") from error


def read(shape: type[M], request: Request, reply: Reply) -> M:
    """Return a good answer as the shape it was promised in.

    Raises:
        UnexpectedReply: it has another shape.
    """
    try:
        return shape.model_validate(decode(request, reply))
    except ValidationError as error:
        raise _unexpected(
            request, reply, f"not a valid {shape.__name__}: {_faults(error)}"
        ) from error


def read_list(
    shape: type[M], request: Request, reply: Reply, *envelopes: str
) -> tuple[list[M], str | None]:
    """Return a list, bare or under one of the names, and the cursor of the next page if any.

    Raises:
        UnexpectedReply: it is neither; a strange answer never counts as an empty list.
    """
    value = decode(request, reply)
    cursor: object = None
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        cursor = fields.get("next_cursor", fields.get("cursor"))
        value = next((fields[name] for name in envelopes if name in fields), None)
    if not isinstance(value, list):
        names = " or ".join(repr(name) for name in envelopes)
        raise _unexpected(request, reply, f"neither a list nor an object with {names}")
    try:
        items = _adapter(shape).validate_python(value)
    except ValidationError as error:
        raise _unexpected(
            request, reply, f"not a list of valid {shape.__name__}: {_faults(error)}"
        ) from error
    return items, None if cursor in (None, "") else str(cursor)


def read_lines(request: Request, reply: Reply) -> list[str]:
    """Return text lines: a bare list, an object with one under a usual name, or one string.

    Raises:
        UnexpectedReply: it is none of these.
    """
    value = decode(request, reply)
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        value = next((fields[name] for name in ("logs", "items", "lines") if name in fields), None)
    if isinstance(value, str):
        return [line for line in value.splitlines() if line.strip()]
    if not isinstance(value, list):
        raise _unexpected(request, reply, "not a list of log lines")
    return [
        line if isinstance(line, str) else json.dumps(line) for line in cast("list[object]", value)
    ]


def retry_after(reply: Reply, now: float) -> float | None:
    """Return the seconds that a Retry-After header asks for; `now` is in epoch seconds."""
    text = reply.headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _api_error(request: Request, reply: Reply) -> RLEaaSError:
    # A proxy's error page is no reason to lose its status: the text serves as it is.
    try:
        body = cast("object", json.loads(reply.body))
    except (ValueError, RecursionError):
        body = reply.body.decode("utf-8", errors="replace")
    error = error_from_http(
        reply.status,
        body,
        request_id=reply.request_id,
        retry_after=retry_after(reply, _epoch_of(reply)),
        kind=request.kind,
        ref=request.ref,
    )
    if isinstance(error, ConflictError) and error.code == EnvironmentFailed.default_code:
        return _environment_failed(error)
    return error


def _environment_failed(error: RLEaaSAPIError) -> EnvironmentFailed:
    body = error.body
    told: Mapping[str, object] = (
        cast("Mapping[str, object]", body) if isinstance(body, Mapping) else {}
    )
    return EnvironmentFailed(
        str(told.get("ref") or ""),
        str(told.get("reason") or error.detail),
        hint=error.hint,
        request_id=error.request_id,
    )


def _epoch_of(reply: Reply) -> float:
    # The server's own clock: a Retry-After date is meant by it, and ours may be off.
    try:
        return parsedate_to_datetime(reply.headers.get("date", "")).timestamp()
    except (ValueError, OverflowError):
        return math.inf


def _adapter(shape: type[M]) -> TypeAdapter[list[M]]:
    # The shape is a run-time value here, which a type expression cannot hold.
    parametrized: Any = GenericAlias(list, (shape,))
    return TypeAdapter(parametrized)


def _unexpected(request: Request, reply: Reply, what: str) -> UnexpectedReply:
    return UnexpectedReply(
        f"the answer to {request} ({reply.status}) is {what}",
        hint="Check that base_url is an rleaas server, and that its version fits this client.",
        request_id=reply.request_id,
    )


def _excerpt(reply: Reply) -> str:
    kind = reply.headers.get("content-type", "of unknown type").partition(";")[0]
    text = reply.body[:EXCERPT].decode("utf-8", errors="replace")
    return f"{kind}, beginning {text!r}"


def _faults(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    told = [
        f"{'.'.join(str(part) for part in fault['loc']) or 'the whole'}: {fault['msg']}"
        for fault in faults[:FAULTS_TOLD]
    ]
    more = len(faults) - len(told)
    return "; ".join(told) + (f"; and {more} more" if more else "")

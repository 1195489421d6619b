"""HTTP status and body <-> error. Machine fields of the body decide, never words of its text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from rlcore.errors import ConfigurationError, Error, MissingDependencyError, TokenRejected
from rlcore.mesh_errors import (
    AccessDenied,
    CallTimeout,
    InvalidValueError,
    RLMeshException,
    UnsupportedError,
)
from rlcore.not_found_errors import (
    AgentNotFound,
    CheckpointNotFound,
    EnvironmentNotFound,
    EvaluationNotFound,
    NotFoundError,
    ScenarioNotFound,
    SuiteNotFound,
    ToolNotFound,
    TrainingJobNotFound,
    VerifierNotFound,
)
from rlcore.outcome_errors import (
    EnvironmentFailed,
    EvaluationCancelled,
    EvaluationFailed,
    GraderError,
    ModelFailed,
    TrainingJobCancelled,
    TrainingJobFailed,
)
from rlcore.platform_errors import (
    AuthenticationError,
    ConflictError,
    InvalidRequestError,
    PermissionDeniedError,
    PlatformTimeout,
    PlatformUnreachable,
    QuotaExceededError,
    RateLimitError,
    ReplyFacts,
    RLEaaSAPIError,
    ServerFailure,
    StatusError,
    UnsupportedRequestError,
)

LONGEST_RAW_TEXT = 500
TRANSIENT = frozenset({429, 502, 503, 504})

_BY_STATUS: Mapping[int, type[StatusError]] = {
    400: InvalidRequestError,
    401: AuthenticationError,
    402: QuotaExceededError,
    403: PermissionDeniedError,
    405: InvalidRequestError,
    409: ConflictError,
    413: InvalidRequestError,
    415: InvalidRequestError,
    422: InvalidRequestError,
    429: RateLimitError,
    501: UnsupportedRequestError,
}

_BY_KIND: Mapping[str, Callable[..., NotFoundError]] = {
    "environment": EnvironmentNotFound,
    "training_job": TrainingJobNotFound,
    "verifier": VerifierNotFound,
    "checkpoint": CheckpointNotFound,
    "evaluation": EvaluationNotFound,
    "agent": AgentNotFound,
    "scenario": ScenarioNotFound,
    "suite": SuiteNotFound,
    "tool": ToolNotFound,
}

_HINTS: Mapping[int, str] = {
    401: "Set RLEAAS_API_KEY or pass api_key=... to the client.",
    403: "Use an API key that has this permission.",
}

# The first class that an error belongs to decides, so the more particular ones stand first.
_STATUS_OF: Sequence[tuple[type[Error], int]] = (
    (TokenRejected, 401),
    (AccessDenied, 401),
    (MissingDependencyError, 501),
    (ConfigurationError, 422),
    (InvalidValueError, 422),
    (UnsupportedError, 422),
    (EnvironmentFailed, 409),
    (TrainingJobFailed, 409),
    (TrainingJobCancelled, 409),
    (EvaluationFailed, 409),
    (EvaluationCancelled, 409),
    (PlatformTimeout, 504),
    (CallTimeout, 504),
    (PlatformUnreachable, 502),
    (GraderError, 502),
    (ModelFailed, 502),
    (RLMeshException, 502),
)


def error_from_http(
    status: int,
    body: object,
    *,
    request_id: str | None = None,
    retry_after: float | None = None,
    kind: str | None = None,
    ref: str | None = None,
) -> RLEaaSAPIError:
    """Return the error that an answer with an error status stands for.

    `kind` and `ref` say what the request was about; they serve where the body does not say it.
    """
    fields = _fields(body)
    detail = _detail(fields, body)
    facts: ReplyFacts = {
        "status_code": status,
        "detail": detail,
        "body": body,
        "retry_after": retry_after,
        "retryable": status in TRANSIENT,
        "hint": _text(fields, "hint") or _hint(status, retry_after),
        "request_id": request_id or _text(fields, "request_id"),
    }
    code = _text(fields, "code")
    if code is not None:
        facts["code"] = code
    if status == 404:
        return _not_found(_text(fields, "kind") or kind, _text(fields, "ref") or ref, detail, facts)
    by_status = _BY_STATUS.get(status, ServerFailure if status >= 500 else None)
    if by_status is None:
        return RLEaaSAPIError(**facts)
    return by_status(detail or f"HTTP {status}", **facts)


def http_from_error(error: Error) -> tuple[int, dict[str, object]]:
    """Return the status and the JSON body that tell a client of an error.

    A 404 gets a fixed sentence and names its thing in `ref`: the published client picks an
    exception by words of the sentence, so a name in it could mislead it.
    """
    body: dict[str, object] = {"detail": error.message, "code": error.code}
    status = 500
    if isinstance(error, RLEaaSAPIError):
        status = error.status_code
        body["detail"] = error.detail
    for kind, known in _STATUS_OF:
        if isinstance(error, kind):
            status = known
            break
    if isinstance(error, NotFoundError) and error.kind:
        body["detail"] = f"{error.kind.replace('_', ' ').capitalize()} not found"
        body["kind"] = error.kind
        body["ref"] = error.ref
    if isinstance(error, EnvironmentFailed):
        body["kind"] = "environment"
        body["ref"] = error.ref
        body["reason"] = error.reason
    if error.hint:
        body["hint"] = error.hint
    if error.request_id:
        body["request_id"] = error.request_id
    return status, body


def _not_found(kind: str | None, ref: str | None, detail: str, facts: ReplyFacts) -> RLEaaSAPIError:
    if kind is not None and kind in _BY_KIND and ref:
        return _BY_KIND[kind](ref, **facts)
    return NotFoundError(detail or "HTTP 404", kind=kind or "", ref=ref or "", **facts)


def _fields(body: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", body) if isinstance(body, Mapping) else {}


def _text(fields: Mapping[str, object], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) and value else None


def _detail(fields: Mapping[str, object], body: object) -> str:
    for name in ("detail", "message"):
        value = fields.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value:
            return "; ".join(_complaint(item) for item in cast("list[object]", value))
        if value:
            return json.dumps(value, default=str)
    if isinstance(body, str):
        return body.strip()[:LONGEST_RAW_TEXT]
    return json.dumps(body, default=str)[:LONGEST_RAW_TEXT] if body else ""


def _complaint(item: object) -> str:
    """Say one entry of a validation list, such as FastAPI's, in words."""
    fields = _fields(item)
    place, message = fields.get("loc"), fields.get("msg")
    if not isinstance(place, list | tuple) or not isinstance(message, str):
        return item if isinstance(item, str) else json.dumps(item, default=str)
    return f"{'.'.join(str(part) for part in cast('Sequence[object]', place))}: {message}"


def _hint(status: int, retry_after: float | None) -> str | None:
    if retry_after is not None:
        return f"Try again in {retry_after:g} s."
    return _HINTS.get(status)

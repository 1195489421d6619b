"""What the official clients raise, as errors of ours; they name their classes alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from rlcore import ModelFailed

from rleaas.llm.patience import Passing

_PASSING = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_LONGEST_WAIT = 60.0


def failed(model: str, error: Exception) -> Exception:
    """The error to raise for one of a client's: `Passing`, or a `ModelFailed`."""
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return _status(model, error, status)
    reason = "unreachable"
    if "Timeout" in type(error).__name__:
        reason = "timeout"
    elif "Validation" in type(error).__name__ or isinstance(error, ValueError | TypeError):
        reason = "invalid_answer"
    failure = _failure(model, reason, f"{type(error).__name__}: {error}", error, retryable=True)
    return Passing(failure) if reason == "unreachable" else failure


def _status(model: str, error: Exception, status: int) -> Exception:
    detail = f"HTTP {status}: {str(error)[:500]}"
    if status not in _PASSING:
        return _failure(
            model,
            "refused",
            detail,
            error,
            hint="Look at the endpoint's URL, its key and the model's name",
        )
    failure = _failure(model, "unreachable", detail, error, retryable=True)
    return Passing(failure, _retry_after(error))


def _retry_after(error: Exception) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    said = cast("Mapping[str, str]", headers).get("retry-after") if headers is not None else None
    try:
        return None if said is None else min(max(0.0, float(said)), _LONGEST_WAIT)
    except ValueError:
        return None


def _failure(
    model: str,
    reason: str,
    detail: str,
    error: Exception,
    *,
    retryable: bool = False,
    hint: str | None = None,
) -> ModelFailed:
    failure = ModelFailed(model, reason, detail[:600], retryable=retryable, hint=hint)
    failure.__cause__ = error
    return failure

"""Failures of the control plane.

RLEaaSError
├ RLEaaSAPIError                            the server answered with an error status
│ ├ InvalidRequestError(ValueError)         400, 405, 413, 415, 422
│ ├ AuthenticationError                     401
│ ├ QuotaExceededError                      402
│ ├ PermissionDeniedError(PermissionError)  403
│ ├ NotFoundError(LookupError)              404: see `rlcore.not_found_errors`
│ ├ ConflictError                           409
│ ├ RateLimitError                          429
│ ├ ServerFailure                           5xx
│ └ UnsupportedRequestError                 501, also NotImplementedError
├ PlatformUnreachable(ConnectionError)      no answer at all
├ PlatformTimeout(TimeoutError)             a bounded wait ran out
├ UnexpectedReply                           a 2xx answer of the wrong shape
└ what came to a bad end on the platform    see `rlcore.outcome_errors`
"""

from __future__ import annotations

from typing import ClassVar, Unpack

from rlcore.errors import CommonFacts, Error


class RLEaaSError(Error):
    """A failure of the control plane."""

    default_code = "rleaas"


class ReplyFacts(CommonFacts, total=False):
    """The keyword arguments of every error that a server's answer can become."""

    status_code: int
    detail: str
    body: object
    retry_after: float | None


class RLEaaSAPIError(RLEaaSError):
    """The server answered with an error status.

    Attributes:
        status_code: the HTTP status.
        detail: the server's own sentence.
        body: the decoded body of the answer.
        retry_after: seconds after which the server invites a new attempt.
    """

    default_code = "api_error"

    def __init__(
        self,
        status_code: int,
        detail: str = "",
        *,
        body: object = None,
        retry_after: float | None = None,
        message: str | None = None,
        **common: Unpack[CommonFacts],
    ) -> None:
        super().__init__(f"HTTP {status_code}: {detail}" if message is None else message, **common)
        self.status_code = status_code
        self.detail = detail
        self.body = body
        self.retry_after = retry_after


class StatusError(RLEaaSAPIError):
    """An answer whose status has a class of its own; built from the sentence alone."""

    default_status: ClassVar[int] = 500

    def __init__(self, message: str = "", **facts: Unpack[ReplyFacts]) -> None:
        super().__init__(
            facts.get("status_code", self.default_status),
            facts.get("detail", message),
            body=facts.get("body"),
            retry_after=facts.get("retry_after"),
            message=message,
            code=facts.get("code"),
            retryable=facts.get("retryable"),
            hint=facts.get("hint"),
            request_id=facts.get("request_id"),
        )


class InvalidRequestError(StatusError, ValueError):
    """The server understood the request and refuses what it says."""

    default_code = "invalid_request"
    default_status = 422


class AuthenticationError(StatusError):
    """The API key is missing, unknown, expired or revoked."""

    default_code = "authentication"
    default_status = 401


class QuotaExceededError(StatusError):
    """The account's quota is used up."""

    default_code = "quota_exceeded"
    default_status = 402


class PermissionDeniedError(StatusError, PermissionError):
    """The API key is valid, but not for this."""

    default_code = "permission_denied"
    default_status = 403


class ConflictError(StatusError):
    """The request contradicts the state of the thing it names."""

    default_code = "conflict"
    default_status = 409


class RateLimitError(StatusError):
    """Too many requests; `retry_after` says when to come back."""

    default_code = "rate_limited"
    default_status = 429
    default_retryable = True


class ServerFailure(StatusError):
    """The server failed to do what it should have done."""

    default_code = "server_failure"
    default_status = 500
    default_retryable = True


class UnsupportedRequestError(StatusError, NotImplementedError):
    """The server knows what is asked for and cannot do it as it is installed or configured."""

    default_code = "unsupported_request"
    default_status = 501


class PlatformUnreachable(RLEaaSError, ConnectionError):
    """The server gave no answer at all."""

    default_code = "platform_unreachable"
    default_retryable = True


class PlatformTimeout(RLEaaSError, TimeoutError):
    """A bounded wait for the platform ran out; what was waited for goes on.

    Attributes:
        waited_for: what was waited for.
        last_status: the status last seen, when it was a wait for a status.
    """

    default_code = "platform_timeout"

    def __init__(
        self,
        message: str,
        *,
        waited_for: str | None = None,
        last_status: str | None = None,
        **common: Unpack[CommonFacts],
    ) -> None:
        super().__init__(message, **common)
        self.waited_for = waited_for
        self.last_status = last_status


class UnexpectedReply(RLEaaSError):
    """The server answered with success, but not in the shape that was promised."""

    default_code = "unexpected_reply"

"""Failures of the control plane.

RLEaaSError
├ RLEaaSAPIError                            the server answered with an error status
│ ├ InvalidRequestError(ValueError)         400, 405, 413, 415, 422
│ ├ AuthenticationError                     401
│ ├ QuotaExceededError                      402
│ ├ PermissionDeniedError(PermissionError)  403
│ ├ NotFoundError(LookupError)              404
│ │ ├ EnvironmentNotFound  TrainingJobNotFound  VerifierNotFound
│ │ ├ CheckpointNotFound  EvaluationNotFound
│ │ └ AgentNotFound  ScenarioNotFound  SuiteNotFound  ToolNotFound: also KeyError
│ ├ ConflictError                           409
│ ├ RateLimitError                          429
│ ├ ServerFailure                           5xx
│ └ UnsupportedRequestError                 501, also NotImplementedError
├ PlatformUnreachable(ConnectionError)      no answer at all
├ PlatformTimeout(TimeoutError)             a bounded wait ran out
├ UnexpectedReply                           a 2xx answer of the wrong shape
├ EnvironmentFailed(RuntimeError)           an environment did not come up
├ TrainingJobFailed  TrainingJobCancelled  EvaluationFailed  EvaluationCancelled
├ GraderError                               a verifier could not judge: no score, no pass
├ ModelFailed                               a language model gave no answer
├ CheckpointCorrupted                       a file is not the one that was stored
├ RolloutsUnreadable(ValueError)            a file of rollouts is damaged, or none
└ ReportNotVerified(ValueError)             a report's digest or signature does not hold
"""

from __future__ import annotations

from typing import ClassVar, Unpack

from rlcore.errors import CommonFacts, Error

NO_DETAIL = "the platform gave no detail"


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


class NotFoundError(StatusError, LookupError):
    """The thing named does not exist.

    Attributes:
        kind: what it would be, such as `environment`.
        ref: the name or id that was asked for.
    """

    default_code = "not_found"
    default_status = 404

    def __init__(
        self, message: str = "", *, kind: str = "", ref: str = "", **facts: Unpack[ReplyFacts]
    ) -> None:
        super().__init__(message, **facts)
        self.kind = kind
        self.ref = ref


class EnvironmentNotFound(NotFoundError):
    """No environment has this name or id."""

    default_code = "environment_not_found"

    def __init__(self, ref: str, **facts: Unpack[ReplyFacts]) -> None:
        super().__init__(f"Environment not found: {ref!r}", kind="environment", ref=ref, **facts)


class TrainingJobNotFound(NotFoundError):
    """No training job has this id."""

    default_code = "training_job_not_found"

    def __init__(self, job_id: str, **facts: Unpack[ReplyFacts]) -> None:
        super().__init__(
            f"Training job not found: {job_id!r}", kind="training_job", ref=job_id, **facts
        )
        self.job_id = job_id


class VerifierNotFound(NotFoundError):
    """No verifier has this id."""

    default_code = "verifier_not_found"

    def __init__(self, verifier_id: str, **facts: Unpack[ReplyFacts]) -> None:
        super().__init__(
            f"Verifier not found: {verifier_id!r}", kind="verifier", ref=verifier_id, **facts
        )
        self.verifier_id = verifier_id


class CheckpointNotFound(NotFoundError):
    """No checkpoint has this id."""

    default_code = "checkpoint_not_found"

    def __init__(self, checkpoint_id: str, **facts: Unpack[ReplyFacts]) -> None:
        super().__init__(
            f"Checkpoint not found: {checkpoint_id!r}",
            kind="checkpoint",
            ref=checkpoint_id,
            **facts,
        )
        self.checkpoint_id = checkpoint_id


class EvaluationNotFound(NotFoundError):
    """No evaluation has this id."""

    default_code = "evaluation_not_found"

    def __init__(self, evaluation_id: str, **facts: Unpack[ReplyFacts]) -> None:
        super().__init__(
            f"Evaluation not found: {evaluation_id!r}",
            kind="evaluation",
            ref=evaluation_id,
            **facts,
        )
        self.evaluation_id = evaluation_id


class AgentNotFound(NotFoundError, KeyError):
    """No agent has this id."""

    default_code = "agent_not_found"

    def __init__(self, agent_id: str, **facts: Unpack[ReplyFacts]) -> None:
        super().__init__(f"Agent not found: {agent_id!r}", kind="agent", ref=agent_id, **facts)
        self.agent_id = agent_id


class ScenarioNotFound(NotFoundError, KeyError):
    """No scenario has this id, here or in the library."""

    default_code = "scenario_not_found"

    def __init__(self, scenario_id: str, **facts: Unpack[ReplyFacts]) -> None:
        super().__init__(
            f"Scenario not found: {scenario_id!r}", kind="scenario", ref=scenario_id, **facts
        )
        self.scenario_id = scenario_id


class SuiteNotFound(NotFoundError, KeyError):
    """No scenario suite has this id."""

    default_code = "suite_not_found"

    def __init__(self, suite_id: str, **facts: Unpack[ReplyFacts]) -> None:
        super().__init__(f"Suite not found: {suite_id!r}", kind="suite", ref=suite_id, **facts)
        self.suite_id = suite_id


class ToolNotFound(NotFoundError, KeyError):
    """No tool has this id or name."""

    default_code = "tool_not_found"

    def __init__(self, tool_id: str, **facts: Unpack[ReplyFacts]) -> None:
        super().__init__(f"Tool not found: {tool_id!r}", kind="tool", ref=tool_id, **facts)
        self.tool_id = tool_id


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


class EnvironmentFailed(RLEaaSError, RuntimeError):
    """An environment did not come up, or went down.

    Attributes:
        ref: its name.
        reason: what the platform found.
    """

    default_code = "environment_failed"

    def __init__(self, ref: str, reason: str = "", **common: Unpack[CommonFacts]) -> None:
        self.ref = ref
        self.reason = reason or NO_DETAIL
        super().__init__(f"Environment {ref!r} failed. Reason: {self.reason}", **common)


class TrainingJobFailed(RLEaaSError):
    """A training job ended in failure.

    Attributes:
        job_id: its id.
        detail: what the platform found.
    """

    default_code = "training_job_failed"

    def __init__(self, job_id: str, detail: str = "", **common: Unpack[CommonFacts]) -> None:
        self.job_id = job_id
        self.detail = detail or NO_DETAIL
        super().__init__(f"Training job {job_id!r} failed. Reason: {self.detail}", **common)


class TrainingJobCancelled(RLEaaSError):
    """A training job was cancelled before it was complete."""

    default_code = "training_job_cancelled"

    def __init__(self, job_id: str, **common: Unpack[CommonFacts]) -> None:
        self.job_id = job_id
        super().__init__(f"Training job {job_id!r} was cancelled", **common)


class EvaluationFailed(RLEaaSError):
    """An evaluation ended in failure.

    Attributes:
        evaluation_id: its id.
        detail: what the platform found.
    """

    default_code = "evaluation_failed"

    def __init__(self, evaluation_id: str, detail: str = "", **common: Unpack[CommonFacts]) -> None:
        self.evaluation_id = evaluation_id
        self.detail = detail or NO_DETAIL
        super().__init__(f"Evaluation {evaluation_id!r} failed. Reason: {self.detail}", **common)


class EvaluationCancelled(RLEaaSError):
    """An evaluation was cancelled before it was complete."""

    default_code = "evaluation_cancelled"

    def __init__(self, evaluation_id: str, **common: Unpack[CommonFacts]) -> None:
        self.evaluation_id = evaluation_id
        super().__init__(f"Evaluation {evaluation_id!r} was cancelled", **common)


class GraderError(RLEaaSError):
    """A verifier could not judge an episode: there is no score, which is neither 0 nor a pass.

    Attributes:
        verifier: its id or name.
        reason: a machine word: `prose`, `invalid_answer`, `out_of_scale`, `timeout`, `unreachable`,
            `refused`, `too_large` or `exception`.
        detail: what happened.
    """

    default_code = "grader_error"

    def __init__(
        self,
        verifier: str,
        reason: str = "exception",
        detail: str = "",
        **common: Unpack[CommonFacts],
    ) -> None:
        self.verifier = verifier
        self.reason = reason
        self.detail = detail or NO_DETAIL
        super().__init__(
            f"Verifier {verifier!r} could not judge ({reason}): {self.detail}", **common
        )


class ModelFailed(RLEaaSError):
    """A language model gave no answer.

    Attributes:
        model: its name.
        reason: a machine word: `timeout`, `unreachable`, `refused` or `invalid_answer`.
        detail: what its endpoint said.
    """

    default_code = "language_model_failed"

    def __init__(
        self,
        model: str,
        reason: str = "unreachable",
        detail: str = "",
        **common: Unpack[CommonFacts],
    ) -> None:
        self.model = model
        self.reason = reason
        self.detail = detail or NO_DETAIL
        super().__init__(f"Model {model!r} gave no answer ({reason}): {self.detail}", **common)


class CheckpointCorrupted(RLEaaSError):
    """A checkpoint's file is not the one that was stored; it was not loaded.

    Attributes:
        checkpoint_id: its id.
        expected: the SHA-256 on record.
        actual: the SHA-256 of the file.
    """

    default_code = "checkpoint_corrupted"

    def __init__(
        self, checkpoint_id: str, expected: str, actual: str, **common: Unpack[CommonFacts]
    ) -> None:
        self.checkpoint_id = checkpoint_id
        self.expected = expected
        self.actual = actual
        super().__init__(
            f"Checkpoint {checkpoint_id!r} has SHA-256 {actual}, the record says {expected}",
            **common,
        )


class RolloutsUnreadable(RLEaaSError, ValueError):
    """A file of rollouts is damaged, cut off, or no such file.

    Attributes:
        file: which file.
        reason: what is wrong with it.
    """

    default_code = "rollouts_unreadable"

    def __init__(self, file: str, reason: str = "", **common: Unpack[CommonFacts]) -> None:
        self.file = file
        self.reason = reason or "nothing of it can be read"
        super().__init__(f"Rollouts cannot be read from {file!r}: {self.reason}", **common)


class ReportNotVerified(RLEaaSError, ValueError):
    """A report is not what its digest or its signature was made of.

    Attributes:
        file: which report.
        reason: what does not hold.
    """

    default_code = "report_not_verified"

    def __init__(self, file: str, reason: str = "", **common: Unpack[CommonFacts]) -> None:
        self.file = file
        self.reason = reason or "its signature does not hold"
        super().__init__(f"Report {file!r} is not verified: {self.reason}", **common)

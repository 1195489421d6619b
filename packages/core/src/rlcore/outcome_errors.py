"""What came to a bad end on the control plane, or is not what it should be.

RLEaaSError
├ EnvironmentFailed(RuntimeError)           an environment did not come up
├ TrainingJobFailed  TrainingJobCancelled  EvaluationFailed  EvaluationCancelled
├ GraderError                               a verifier could not judge: no score, no pass
├ ModelFailed                               a language model gave no answer
├ CheckpointCorrupted                       a file is not the one that was stored
├ RolloutsUnreadable(ValueError)            a file of rollouts is damaged, or none
└ ReportNotVerified(ValueError)             a report's digest or signature does not hold
"""

from __future__ import annotations

from typing import Unpack

from rlcore.errors import CommonFacts
from rlcore.platform_errors import RLEaaSError

NO_DETAIL = "the platform gave no detail"


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

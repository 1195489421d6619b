from typing import Any

import pytest
from rlcore import (
    AccessDenied,
    AuthenticationError,
    ConfigurationError,
    EnvironmentNotFound,
    Error,
    EvaluationCancelled,
    EvaluationFailed,
    InvalidRequestError,
    PermissionDeniedError,
    PlatformTimeout,
    PlatformUnreachable,
    RateLimitError,
    TrainingJobCancelled,
    TrainingJobFailed,
    TrainingJobNotFound,
)
from rleaas import Client
from rleaas.cli.failures import exit_code_of, say_failure


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TrainingJobFailed("job_1", "out of memory"), 8),
        (EvaluationFailed("eval_1", "no policy"), 8),
        (PlatformTimeout("late"), 9),
        (ConfigurationError("wrong", code="config_file"), 10),
        (RateLimitError("slow down"), 1),
        (Error("anything"), 1),
        (RuntimeError("a fault"), 1),
        (ConfigurationError("wrong"), 2),
        (InvalidRequestError("wrong"), 2),
        (EnvironmentNotFound("X"), 3),
        (TrainingJobNotFound("X"), 3),
        (AuthenticationError("who?"), 4),
        (PermissionDeniedError("no"), 4),
        (AccessDenied("no", address="tcp://x:1"), 4),
        (PlatformUnreachable("nobody"), 5),
        (TrainingJobCancelled("job_1"), 6),
        (EvaluationCancelled("eval_1"), 6),
        (KeyboardInterrupt(), 130),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_each_kind_of_failure_has_its_exit_code(error: BaseException, code: int) -> None:
    assert exit_code_of(error) == code


def test_an_error_is_one_line_and_its_hint_another(capsys: pytest.CaptureFixture[str]) -> None:
    say_failure(ConfigurationError("gamma is 2", hint="Use 0 to 1."))
    assert capsys.readouterr().err == "error: gamma is 2\nhint: Use 0 to 1.\n"


def test_a_request_id_is_told_and_nothing_a_server_says_moves_the_cursor(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say_failure(Error("line one\n\x1b[2Jline two", request_id="req_1"))
    assert capsys.readouterr().err == "error: line one \\x1b[2Jline two\nrequest: req_1\n"


def test_an_unknown_job_gets_the_hint_where_jobs_are_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say_failure(TrainingJobNotFound("job_9"))
    assert capsys.readouterr().err == (
        "error: Training job not found: 'job_9'\nhint: `rleaas job list` shows the jobs\n"
    )


def test_a_fault_of_ours_says_so_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    say_failure(KeyError("x"))
    told = capsys.readouterr().err
    assert told.startswith("error: KeyError: 'x'\nhint: this is a fault of rleaas")
    assert "Traceback" not in told


def test_what_an_argument_cannot_be_is_said_without_a_class_of_the_sdk(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wrong: Any = object()  # Any: what a command's own checks may let pass
    with Client(base_url="http://127.0.0.1:1") as client, pytest.raises(ConfigurationError) as told:
        client.AuditLog.export(wrong)
    say_failure(told.value)
    said = capsys.readouterr().err
    assert said.startswith("error: an argument cannot be used: ")
    assert "AuditLog" not in said

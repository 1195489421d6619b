import pytest
import rlcore
from rlcore import (
    Error,
    env_error_code_for,
    error_from_env_code,
    error_from_grpc,
    grpc_code_for,
)

# The sixteen status codes of gRPC without OK.
CODES = (
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
)


@pytest.mark.parametrize("code", CODES)
def test_every_grpc_status_becomes_an_error_that_names_operation_address_and_details(
    code: str,
) -> None:
    error = error_from_grpc(code, "said so", address="tcp://a:1", operation="step")

    assert isinstance(error, rlcore.RLMeshException)
    assert "step" in str(error)
    assert "tcp://a:1" in str(error)
    assert "said so" in str(error) or isinstance(error, rlcore.CallTimeout)
    assert error.hint


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("UNAVAILABLE", rlcore.ServerUnreachable),
        ("UNAUTHENTICATED", rlcore.AccessDenied),
        ("PERMISSION_DENIED", rlcore.AccessDenied),
        ("FAILED_PRECONDITION", rlcore.SessionBusy),
        ("CANCELLED", rlcore.SessionClosed),
        ("DEADLINE_EXCEEDED", rlcore.CallTimeout),
        ("UNIMPLEMENTED", rlcore.UnsupportedError),
        ("INVALID_ARGUMENT", rlcore.ProtocolException),
        ("INTERNAL", rlcore.ProtocolException),
    ],
)
def test_a_grpc_status_has_a_class(code: str, kind: type[Error]) -> None:
    assert type(error_from_grpc(code, "", address="a", operation="step")) is kind


def test_a_status_without_details_is_named() -> None:
    assert "UNAVAILABLE" in str(error_from_grpc("UNAVAILABLE", " ", address="a", operation="step"))


def test_a_timeout_says_which_layer_waited_how_long_for_what() -> None:
    error = error_from_grpc("DEADLINE_EXCEEDED", "", address="a", operation="step", seconds=2.5)

    assert isinstance(error, rlcore.CallTimeout)
    assert (error.operation, error.seconds, error.layer) == ("step", 2.5, "request")
    assert "within 2.5 s" in str(error)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (rlcore.TokenRejected("x"), "UNAUTHENTICATED"),
        (rlcore.AccessDenied("x"), "UNAUTHENTICATED"),
        (rlcore.ConfigurationError("x"), "INVALID_ARGUMENT"),
        (rlcore.InvalidActionError("x"), "INVALID_ARGUMENT"),
        (rlcore.IncompatibleError("x"), "FAILED_PRECONDITION"),
        (rlcore.ProtocolException("x"), "INVALID_ARGUMENT"),
        (rlcore.SessionBusy("x"), "FAILED_PRECONDITION"),
        (rlcore.SessionClosed("x"), "ABORTED"),
        (rlcore.CallTimeout("x"), "DEADLINE_EXCEEDED"),
        (rlcore.UnsupportedError("x"), "UNIMPLEMENTED"),
        (rlcore.ServerUnreachable("x"), "UNAVAILABLE"),
        (rlcore.EnvironmentException("x"), "INTERNAL"),
    ],
)
def test_an_error_has_a_grpc_status(error: Error, code: str) -> None:
    assert grpc_code_for(error) == code


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("UNSPECIFIED", rlcore.EnvironmentException),
        ("TIMEOUT", rlcore.CallTimeout),
        ("INVALID_ACTION", rlcore.InvalidActionError),
        ("NOT_READY", rlcore.EnvironmentException),
        ("BUSY", rlcore.SessionBusy),
        ("UNSUPPORTED", rlcore.UnsupportedError),
        ("INTERNAL", rlcore.EnvironmentException),
        ("CRASHED", rlcore.EnvironmentException),
        ("CANCELLED", rlcore.SessionClosed),
        ("CLOSED", rlcore.SessionClosed),
        ("ENV_ERROR_CODE_INVALID_ACTION", rlcore.InvalidActionError),
    ],
)
def test_an_error_code_of_the_environment_has_a_class(code: str, kind: type[Error]) -> None:
    error = error_from_env_code(code, "said so", operation="step", step=3)

    assert type(error) is kind
    assert "said so" in str(error)


def test_where_an_environment_failed_is_kept() -> None:
    error = error_from_env_code("INTERNAL", "boom", operation="step", step=3, seed=7)

    assert isinstance(error, rlcore.EnvironmentException)
    assert (error.operation, error.step, error.seed) == ("step", 3, 7)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (rlcore.CallTimeout("x"), "TIMEOUT"),
        (rlcore.InvalidActionError("x"), "INVALID_ACTION"),
        (rlcore.SessionBusy("x"), "BUSY"),
        (rlcore.UnsupportedError("x"), "UNSUPPORTED"),
        (rlcore.SessionClosed("x"), "CLOSED"),
        (ZeroDivisionError("x"), "INTERNAL"),
    ],
)
def test_an_error_has_an_error_code_of_the_environment(error: Exception, code: str) -> None:
    assert env_error_code_for(error) == code

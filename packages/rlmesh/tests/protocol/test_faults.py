import pickle

import pytest
from rlcore import (
    CallTimeout,
    EnvironmentException,
    Error,
    InvalidActionError,
    SessionClosed,
    UnsupportedError,
)
from rlmesh.protocol.faults import (
    MESSAGE_LIMIT,
    TRACEBACK_LIMIT,
    Fault,
    FaultCode,
    Occasion,
    environment_fault,
    error_of,
)

OCCASION = Occasion("step", "CartPole-v1", "session", "episode", 7, 3, "[1, 0]")


def raised(text: str) -> Exception:
    try:
        raise ZeroDivisionError(text)
    except ZeroDivisionError as error:
        return error


def test_a_message_without_end_is_cut_off() -> None:
    fault = environment_fault("step", raised("x" * 1_000_000))
    assert len(fault.message) < MESSAGE_LIMIT + 100
    assert fault.message.endswith("x… (cut off)")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (FaultCode.TIMEOUT, CallTimeout),
        (FaultCode.INVALID_ACTION, InvalidActionError),
        (FaultCode.UNSUPPORTED, UnsupportedError),
        (FaultCode.CANCELLED, SessionClosed),
        (FaultCode.CLOSED, SessionClosed),
        (FaultCode.INTERNAL, EnvironmentException),
        (FaultCode.CRASHED, EnvironmentException),
        (FaultCode.NOT_READY, EnvironmentException),
        (77, EnvironmentException),
    ],
)
def test_each_code_is_its_own_error(code: int, kind: type[Error]) -> None:
    assert type(error_of(Fault(code, "words", True), OCCASION)) is kind


def test_an_environments_exception_arrives_with_everything_known_about_it() -> None:
    error = error_of(environment_fault("step", raised("by nothing")), OCCASION)
    assert isinstance(error, EnvironmentException)
    assert (error.operation, error.environment, error.seed, error.step) == (
        "step",
        "CartPole-v1",
        7,
        3,
    )
    assert (error.session_id, error.episode_id) == ("session", "episode")
    assert error.remote_type == "ZeroDivisionError"
    assert error.remote_traceback is not None
    assert "in raised" in error.remote_traceback
    assert "step 3, seed 7, action [1, 0]: step failed: ZeroDivisionError: by nothing" in str(error)


def test_an_exception_of_ours_steps_aside_for_its_cause() -> None:
    ours = EnvironmentException("the factory could not")
    ours.__cause__ = raised("deep down")
    assert environment_fault("make", ours).message == "make failed: ZeroDivisionError: deep down"


def test_a_traceback_does_not_grow_without_end() -> None:
    fault = environment_fault("step", raised("x" * 2 * TRACEBACK_LIMIT))
    assert len(fault.debug_info) == TRACEBACK_LIMIT


class Speechless(RuntimeError):
    def __str__(self) -> str:
        raise KeyError("no")


class Unprintable(Speechless):
    def __getattribute__(self, name: str) -> object:
        if name == "__cause__":
            raise KeyError("no")
        return super().__getattribute__(name)


@pytest.mark.parametrize("kind", [Speechless, Unprintable])
def test_an_exception_without_a_text_still_has_a_name(kind: type[Exception]) -> None:
    fault = environment_fault("step", kind())
    assert fault.message == f"step failed: {kind.__name__}: (its text cannot be shown)"
    assert kind.__name__ in fault.debug_info


def test_a_message_of_another_form_has_no_remote_type() -> None:
    error = error_of(Fault(FaultCode.INTERNAL, "it broke", False), OCCASION)
    assert isinstance(error, EnvironmentException)
    assert error.remote_type is None


def test_a_code_is_pickled_as_a_number_of_its_class_whatever_python_does_with_others() -> None:
    data = pickle.dumps(FaultCode.INTERNAL)
    assert pickle.loads(data) is FaultCode.INTERNAL
    assert b"getattr" not in data

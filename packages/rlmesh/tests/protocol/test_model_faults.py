from __future__ import annotations

import pytest
from rlmesh import (
    Error,
    ModelException,
    ProtocolException,
    SessionBusy,
    SessionClosed,
    UnsupportedError,
)
from rlmesh.protocol.model_faults import (
    Asked,
    ModelFault,
    ModelFaultCode,
    ModelRefusal,
    fault_of,
    model_error_of,
)

ASKED = Asked("predict", "pi", "tcp://h:1", "World-v1", "ep", 7)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (0, ModelException),
        (2, ProtocolException),
        (3, ModelException),
        (4, SessionBusy),
        (5, UnsupportedError),
        (10, ModelException),
        (12, SessionClosed),
        (13, SessionClosed),
        (99, ModelException),
    ],
)
def test_each_code_is_an_error_that_names_model_and_address(code: int, kind: type[Error]) -> None:
    error = model_error_of(ModelFault(code, "no"), ASKED)

    assert type(error) is kind
    assert "predict by the model 'pi' at tcp://h:1: no" in str(error)


def test_what_a_model_raised_keeps_its_class_and_traceback() -> None:
    try:
        raise KeyError("gripper")
    except KeyError as raised:
        fault = fault_of(raised)
    assert fault.message == "internal error: KeyError: 'gripper'"
    assert (fault.code, fault.recoverable) == (ModelFaultCode.INTERNAL, False)

    error = model_error_of(fault, ASKED)
    assert isinstance(error, ModelException)
    assert (error.remote_type, error.environment, error.episode_id, error.seed) == (
        "KeyError",
        "World-v1",
        "ep",
        7,
    )
    assert "KeyError: 'gripper'" in (error.remote_traceback or "")


def test_a_refusal_is_told_as_it_is_and_has_no_class() -> None:
    fault = fault_of(ModelRefusal(ModelFaultCode.INTERNAL, "there is no route"))
    error = model_error_of(fault, ASKED)

    assert fault == ModelFault(10, "there is no route", recoverable=True)
    assert isinstance(error, ModelException)
    assert error.remote_type is None

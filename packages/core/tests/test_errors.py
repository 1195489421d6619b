import pickle
from collections import Counter
from collections.abc import Iterator

import pytest
import rlcore
from rlcore import Error, RLEaaSAPIError, RLMeshException


def every_error() -> Iterator[type[Error]]:
    for name in rlcore.__all__:
        thing = getattr(rlcore, name)
        if isinstance(thing, type) and issubclass(thing, Error):
            yield thing


def example(kind: type[Error]) -> Error:
    if kind is RLEaaSAPIError:
        return RLEaaSAPIError(
            418, "short and stout", body={"detail": "short and stout"}, hint="Pour"
        )
    if kind is rlcore.CheckpointCorrupted:
        return rlcore.CheckpointCorrupted("ck_1", "aa", "bb", hint="Pour")
    return kind("cp", hint="Pour", request_id="req_1", retryable=True)


@pytest.mark.parametrize("kind", list(every_error()), ids=lambda kind: kind.__name__)
def test_every_error_survives_pickling_with_all_its_facts(kind: type[Error]) -> None:
    error = example(kind)

    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is kind
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


@pytest.mark.parametrize("kind", list(every_error()), ids=lambda kind: kind.__name__)
def test_every_error_says_what_to_do_next_after_its_message(kind: type[Error]) -> None:
    error = example(kind)

    assert str(error) == f"{error.message}. Pour"


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (rlcore.ConfigurationError, ValueError),
        (rlcore.MissingDependencyError, ImportError),
        (rlcore.TokenRejected, PermissionError),
        (rlcore.RLMeshException, RuntimeError),
        (rlcore.InvalidActionError, ValueError),
        (rlcore.ServerUnreachable, ConnectionError),
        (rlcore.AccessDenied, PermissionError),
        (rlcore.CallTimeout, TimeoutError),
        (rlcore.RunInterrupted, KeyboardInterrupt),
        (rlcore.BundleError, ValueError),
        (rlcore.InvalidRequestError, ValueError),
        (rlcore.PermissionDeniedError, PermissionError),
        (rlcore.EnvironmentNotFound, LookupError),
        (rlcore.AgentNotFound, KeyError),
        (rlcore.ScenarioNotFound, KeyError),
        (rlcore.SuiteNotFound, KeyError),
        (rlcore.ToolNotFound, KeyError),
        (rlcore.UnsupportedRequestError, NotImplementedError),
        (rlcore.PlatformUnreachable, ConnectionError),
        (rlcore.PlatformTimeout, TimeoutError),
        (rlcore.EnvironmentFailed, RuntimeError),
    ],
)
def test_an_error_can_be_caught_as_the_builtin_that_it_is(
    kind: type[Error], builtin: type[BaseException]
) -> None:
    with pytest.raises(builtin):
        raise example(kind)


def test_errors_of_one_plane_are_not_errors_of_the_other() -> None:
    assert not issubclass(rlcore.EnvironmentException, rlcore.RLEaaSError)
    assert not issubclass(rlcore.EnvironmentFailed, RLMeshException)


def test_every_code_belongs_to_one_class_but_for_the_failed_environment() -> None:
    codes = Counter(kind.default_code for kind in every_error())

    # An environment can be seen to fail from either plane.
    assert {code for code, count in codes.items() if count > 1} == {"environment_failed"}


def test_the_published_constructors_give_the_published_text() -> None:
    assert str(rlcore.RLEaaSAPIError(404, "x")) == "HTTP 404: x"
    assert str(rlcore.AuthenticationError("no such key")) == "no such key"
    assert str(rlcore.QuotaExceededError("used up")) == "used up"
    assert str(rlcore.RateLimitError("too fast")) == "too fast"
    assert str(rlcore.EnvironmentNotFound("Cart#Pole")) == "Environment not found: 'Cart#Pole'"
    assert str(rlcore.TrainingJobNotFound("job_1")) == "Training job not found: 'job_1'"
    assert str(rlcore.VerifierNotFound("ver_1")) == "Verifier not found: 'ver_1'"


def test_the_published_attributes_are_there() -> None:
    assert rlcore.EnvironmentNotFound("cp").ref == "cp"
    assert rlcore.TrainingJobNotFound("job_1").job_id == "job_1"
    assert rlcore.VerifierNotFound("ver_1").verifier_id == "ver_1"
    assert rlcore.CheckpointNotFound("ck_1").checkpoint_id == "ck_1"
    assert rlcore.EvaluationNotFound("ev_1").evaluation_id == "ev_1"
    assert (
        rlcore.RLEaaSAPIError(404, "x").status_code,
        rlcore.RLEaaSAPIError(404, "x").detail,
    ) == (
        404,
        "x",
    )


def test_a_status_error_without_a_reply_has_the_status_of_its_class() -> None:
    assert rlcore.AuthenticationError("x").status_code == 401
    assert rlcore.EnvironmentNotFound("cp").status_code == 404


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            rlcore.EnvironmentFailed("cp", "no such id"),
            "Environment 'cp' failed. Reason: no such id",
        ),
        (rlcore.TrainingJobFailed("j", "NaN"), "Training job 'j' failed. Reason: NaN"),
        (rlcore.EvaluationFailed("e", "gone"), "Evaluation 'e' failed. Reason: gone"),
        (
            rlcore.GraderError("v", "prose", "it said 'good'"),
            "Verifier 'v' could not judge (prose): it said 'good'",
        ),
        (
            rlcore.ModelFailed("m", "timeout"),
            "Model 'm' gave no answer (timeout): the platform gave no detail",
        ),
        (
            rlcore.TrainingJobFailed("j"),
            "Training job 'j' failed. Reason: the platform gave no detail",
        ),
    ],
)
def test_a_failed_thing_is_named_with_its_reason(error: Error, text: str) -> None:
    assert str(error) == text


def test_a_message_with_a_full_stop_gets_no_second_one_before_the_hint() -> None:
    assert str(Error("It broke.", hint="Mend it.")) == "It broke. Mend it."


def test_an_error_that_may_pass_is_retryable_unless_told_otherwise() -> None:
    assert rlcore.RateLimitError("x").retryable
    assert not rlcore.RateLimitError("x", retryable=False).retryable
    assert not rlcore.ConfigurationError("x").retryable


def test_a_remote_traceback_is_printed_with_the_error() -> None:
    error = rlcore.EnvironmentException("step failed", step=7, remote_traceback="Traceback: boom\n")

    assert error.__notes__ == ["In the environment:\nTraceback: boom"]
    assert (error.step, error.remote_traceback) == (7, "Traceback: boom\n")


def test_a_served_models_traceback_is_printed_with_the_error() -> None:
    error = rlcore.ModelException("no", model="pi", address="tcp://h:1", remote_traceback="boom\n")

    assert error.__notes__ == ["In the model:\nboom"]
    assert (error.model, error.address, error.code) == ("pi", "tcp://h:1", "model_failed")
    assert not hasattr(rlcore.ModelException("no"), "__notes__")


def test_a_wrong_expression_is_shown_with_a_caret_under_the_place() -> None:
    error = rlcore.ExpressionError("no value", expression="a\nb +", position=5, hint="Add one")

    assert str(error) == "no value\n  b +\n     ^\nAdd one"
    assert (error.reason, error.expression, error.position) == ("no value", "a\nb +", 5)


def test_of_a_long_expression_only_what_is_around_the_place_is_shown() -> None:
    error = rlcore.ExpressionError("no", expression="x" * 300 + "!" + "y" * 300, position=300)

    assert str(error) == "no\n  " + "x" * 60 + "!" + "y" * 39 + "\n  " + " " * 60 + "^"


def test_facts_are_attributes() -> None:
    identity = rlcore.IdentityError(
        "x", environment="cp", version=2, expected="a", actual="b", differences=("a.b",)
    )
    timeout = rlcore.CallTimeout("x", operation="step", seconds=2.0, layer="request")
    wait = rlcore.PlatformTimeout("x", waited_for="job 'j'", last_status="running")

    assert (identity.environment, identity.version, identity.differences) == ("cp", 2, ("a.b",))
    assert (timeout.operation, timeout.seconds, timeout.layer) == ("step", 2.0, "request")
    assert (wait.waited_for, wait.last_status) == ("job 'j'", "running")
    assert rlcore.InvalidActionError("x", path="$.a[0]").path == "$.a[0]"
    assert rlcore.ServerUnreachable("x", address="tcp://a:1").address == "tcp://a:1"
    assert rlcore.RunFailed("x", partial=[1]).partial == [1]
    assert rlcore.BundleError("x", path="a/b").path == "a/b"

import pytest
import rlcore
from hypothesis import given
from hypothesis import strategies as st
from rlcore import Error, RLEaaSAPIError, error_from_http, http_from_error


# defect: T-6
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, rlcore.InvalidRequestError),
        (401, rlcore.AuthenticationError),
        (402, rlcore.QuotaExceededError),
        (403, rlcore.PermissionDeniedError),
        (404, rlcore.NotFoundError),
        (409, rlcore.ConflictError),
        (422, rlcore.InvalidRequestError),
        (429, rlcore.RateLimitError),
        (500, rlcore.ServerFailure),
        (501, rlcore.UnsupportedRequestError),
        (503, rlcore.ServerFailure),
        (418, RLEaaSAPIError),
    ],
)
def test_a_status_has_a_class_and_keeps_all_facts(status: int, kind: type[RLEaaSAPIError]) -> None:
    body = {"detail": "the key was revoked", "code": "some_code"}

    error = error_from_http(status, body, request_id="req_1", retry_after=2.0)

    assert type(error) is kind
    assert "the key was revoked" in str(error)
    assert (error.status_code, error.detail, error.body) == (status, "the key was revoked", body)
    assert (error.code, error.request_id, error.retry_after) == ("some_code", "req_1", 2.0)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("environment", rlcore.EnvironmentNotFound),
        ("training_job", rlcore.TrainingJobNotFound),
        ("verifier", rlcore.VerifierNotFound),
        ("checkpoint", rlcore.CheckpointNotFound),
        ("evaluation", rlcore.EvaluationNotFound),
        ("agent", rlcore.AgentNotFound),
        ("scenario", rlcore.ScenarioNotFound),
        ("suite", rlcore.SuiteNotFound),
        ("tool", rlcore.ToolNotFound),
    ],
)
def test_the_kind_in_the_body_decides_which_thing_was_not_found(
    kind: str, expected: type[rlcore.NotFoundError]
) -> None:
    error = error_from_http(404, {"detail": "Not here", "kind": kind, "ref": "training_v"})

    assert type(error) is expected
    assert (error.kind, error.ref, error.detail) == (kind, "training_v", "Not here")


def test_words_of_the_sentence_do_not_decide_which_thing_was_not_found() -> None:
    error = error_from_http(404, {"detail": "Verifier v not found for environment E"})

    assert type(error) is rlcore.NotFoundError
    assert str(error) == "Verifier v not found for environment E"


def test_what_was_asked_for_decides_where_the_body_does_not() -> None:
    error = error_from_http(404, {"detail": "gone"}, kind="verifier", ref="training_v")

    assert isinstance(error, rlcore.VerifierNotFound)
    assert error.verifier_id == "training_v"


def test_a_kind_without_a_class_of_its_own_keeps_kind_and_ref() -> None:
    error = error_from_http(404, {"detail": "Rollout not found", "kind": "rollout", "ref": "r1"})

    assert type(error) is rlcore.NotFoundError
    assert (error.kind, error.ref, str(error)) == ("rollout", "r1", "Rollout not found")


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"detail": None, "message": "said here"}, "said here"),
        ({"detail": "", "message": "said here"}, "said here"),
        ({"detail": {"a": 1}}, '{"a": 1}'),
        (
            {"detail": [{"loc": ["body", "name"], "msg": "field required"}]},
            "body.name: field required",
        ),
        ({"detail": ["one", {"two": 2}]}, 'one; {"two": 2}'),
        ({"other": 1}, '{"other": 1}'),
        ("<html>no</html> ", "<html>no</html>"),
        ("x" * 9999, "x" * 500),
        (None, ""),
        ([], ""),
    ],
)
def test_the_detail_is_found_in_any_body(body: object, detail: str) -> None:
    assert error_from_http(400, body).detail == detail


def test_an_empty_body_still_gives_a_message() -> None:
    assert str(error_from_http(503, None)) == "HTTP 503"
    assert str(error_from_http(404, None)) == "HTTP 404"


@pytest.mark.parametrize(
    ("status", "retryable"), [(429, True), (503, True), (500, False), (409, False)]
)
def test_only_a_passing_failure_is_retryable(status: int, retryable: bool) -> None:
    assert error_from_http(status, None).retryable is retryable


def test_the_next_step_comes_from_the_body_or_from_the_status() -> None:
    assert error_from_http(401, {"hint": "Log in."}).hint == "Log in."
    assert "RLEAAS_API_KEY" in str(error_from_http(401, {"detail": "no key"}))
    assert error_from_http(429, None, retry_after=1.5).hint == "Try again in 1.5 s."


def test_the_request_id_may_be_in_the_body() -> None:
    assert error_from_http(500, {"request_id": "req_2"}).request_id == "req_2"


FIELDS = ["detail", "message", "code", "kind", "ref", "hint", "request_id", "loc", "msg"]
SCALARS = st.none() | st.booleans() | st.integers() | st.text()
BODIES: st.SearchStrategy[object] = st.deferred(
    lambda: (
        SCALARS | st.lists(BODIES, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), BODIES)
    )
)


@given(st.integers(400, 599), BODIES)
def test_any_body_becomes_an_error_with_its_status(status: int, body: object) -> None:
    error = error_from_http(status, body)

    assert error.status_code == status
    assert str(error)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (rlcore.ConfigurationError("x"), 422),
        (rlcore.InvalidActionError("x"), 422),
        (rlcore.TokenRejected("x"), 401),
        (rlcore.MissingDependencyError("x"), 501),
        (rlcore.EnvironmentFailed("cp", "no such id"), 409),
        (rlcore.EvaluationCancelled("e"), 409),
        (rlcore.CallTimeout("x"), 504),
        (rlcore.ServerUnreachable("x"), 502),
        (rlcore.GraderError("v", "prose"), 502),
        (rlcore.ModelFailed("m", "timeout"), 502),
        (rlcore.ConflictError("x"), 409),
        (rlcore.UnexpectedReply("x"), 500),
    ],
)
def test_an_error_of_the_server_has_a_status_and_says_itself(error: Error, status: int) -> None:
    answered, body = http_from_error(error)

    assert answered == status
    assert body["code"] == error.code
    assert body["detail"]


def test_a_404_names_its_thing_in_a_field_and_not_in_its_sentence() -> None:
    assert http_from_error(rlcore.TrainingJobNotFound("environment_1", hint="List them.")) == (
        404,
        {
            "detail": "Training job not found",
            "code": "training_job_not_found",
            "kind": "training_job",
            "ref": "environment_1",
            "hint": "List them.",
        },
    )


def test_a_404_of_no_kind_keeps_its_sentence() -> None:
    status, body = http_from_error(rlcore.NotFoundError("Nothing here", request_id="req_1"))

    assert (status, body["detail"], body["request_id"]) == (404, "Nothing here", "req_1")


def test_a_failed_environment_is_named() -> None:
    _, body = http_from_error(rlcore.EnvironmentFailed("cp", "no such id"))

    assert (body["kind"], body["ref"]) == ("environment", "cp")
    assert "no such id" in str(body["detail"])


@pytest.mark.parametrize(
    "error",
    [
        rlcore.EnvironmentNotFound("Cart Pole"),
        rlcore.CheckpointNotFound("ck_1"),
        rlcore.ConflictError("there is one already", hint="Choose another name."),
        rlcore.InvalidRequestError("learning_rat is no key"),
    ],
)
def test_an_error_arrives_at_the_client_as_it_left_the_server(error: RLEaaSAPIError) -> None:
    status, body = http_from_error(error)

    arrived = error_from_http(status, body)

    assert type(arrived) is type(error)
    assert (str(arrived), arrived.code, arrived.hint) == (str(error), error.code, error.hint)

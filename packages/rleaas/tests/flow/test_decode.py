import pytest
from rlcore import (
    EnvironmentFailed,
    EnvironmentNotFound,
    NotFoundError,
    ServerFailure,
    TrainingJobNotFound,
    UnexpectedReply,
    VerifierNotFound,
)
from rleaas._flow.decode import decode, failure, read, read_lines, read_list
from rleaas._flow.request import get
from rleaas._flow.wire import Reply
from rleaas.models import Environment
from rleaas.testing import reply

ASKED = get("/api/things")


# defect: T-4
@pytest.mark.parametrize("body", [b"<html>hello</html>", b"{", b"\xff\xfe"])
def test_success_that_is_not_json_is_unexpected(body: bytes) -> None:
    with pytest.raises(UnexpectedReply, match=r"GET /api/things \(200\) is not JSON"):
        decode(ASKED, reply(body))


def test_an_empty_answer_is_nothing() -> None:
    assert decode(ASKED, Reply(204)) is None


def test_an_empty_answer_is_not_a_record() -> None:
    with pytest.raises(UnexpectedReply, match="not a valid Environment"):
        read(Environment, ASKED, Reply(204))


def test_a_record_without_a_field_says_which_is_missing() -> None:
    with pytest.raises(UnexpectedReply, match="status: Field required"):
        read(Environment, ASKED, reply({"id": 1, "name": "E"}))


# defect: T-4
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_refused_and_says_where_to(status: int) -> None:
    found = failure(ASKED, reply({"id": 1}, status, {"location": "https://elsewhere/api"}))

    assert isinstance(found, UnexpectedReply)
    assert "'https://elsewhere/api'" in str(found)


RECORD = {"id": 1, "name": "E", "status": "ready"}


@pytest.mark.parametrize("body", [[RECORD], {"environments": [RECORD], "cursor": None}])
def test_a_list_comes_bare_or_in_an_envelope(body: object) -> None:
    items, cursor = read_list(Environment, ASKED, reply(body), "environments")

    assert [item.name for item in items] == ["E"]
    assert cursor is None


@pytest.mark.parametrize("body", [{"things": [RECORD]}, {"environments": None}, "text", None, 3])
def test_a_strange_answer_is_never_an_empty_list(body: object) -> None:
    with pytest.raises(UnexpectedReply, match="neither a list nor an object with 'environments'"):
        read_list(Environment, ASKED, reply(body), "environments")


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (["a", "b"], ["a", "b"]),
        ([], []),
        ({"logs": []}, []),
        ({"items": ["a"]}, ["a"]),
        ({"lines": "a\n\nb\n"}, ["a", "b"]),
        ("a\nb", ["a", "b"]),
    ],
)
def test_log_lines_come_in_every_published_form(body: object, lines: list[str]) -> None:
    assert read_lines(ASKED, reply(body)) == lines


def test_log_lines_in_an_unknown_form_are_unexpected() -> None:
    with pytest.raises(UnexpectedReply, match="log lines"):
        read_lines(ASKED, reply({"text": "a"}))


def test_a_missing_thing_is_classed_by_the_machine_fields_of_the_body() -> None:
    body = {
        "detail": "Verifier v not found for environment E of the training job",
        "code": "verifier_not_found",
        "kind": "verifier",
        "ref": "training_v",
    }

    found = failure(ASKED, reply(body, 404))

    assert isinstance(found, VerifierNotFound)
    assert found.verifier_id == "training_v"


def test_a_missing_thing_is_classed_by_what_was_asked_for_where_the_body_does_not_say() -> None:
    asked = get("/training/environment-1", kind="training_job", ref="environment-1")

    found = failure(asked, reply({"detail": "No environment-1"}, 404))

    assert isinstance(found, TrainingJobNotFound)
    assert not isinstance(found, EnvironmentNotFound)
    assert found.job_id == "environment-1"


def test_a_missing_route_is_no_missing_environment() -> None:
    found = failure(ASKED, reply({"detail": "environment? job? no such route"}, 404))

    assert type(found) is NotFoundError


def test_a_proxy_s_error_page_keeps_its_status() -> None:
    found = failure(ASKED, reply(b"<h1>Bad gateway</h1>", 502))

    assert isinstance(found, ServerFailure)
    assert found.status_code == 502
    assert "Bad gateway" in found.detail


def test_an_environment_that_does_not_come_up_is_said_with_its_reason() -> None:
    body = {"detail": "Environment 'E' failed", "code": "environment_failed", "ref": "E"}

    found = failure(ASKED, reply({**body, "reason": "no gym id 'X-v1'"}, 409))

    assert isinstance(found, EnvironmentFailed)
    assert (found.ref, found.reason) == ("E", "no gym id 'X-v1'")

from collections.abc import Sequence

import pytest
from rlcore import (
    AuthenticationError,
    Deadline,
    PlatformTimeout,
    PlatformUnreachable,
    RateLimitError,
    RLEaaSError,
    ServerFailure,
)
from rleaas._flow.request import get, post
from rleaas._flow.retry import ask
from rleaas._flow.wire import Reply, Request
from rleaas.testing import Clock, Offline, converse, reply

BUSY = reply({"detail": "busy"}, 503)
DOWN = PlatformUnreachable("reset by peer")
SLOW = PlatformTimeout("no answer")
OK = reply({})
UNKEYED = Request(method="POST", path="/x")


# defect: T-2
@pytest.mark.parametrize(
    "failure", [BUSY, reply({}, 429), reply({}, 502), reply({}, 504), DOWN, SLOW]
)
@pytest.mark.parametrize("request_", [get("/x"), post("/x", {}, key="k")])
def test_a_repeatable_request_survives_transient_failures(
    failure: Reply | RLEaaSError, request_: Request
) -> None:
    talk = converse(ask(request_, Offline().context), [failure, failure, OK])

    assert talk.result == OK
    assert talk.requests == [request_] * 3
    assert len(talk.pauses) == 2
    assert 0 < talk.pauses[0] <= 0.2 < talk.pauses[0] + talk.pauses[1]


# defect: T-1
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("failure", [BUSY, DOWN])
def test_a_request_that_changes_things_is_sent_once(
    method: str, failure: Reply | RLEaaSError
) -> None:
    request = Request(method=method, path="/x")

    with pytest.raises((ServerFailure, PlatformUnreachable)):
        converse(ask(request, Offline().context), [failure])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 500, 501])
def test_a_refusal_is_not_repeated(status: int) -> None:
    with pytest.raises(RLEaaSError):
        converse(ask(get("/x"), Offline().context), [reply({"detail": "no"}, status)])


def test_the_last_failure_is_the_one_that_is_raised() -> None:
    script: Sequence[Reply | RLEaaSError] = [DOWN, BUSY, reply({"detail": "slow down"}, 429)]

    with pytest.raises(RateLimitError, match="slow down"):
        converse(ask(get("/x"), Offline().context), script)


# defect: T-8
def test_one_attempt_is_one_attempt() -> None:
    with pytest.raises(PlatformUnreachable):
        converse(ask(get("/x"), Offline(attempts=1).context), [DOWN])


# defect: T-2
def test_the_server_s_retry_after_is_waited_for() -> None:
    talk = converse(ask(get("/x"), Offline().context), [reply({}, 503, {"retry-after": "7"}), OK])

    assert 7 < talk.pauses[0] < 7.3


def test_a_retry_after_date_is_read_by_the_server_s_clock() -> None:
    headers = {
        "date": "Wed, 21 Oct 2015 07:28:00 GMT",
        "retry-after": "Wed, 21 Oct 2015 07:28:09 GMT",
    }

    talk = converse(ask(get("/x"), Offline().context), [reply({}, 429, headers), OK])

    assert 9 < talk.pauses[0] < 9.3


def test_a_server_that_asks_for_an_hour_gets_its_error_to_the_caller() -> None:
    with pytest.raises(RateLimitError) as caught:
        converse(ask(get("/x"), Offline().context), [reply({}, 429, {"retry-after": "3600"})])

    assert caught.value.retry_after == 3600


def test_attempts_end_at_the_deadline() -> None:
    clock = Clock()
    deadline = Deadline.after(5, clock=clock)

    with pytest.raises(ServerFailure):
        converse(
            ask(get("/x"), Offline(clock=clock).context, deadline),
            [reply({}, 503, {"retry-after": "6"})],
            clock,
        )


def test_a_request_gets_what_is_left_of_the_deadline() -> None:
    clock = Clock()
    deadline = Deadline.after(5, clock=clock)

    talk = converse(ask(get("/x"), Offline(clock=clock).context, deadline), [OK], clock)

    assert talk.requests[0].timeout == 5


def test_an_error_keeps_what_the_server_said() -> None:
    with pytest.raises(AuthenticationError) as caught:
        converse(
            ask(get("/x"), Offline().context),
            [reply({"detail": "key revoked", "code": "key_revoked"}, 401, {"x-request-id": "r1"})],
        )

    error = caught.value
    assert (error.status_code, error.detail, error.code) == (401, "key revoked", "key_revoked")
    assert error.request_id == "r1"

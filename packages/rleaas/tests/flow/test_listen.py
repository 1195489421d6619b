from collections.abc import Sequence

import pytest
from rlcore import (
    AuthenticationError,
    Deadline,
    NotFoundError,
    PlatformUnreachable,
    RLEaaSError,
    ServerFailure,
)
from rleaas._flow.listen import Listener
from rleaas._flow.retry import OUTAGE_TOLERATED
from rleaas._flow.wire import Item, Reply, Request, Stream
from rleaas.testing import Clock, Conversation, Offline, converse, reply

OPEN = Reply(200, b"", {"content-type": "text/event-stream; charset=utf-8"})
DOWN = PlatformUnreachable("reset by peer")
BUSY = reply({"detail": "busy"}, 503)
Script = Sequence[Reply | bytes | BaseException]


def said(*ids: int) -> bytes:
    return "".join(f"id: {one}\ndata: m{one}\n\n" for one in ids).encode()


def read(
    script: Script, *, count: int, timeout: float | None = None, clock: Clock | None = None
) -> Conversation[None]:
    driver = Offline(clock=clock)

    def request(seconds: float | None) -> Request:
        params = () if seconds is None else (("seconds", str(seconds)),)
        return Request(method="GET", path="/x", params=params)

    def messages() -> Stream[str]:
        deadline = Deadline.after(timeout, clock=driver.context.clock)
        listener = Listener(request, driver.context, deadline)
        whole = yield from listener.begin()
        if whole is not None:
            yield Item(whole.body.decode())
            return
        for _ in range(count):
            message = yield from listener.next()
            if message is None:
                yield Item("over")
                return
            yield Item(message.data)

    return converse(messages(), script, driver.clock)


def cursors(talk: Conversation[None]) -> list[str | None]:
    return [request.headers.get("Last-Event-ID") for request in talk.requests]


def test_messages_are_heard_over_one_connection() -> None:
    talk = read([OPEN, said(1), b": still here\n\n", said(2, 3)], count=3)

    assert talk.items == ["m1", "m2", "m3"]
    assert cursors(talk) == [None]
    assert "text/event-stream" in talk.requests[0].headers["Accept"]


def test_a_broken_connection_is_made_anew_behind_the_last_message() -> None:
    script: Script = [OPEN, said(1) + b"id: 2\nda", DOWN, OPEN, said(2)]

    talk = read(script, count=2)

    assert talk.items == ["m1", "m2"]
    assert cursors(talk)[0] is None


def test_the_cursor_of_a_message_that_was_cut_off_is_not_taken_for_heard() -> None:
    talk = read([OPEN, said(1) + b"id: 2\nda", DOWN, OPEN, said(2)], count=2)

    assert cursors(talk) == [None, "1"]


def test_a_stream_that_ends_in_good_order_is_followed_after_a_moment() -> None:
    talk = read([OPEN, b"retry: 500\n\n", said(1), b"", OPEN, said(2)], count=2)

    assert cursors(talk) == [None, "1"]
    assert 0.5 <= talk.pauses[0] <= 0.7


def test_a_server_that_restarts_is_waited_for_and_asked_more_and_more_slowly() -> None:
    failures: list[Reply | bytes | BaseException] = [DOWN, DOWN, BUSY, DOWN]

    talk = read([OPEN, said(1), b"", *failures, OPEN, said(2)], count=2)

    assert talk.items == ["m1", "m2"]
    assert cursors(talk) == [None, *["1"] * 5]
    assert talk.pauses[1:] == sorted(talk.pauses[1:])


def test_a_server_that_stays_away_is_given_up_after_a_minute() -> None:
    clock = Clock()

    with pytest.raises(PlatformUnreachable):
        read([OPEN, said(1), *[DOWN] * 200], count=2, clock=clock)

    assert OUTAGE_TOLERATED <= clock.now < OUTAGE_TOLERATED + 10


def test_a_server_that_was_never_there_is_asked_as_often_as_any_request() -> None:
    with pytest.raises(PlatformUnreachable):
        read([DOWN, DOWN, DOWN], count=1)


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (reply({"detail": "no"}, 401), AuthenticationError),
        (reply({"detail": "no"}, 404), NotFoundError),
        (reply({"detail": "no"}, 500), ServerFailure),
    ],
)
def test_a_refusal_ends_it_at_once_also_when_it_comes_back(
    refusal: Reply, kind: type[RLEaaSError]
) -> None:
    with pytest.raises(kind):
        read([refusal], count=1)
    with pytest.raises(kind):
        read([OPEN, said(1), DOWN, refusal], count=2)


def test_too_many_listeners_are_asked_to_come_later_and_do() -> None:
    talk = read([reply({}, 429, {"retry-after": "2"}), OPEN, said(1)], count=1)

    assert 2 < talk.pauses[0] < 2.3


def test_a_server_that_does_not_stream_has_its_answer_returned() -> None:
    assert read([reply({"a": 1})], count=1).items == ['{"a": 1}']


def test_a_server_that_streams_no_more_is_said() -> None:
    with pytest.raises(PlatformUnreachable, match="does not stream any more"):
        read([OPEN, said(1), DOWN, reply({})], count=2)


def test_the_deadline_is_told_to_the_server_and_ends_the_stream() -> None:
    clock = Clock()

    talk = read([OPEN, said(1), b""], count=2, timeout=0.0, clock=clock)
    assert talk.items == ["m1", "over"]
    assert dict(talk.requests[0].params) == {"seconds": "0.0"}
    outage: Script = [OPEN, said(1), DOWN, *[DOWN] * 4]
    with pytest.raises(PlatformUnreachable):
        read(outage, count=2, timeout=1.1, clock=clock)


def test_a_server_that_goes_on_after_the_deadline_is_not_heard_for_long() -> None:
    clock = Clock()

    def later() -> float:
        clock.now += 0.5
        return clock.now

    driver = Offline(clock=clock)
    listener = Listener(
        lambda _: Request(method="GET", path="/x"), driver.context, Deadline(1.0, later)
    )
    clock.now = 3.5

    assert converse(listener.next(), []).result is None


def test_the_time_that_is_left_is_told_anew_when_it_comes_back() -> None:
    talk = read([OPEN, said(1), b"", OPEN, said(2)], count=2, timeout=10)

    told = [float(dict(request.params)["seconds"]) for request in talk.requests]
    assert told[0] == 10
    assert 8.5 < told[1] < 9

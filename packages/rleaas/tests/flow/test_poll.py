from collections.abc import Callable

import pytest
from rlcore import (
    AuthenticationError,
    ConfigurationError,
    Deadline,
    PlatformTimeout,
    PlatformUnreachable,
    RLEaaSError,
    ServerFailure,
)
from rleaas._flow.decode import read
from rleaas._flow.poll import Wait, wait
from rleaas._flow.request import get
from rleaas._flow.retry import OUTAGE_TOLERATED, ask
from rleaas._flow.wire import Flow, Reply
from rleaas.models import TrainingJob
from rleaas.testing import Clock, Conversation, Offline, converse, reply

DOWN = PlatformUnreachable("reset by peer")


def state(status: str, **facts: object) -> Reply:
    return reply({"job_id": "j", "status": status, **facts})


def play(
    script: list[Reply | RLEaaSError],
    *,
    timeout: float | None = 60.0,
    interval: float | None = 2.0,
    seen: Callable[[TrainingJob], object] | None = None,
    progress: bool | None = None,
    clock: Clock | None = None,
) -> Conversation[TrainingJob]:
    clock = Clock() if clock is None else clock
    # One attempt per look: how `ask` repeats is tested with `ask`.
    context = Offline(clock=clock, attempts=1).context

    def look(deadline: Deadline) -> Flow[TrainingJob]:
        request = get("/training/j")
        return read(TrainingJob, request, (yield from ask(request, context, deadline)))

    goal = Wait(
        what="training job 'j'",
        look=look,
        finished=lambda job: job.finished,
        status=lambda job: job.status,
        describe=lambda job: f"{job.status} {job.progress} %",
        timeout=timeout,
        interval=interval,
        seen=seen,
        progress=progress,
    )
    return converse(wait(goal, context), script, clock)


def test_a_finished_job_is_seen_at_once() -> None:
    talk = play([state("completed")])

    assert talk.result.status == "completed"
    assert talk.pauses == []


# defect: F-11
def test_a_status_in_capitals_counts() -> None:
    assert play([state("COMPLETED")]).result.status == "completed"


# defect: F-10
def test_a_wait_of_no_time_still_asks_once() -> None:
    assert play([state("completed")], timeout=0).result.finished

    with pytest.raises(PlatformTimeout, match="'running' after 0 s") as caught:
        play([state("running")], timeout=0)
    assert caught.value.last_status == "running"


# defect: F-10
def test_the_last_pause_ends_at_the_deadline_and_is_followed_by_a_last_look() -> None:
    clock = Clock()

    with pytest.raises(PlatformTimeout, match="training job 'j' is still 'running' after 5 s"):
        play([state("running")] * 4, timeout=5, clock=clock)

    assert clock.now == 5


def test_a_job_that_finishes_by_the_deadline_counts() -> None:
    talk = play([state("running"), state("completed")], timeout=1)

    assert talk.pauses == [1]


# defect: F-2
def test_a_refusal_ends_the_wait_at_once() -> None:
    with pytest.raises(AuthenticationError, match="revoked"):
        play([state("running"), reply({"detail": "key revoked"}, 401)])


def test_a_short_outage_is_survived() -> None:
    talk = play([state("running"), DOWN, reply({}, 503), state("completed")])

    assert talk.result.status == "completed"
    assert talk.pauses == [2, 2, 2]


def test_a_long_outage_is_not() -> None:
    clock = Clock()
    looks = int(OUTAGE_TOLERATED / 10)

    with pytest.raises(PlatformUnreachable):
        play([state("running"), *[DOWN] * (looks + 1)], timeout=None, interval=10, clock=clock)

    assert clock.now == 10 + OUTAGE_TOLERATED


def test_outages_do_not_add_up_when_answers_come_between() -> None:
    script: list[Reply | RLEaaSError] = [state("running"), DOWN] * 12

    assert play([*script, state("completed")], timeout=None, interval=10).result.finished


def test_a_platform_that_never_answered_is_no_reason_to_wait() -> None:
    with pytest.raises(PlatformUnreachable):
        play([DOWN])


def test_an_outage_at_the_deadline_is_a_timeout_with_its_cause() -> None:
    with pytest.raises(PlatformTimeout) as caught:
        play([state("running"), reply({}, 503)], timeout=1)

    assert isinstance(caught.value.__cause__, ServerFailure)


# defect: F-12
def test_what_a_callback_raises_ends_the_wait() -> None:
    def stop(job: TrainingJob) -> None:
        raise RuntimeError(f"seen {job.progress}")

    with pytest.raises(RuntimeError, match="seen 30"):
        play([state("running", progress=30)], seen=stop)


def test_progress_is_told_at_every_look() -> None:
    seen: list[int] = []

    talk = play(
        [state("running", progress=30), state("completed", progress=100)],
        seen=lambda job: seen.append(job.progress),
    )

    assert seen == [30, 100]
    assert talk.shown == ["training job 'j': running 30 %", "training job 'j': completed 100 %"]


def test_progress_can_be_switched_off() -> None:
    assert play([state("completed")], progress=False).shown == []


def test_looks_begin_quickly_and_slow_down() -> None:
    talk = play([*[state("running")] * 150, state("completed")], timeout=None, interval=None)

    assert talk.pauses[:20] == [0.25] * 20
    assert talk.pauses == sorted(talk.pauses)
    assert talk.pauses[40] == pytest.approx(0.05 * sum(talk.pauses[:40]))
    assert talk.pauses[-1] == 10


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf")])
def test_a_timeout_that_is_none_is_refused(timeout: float) -> None:
    with pytest.raises(ConfigurationError, match="timeout"):
        play([], timeout=timeout)


@pytest.mark.parametrize("interval", [0, -1, float("nan")])
def test_an_interval_that_is_none_is_refused(interval: float) -> None:
    with pytest.raises(ConfigurationError, match="poll_interval"):
        play([], interval=interval)

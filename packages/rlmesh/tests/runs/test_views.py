import threading
from collections.abc import Callable

import pytest
from rlmesh.runs.views import ViewControl


@pytest.fixture
def waiting() -> Callable[[ViewControl], threading.Thread]:
    """Start a thread that waits as a run does, and return it once it stands still."""

    def start(control: ViewControl) -> threading.Thread:
        thread = threading.Thread(target=control.wait, daemon=True)
        thread.start()
        return thread

    return start


class Standing:
    """A control whose waiting is seen."""

    def __init__(self) -> None:
        self.times = 0
        self.seen = threading.Semaphore(0)
        self.control = ViewControl(standing=self._stand)

    def _stand(self) -> None:
        self.times += 1
        self.seen.release()


def test_nothing_is_asked_at_first_and_waiting_costs_no_time() -> None:
    control = ViewControl()
    assert not control.asked
    assert not control.quit_requested
    assert not control.take_skip()
    assert control.wait() == 0.0


def test_a_skip_is_taken_once() -> None:
    control = ViewControl()
    control.skip()
    assert control.asked
    assert control.take_skip()
    assert not control.take_skip()
    assert not control.asked


def test_a_skip_concerns_one_lane_or_all_that_there_are() -> None:
    control = ViewControl()
    control.watch(3)
    control.skip(1)
    assert [control.take_skip(lane) for lane in range(3)] == [False, True, False]
    control.skip()
    assert [control.take_skip(lane) for lane in range(3)] == [True, True, True]
    control.skip(7)
    assert not control.asked


def test_a_run_stands_still_until_it_is_resumed(
    waiting: Callable[[ViewControl], threading.Thread],
) -> None:
    standing = Standing()
    standing.control.pause()
    assert standing.control.paused
    run = waiting(standing.control)
    assert standing.seen.acquire(timeout=5)
    assert run.is_alive()
    standing.control.resume()
    run.join(5)
    assert not run.is_alive()
    assert not standing.control.asked


def test_a_single_step_lets_one_through_and_the_next_one_wait(
    waiting: Callable[[ViewControl], threading.Thread],
) -> None:
    standing = Standing()
    standing.control.pause()
    standing.control.step()
    assert standing.control.wait() >= 0.0
    assert standing.seen.acquire(timeout=5)
    run = waiting(standing.control)
    assert standing.seen.acquire(timeout=5)
    assert run.is_alive()
    standing.control.step()
    run.join(5)
    assert not run.is_alive()
    assert standing.control.paused


def test_a_step_that_is_asked_of_a_running_run_stops_it_after_one() -> None:
    control = ViewControl()
    control.step()
    assert control.paused
    assert control.wait() >= 0.0


@pytest.mark.parametrize("ask", [ViewControl.quit, ViewControl.skip])
def test_the_end_of_run_or_episode_wakes_a_run_that_stands_still(
    ask: Callable[[ViewControl], None], waiting: Callable[[ViewControl], threading.Thread]
) -> None:
    standing = Standing()
    standing.control.pause()
    run = waiting(standing.control)
    assert standing.seen.acquire(timeout=5)
    ask(standing.control)
    run.join(5)
    assert not run.is_alive()
    assert standing.control.asked


def test_a_skip_that_nobody_takes_does_not_let_the_run_go_on(
    waiting: Callable[[ViewControl], threading.Thread],
) -> None:
    standing = Standing()
    standing.control.watch(2)
    standing.control.skip()
    assert standing.control.take_skip(0)  # lane 1 plays no more
    standing.control.pause()
    run = waiting(standing.control)
    assert standing.seen.acquire(timeout=5)
    run.join(0.1)
    assert run.is_alive()
    standing.control.resume()
    run.join(5)


def test_who_asks_for_another_look_is_shown_one_while_the_run_stands_still(
    waiting: Callable[[ViewControl], threading.Thread],
) -> None:
    standing = Standing()
    standing.control.pause()
    run = waiting(standing.control)
    assert standing.seen.acquire(timeout=5)
    standing.control.look()
    assert standing.seen.acquire(timeout=5)
    assert run.is_alive()
    assert standing.times == 2
    standing.control.quit()
    run.join(5)
    assert not run.is_alive()

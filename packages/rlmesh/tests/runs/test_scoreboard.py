"""Which episodes are played, and when it is enough."""

import threading
from collections.abc import Sequence

import pytest
from rlmesh.runs.budget import Plan
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.results import EpisodeResult
from rlmesh.runs.scoreboard import Scoreboard
from rlmesh.runs.signals import CannotGoOn, Enough


def plans(count: int) -> list[Plan]:
    return [Plan(index, index, index) for index in range(count)]


def ended(index: int, outcome: Outcome = Outcome.COMPLETED) -> EpisodeResult:
    return EpisodeResult(index, index, 1, 1.0, True, False, outcome=outcome)


def indices(board: Scoreboard) -> list[int]:
    return [result.index for result in board.results()]


def test_episodes_are_handed_out_in_order_without_those_that_are_finished() -> None:
    board = Scoreboard(plans(4), {1: ended(1)})

    taken = [board.take(wait=False) for _ in range(4)]

    assert [plan.index if plan else None for plan in taken] == [0, 2, 3, None]
    assert indices(board) == [1]
    assert not board.is_done


def test_an_episode_that_is_given_back_is_the_next() -> None:
    board = Scoreboard(plans(3), {})
    first = board.take()
    assert first is not None
    board.give_back(first)

    assert board.take() == first


def test_who_waits_gets_what_another_gives_back() -> None:
    board = Scoreboard(plans(1), {})
    only = board.take()
    assert only is not None
    got: list[Plan | None] = []
    waiting = threading.Thread(target=lambda: got.append(board.take()))
    waiting.start()

    board.give_back(only)
    waiting.join(10)

    assert got == [only]


@pytest.mark.parametrize("end", ["record", "halt"])
def test_who_waits_goes_when_nothing_will_come(end: str) -> None:
    board = Scoreboard(plans(1), {})
    board.take()
    got: list[Plan | None] = []
    waiting = threading.Thread(target=lambda: got.append(board.take()))
    waiting.start()

    if end == "halt":
        board.halt()
    else:
        board.record(ended(0), None)
        board.judge()
    waiting.join(10)

    assert got == [None]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]])
def test_a_rule_sees_results_in_order_and_ends_the_run_there(order: list[int]) -> None:
    seen: list[list[int]] = []

    def two(results: Sequence[EpisodeResult]) -> bool:
        seen.append([result.index for result in results])
        return len(results) == 2

    board = Scoreboard(plans(6), {}, enough=two)
    for index in order:
        board.take()
        board.record(ended(index), None)
        board.judge()

    assert seen == [[0], [0, 1]]
    assert isinstance(board.verdict, Enough)
    assert board.halted
    assert board.take() is None
    assert indices(board) == [0, 1]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]])
def test_failures_are_counted_in_order_and_the_last_is_the_cause(order: list[int]) -> None:
    errors = {index: OSError(str(index)) for index in range(4)}
    board = Scoreboard(plans(6), {}, max_failures=1)

    for index in order:
        board.take()
        board.record(ended(index, Outcome.ENV_ERROR), errors[index])
        board.judge()

    assert isinstance(board.verdict, CannotGoOn)
    assert board.verdict.cause is errors[1]
    assert indices(board) == [0, 1]


def test_no_rule_is_asked_after_the_last_episode() -> None:
    board = Scoreboard(plans(1), {}, enough=lambda results: True)
    board.take()
    board.record(ended(0), None)
    board.judge()

    assert board.verdict is None
    assert board.is_done


def test_what_is_finished_already_may_be_enough() -> None:
    board = Scoreboard(plans(3), {0: ended(0)}, enough=lambda results: True)

    assert isinstance(board.verdict, Enough)
    assert board.take() is None

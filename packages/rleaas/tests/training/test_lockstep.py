"""Crews that take turns go the way that is quicker on this machine, as the clock says."""

from __future__ import annotations

from rleaas.training.lockstep import KEPT, TRIED, Turns

SESSIONS = 8


class Machine:
    """A clock, and what a step takes each way."""

    def __init__(self, *, together: float, at_once: float) -> None:
        self.now = 0.0
        self.cost = {False: together, True: at_once}

    def __call__(self) -> float:
        return self.now

    def play(self, turns: Turns, count: int) -> list[bool]:
        """The way of each of so many turns."""
        ways: list[bool] = []
        for _ in range(count):
            way = turns.at_once(SESSIONS)
            self.now += self.cost[way] * SESSIONS
            ways.append(way)
        return ways


def test_both_ways_are_tried_and_the_quicker_one_is_kept() -> None:
    for at_once, quicker in ((0.5, True), (2.0, False)):
        machine = Machine(together=1.0, at_once=at_once)
        ways = machine.play(Turns(machine), 2 * TRIED + KEPT)
        assert ways == [False] * TRIED + [True] * TRIED + [quicker] * KEPT


def test_when_others_want_the_cores_the_other_way_is_found() -> None:
    machine = Machine(together=1.0, at_once=0.5)
    turns = Turns(machine)
    machine.play(turns, 2 * TRIED + KEPT)
    machine.cost[True] = 3.0
    assert machine.play(turns, 2 * TRIED + KEPT)[-1] is False


def test_what_is_done_between_turns_is_not_counted() -> None:
    machine = Machine(together=1.0, at_once=0.5)
    turns = Turns(machine)
    machine.play(turns, TRIED + TRIED // 2)
    machine.now += 1000.0  # an update of the policy
    turns.pause()
    ways = machine.play(turns, TRIED + KEPT)
    assert ways == [True] * (TRIED + KEPT)

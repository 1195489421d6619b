import threading

import numpy as np
import pytest
from rlmesh.runs.frames import FrameSource
from rlmesh.runs.views import ViewControl
from rlmesh.viewer.hud import Hud
from rlmesh.viewer.screen import Screen

PICTURE = np.zeros((4, 6, 3), np.uint8)


def source(label: str, lane: int | None = None) -> FrameSource:
    return FrameSource(label, "render", capture=lambda: None, lane=lane)


@pytest.fixture
def screen() -> Screen:
    made = Screen(ViewControl(), Hud(), None)
    assert made.offer("World", (source("render"), source("left", 0), source("right", 1)))
    return made


def test_the_first_source_is_shown_first(screen: Screen) -> None:
    assert (screen.labels, screen.selected) == (("render", "left", "right"), 0)


def test_the_source_that_was_asked_for_is_shown_first() -> None:
    screen = Screen(ViewControl(), Hud(), "right")
    assert screen.offer("World", (source("left"), source("right")))
    assert screen.selected == 1


def test_a_source_that_is_not_there_is_told_and_the_first_one_shown() -> None:
    screen = Screen(ViewControl(), Hud(), "top")
    assert not screen.offer("World", (source("left"), source("right")))
    assert screen.selected == 0


def test_sources_are_turned_around(screen: Screen) -> None:
    seen: list[int] = []
    for by in (1, 1, 1, -1):
        screen.turn(by)
        seen.append(screen.selected)
    assert seen == [1, 2, 0, 2]


def test_only_a_source_that_is_there_can_be_selected(screen: Screen) -> None:
    assert screen.select(2)
    assert not screen.select(3)
    assert not screen.select(-1)
    assert screen.selected == 2


def test_skipping_concerns_the_lane_that_is_shown(screen: Screen) -> None:
    screen.control.watch(2)
    screen.select(2)
    screen.skip()
    assert [screen.control.take_skip(lane) for lane in (0, 1)] == [False, True]
    screen.select(0)
    screen.skip()
    assert [screen.control.take_skip(lane) for lane in (0, 1)] == [True, True]


def test_pictures_are_numbered(screen: Screen) -> None:
    assert screen.look() == (0, None)
    screen.put(PICTURE)
    screen.put(PICTURE)
    number, picture = screen.look()
    assert (number, picture is PICTURE) == (2, True)
    assert screen.hud.size == (6, 4)


def test_who_waits_for_a_picture_is_woken_by_it(screen: Screen) -> None:
    seen: list[int] = []
    waiting = threading.Thread(target=lambda: seen.append(screen.await_change(0, 10)))
    waiting.start()
    screen.put(PICTURE)
    waiting.join(5)
    assert seen == [1]
    assert screen.await_change(1, 0.0) == 1


def test_closing_wakes_everybody(screen: Screen) -> None:
    threads = [
        threading.Thread(target=screen.await_change, args=(0, 30)),
        threading.Thread(target=screen.await_end, args=(30,)),
    ]
    for thread in threads:
        thread.start()
    screen.close()
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()


def test_interest_wanes_after_two_seconds(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    def watched_at(now: float) -> bool:
        monkeypatch.setattr("rlmesh.viewer.screen.monotonic", lambda: now)
        return screen.watched

    assert not watched_at(100.0)
    screen.look()
    assert [watched_at(101.9), watched_at(102.1)] == [True, False]

"""The page in a real browser, during real runs."""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import rlmesh
import rlmesh.numpy
from rlmesh import RunResult, View
from rlmesh.runs.hooks import RunHooks, StepEvent

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from packages.rlmesh.tests.viewer.conftest import Painter

DARK_GREY = "rgb(13, 17, 23)"


class Pace(RunHooks):
    """Lets a run take a hundred steps a second, so that somebody can look at it."""

    def on_step(self, event: StepEvent) -> None:
        time.sleep(0.01)


class Running:
    """A run on a thread of its own, with a page."""

    def __init__(self, env: object, episodes: int, **changes: Any) -> None:
        self.view = View("http", port=0, **changes)
        self.result: RunResult | None = None
        self._model = rlmesh.numpy.Model(lambda observation: 1)
        self._env, self._episodes = env, episodes
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.result = rlmesh.run(
            self._model, self._env, episodes=self._episodes, view=self.view, hooks=Pace()
        )

    def address(self) -> str:
        end = time.monotonic() + 30
        while self.view.address is None:
            assert time.monotonic() < end, "the page was not opened"
            time.sleep(0.01)
        return self.view.address

    def end(self) -> RunResult:
        self._thread.join(40)
        assert self.result is not None
        return self.result


@pytest.fixture
def running(painter: type[Painter]) -> Iterator[Callable[..., Running]]:
    made: list[Running] = []

    def start(env: object = None, episodes: int = 200, **changes: Any) -> Running:
        target = painter(length=400) if env is None else env
        made.append(Running(target, episodes, **changes))
        return made[-1]

    yield start
    for one in made:
        if one.result is None and one.view.address is not None:
            asked = urllib.request.Request(one.view.address + "quit", method="POST")
            urllib.request.urlopen(asked).close()
        one.end()


def shown_colour(page: Page) -> list[int]:
    """The first pixel of the picture."""
    found: list[int] = page.evaluate(
        """() => {
            const image = document.getElementById("frame");
            const canvas = new OffscreenCanvas(1, 1), context = canvas.getContext("2d");
            context.drawImage(image, 0, 0);
            return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
        }"""
    )
    return found


def number(page: Page, name: str) -> int:
    return int(page.inner_text(f"#{name}").split()[0])


def told(name: str, condition: str) -> str:
    return f"document.getElementById('{name}').textContent {condition}"


def wait_for(page: Page, condition: str) -> None:
    """Wait until a condition holds; the page's policy lets nobody else evaluate anything in it."""
    end = time.monotonic() + 30
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(20)


def test_a_run_is_watched_and_driven(
    browser_page: Page, running: Callable[..., Running], tmp_path: Path
) -> None:
    run = running(format="png")
    browser_page.goto(run.address())
    wait_for(browser_page, "document.getElementById('frame').dataset.number > 5")
    assert browser_page.inner_text("#title") == "UnknownEnv-v1"
    assert browser_page.inner_text("#status") == "live"
    first = number(browser_page, "step_no")
    wait_for(browser_page, f"Number(document.getElementById('step_no').textContent) > {first + 20}")
    colours: set[tuple[int, ...]] = set()
    for _ in range(200):  # on a busy machine the picture changes rarely
        colours.add(tuple(shown_colour(browser_page)))
        if len(colours) > 1:
            break
        browser_page.wait_for_timeout(50)
    assert len(colours) > 1
    assert all(colour[1:] == (0, 0) for colour in colours)
    assert browser_page.inner_text("#episode") == "1 of 200"
    assert browser_page.inner_text("#seed") == "0"

    # Pause: the picture is that of the step that is told.
    browser_page.keyboard.press(" ")
    wait_for(browser_page, told("status", "=== 'paused'"))
    browser_page.click("#step")
    wait_for(browser_page, told("fps", "=== '0'"))
    before = number(browser_page, "step_no")
    assert shown_colour(browser_page)[0] == before % 256
    browser_page.click("#step")
    wait_for(browser_page, told("step_no", f"=== '{before + 1}'"))
    wait_for(browser_page, told("reward", f"=== '{before + 1}'"))

    # Another source, also while the run stands still.
    browser_page.select_option("#source", label="camera")
    wait_for(browser_page, "document.getElementById('frame').naturalWidth === 32")
    assert shown_colour(browser_page) == [0, (before + 1) % 256, 0]
    browser_page.keyboard.press("1")
    wait_for(browser_page, "document.getElementById('frame').naturalWidth === 64")
    browser_page.click("#pause")
    wait_for(browser_page, told("status", "=== 'live'"))

    # Skip: the episode is in the table, and the next one is played.
    browser_page.keyboard.press("n")
    wait_for(browser_page, "document.querySelectorAll('tbody tr').length === 1")
    assert "timeout" in browser_page.inner_text("tbody tr")
    wait_for(browser_page, told("episode", "=== '2 of 200'"))
    wait_for(browser_page, "document.querySelectorAll('.curve polyline')[2].getAttribute('points')")
    browser_page.screenshot(path=tmp_path / "page.png")

    # End: asked twice, the run returns what it has, and the page says so.
    browser_page.click("#quit")
    assert browser_page.inner_text("#quit").startswith("Really end?")
    browser_page.click("#quit")
    wait_for(browser_page, told("status", "=== 'the run has ended'"))
    assert browser_page.is_disabled("#skip")
    result = run.end()
    assert result.stopped is not None
    assert result.episodes[0].truncated
    assert 1 <= len(result.episodes) < 200


def test_a_run_that_ends_by_itself_says_so_and_lists_its_episodes(
    browser_page: Page, running: Callable[..., Running], painter: type[Painter]
) -> None:
    run = running(painter(length=60), episodes=3)
    browser_page.goto(run.address())
    wait_for(browser_page, told("status", "=== 'the run has ended'"))
    rows = browser_page.locator("tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == ["3", "2", "1"]
    assert all("success" in row for row in rows)
    assert browser_page.inner_text("#success") == "100 %"
    assert [episode.outcome.value for episode in run.end().episodes] == ["success"] * 3


def test_the_page_fits_into_any_window(browser_page: Page, running: Callable[..., Running]) -> None:
    run = running()
    browser_page.goto(run.address())
    wait_for(browser_page, "document.getElementById('frame').dataset.number > 1")
    for width, height in ((390, 844), (320, 568), (1600, 1000)):
        browser_page.set_viewport_size({"width": width, "height": height})
        assert browser_page.evaluate("document.documentElement.scrollWidth") <= width
        for name in ("pause", "step", "skip", "quit"):
            box = browser_page.locator(f"#{name}").bounding_box()
            assert box is not None
            assert box["height"] >= 36
            assert box["x"] + box["width"] <= width


def test_the_page_can_be_used_without_eyes_or_mouse(
    browser_page: Page, running: Callable[..., Running]
) -> None:
    run = running()
    browser_page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    browser_page.goto(run.address())
    wait_for(browser_page, "document.getElementById('frame').dataset.number > 1")
    assert browser_page.get_by_role("status").inner_text() == "live"
    assert browser_page.get_by_role("img", name="What the run shows now").count() == 1
    assert browser_page.get_by_role("img", name="Return of this episode").count() == 1
    assert browser_page.get_by_role("combobox", name="Source").is_enabled()
    names = ["Pause", "Step", "Skip episode", "End run"]
    for name in names:
        browser_page.keyboard.press("Tab")
        focused = browser_page.evaluate("document.activeElement.textContent")
        assert focused.startswith(name)
    browser_page.get_by_role("button", name="Pause").focus()
    browser_page.keyboard.press(" ")
    wait_for(browser_page, told("status", "=== 'paused'"))
    assert browser_page.get_by_role("button", name="Resume").get_attribute("aria-pressed") == "true"
    background = browser_page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == DARK_GREY


def test_several_pages_are_served_at_once(
    browser_page: Page, running: Callable[..., Running]
) -> None:
    run = running()
    browser_page.goto(run.address())
    second = browser_page.context.new_page()
    second.goto(run.address())
    for page in (browser_page, second):
        wait_for(page, "document.getElementById('frame').dataset.number > 2")
    second.click("#pause")
    wait_for(browser_page, told("status", "=== 'paused'"))


def test_another_page_of_the_browser_can_not_end_the_run(
    browser_page: Page, running: Callable[..., Running]
) -> None:
    run = running()
    address = run.address()
    hostile = browser_page.context.new_page()
    hostile.goto("data:text/html,<h1>hostile</h1>")
    hostile.evaluate(
        """async (address) => {
            const quiet = (asked) => asked.catch(() => {});
            await quiet(fetch(address + "quit", { method: "POST", mode: "no-cors" }));
            await quiet(fetch(address + "skip", { mode: "no-cors" }));
            await new Promise((done) => {
                const image = new Image();
                image.onload = image.onerror = done;
                image.src = address + "skip";
            });
        }""",
        address,
    )
    browser_page.goto(address)
    wait_for(browser_page, "document.getElementById('frame').dataset.number > 2")
    assert browser_page.inner_text("#episode") == "1 of 200"
    assert browser_page.inner_text("#status") == "live"

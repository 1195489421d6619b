"""The report: one page that says what there is, safe against labels, working in a browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rlcore import ConfigurationError
from rlmesh.cli.main import main
from rlmesh.recorder import Recorder, html_report, load, write_report
from rlmesh.recorder.charts import ticks, window_of
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.results import EpisodeResult, RunResult

if TYPE_CHECKING:
    from playwright.sync_api import Page

Played = Callable[..., RunResult]
HOSTILE = '"><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'


def scores(*rewards: float, failed: int = 0) -> RunResult:
    played = [
        EpisodeResult(index, 100 + index, 10, reward, True, False, success=reward > 2)
        for index, reward in enumerate(rewards)
    ]
    lost = [
        EpisodeResult(
            len(rewards) + at, 200 + at, 1, None, False, False,
            outcome=Outcome.ENV_ERROR, error=f"EnvironmentException: {HOSTILE}",
        )
        for at in range(failed)
    ]  # fmt: skip
    return RunResult(episodes=(*played, *lost), asked=len(rewards) + failed)


@pytest.fixture
def reported(play: Played, walk: Any, tmp_path: Path) -> Path:
    """The report of a filmed walk, and of made-up scores under hostile labels."""
    with Recorder(result_set_id="fixed") as recorder:
        hooks = recorder.capture(model="walker", env="Walk", hud=True)
        play(walk(length=12, size=(120, 160)), hooks, seeds=[1, 2])
        result = scores(1.0, 2.0, 3.0, 4.0, 10.0, failed=2)
        recorder.add(result, model=HOSTILE, env="Made up", config={"note": HOSTILE})
        recorder.export(tmp_path / "bundle")
    return write_report(tmp_path / "bundle", tmp_path / "report.html")


def test_it_needs_nothing_but_itself(reported: Path) -> None:
    page = reported.read_text()

    assert not re.findall(r"https?://", page)
    assert page.count("data:video/mp4;base64,") == 2


def test_labels_are_text_wherever_they_stand(reported: Path) -> None:
    page = reported.read_text()

    assert "<script>window.hacked" not in page
    assert "<img" not in page
    assert page.count("&lt;script&gt;window.hacked = 1&lt;/script&gt;") >= 5


def test_coverage_comes_before_averages(reported: Path) -> None:
    page = reported.read_text()

    assert "7 of 9" in page
    assert "2 failed without a score" in page
    assert page.index("7 of 9") < page.index("Mean return")


def test_averages_are_those_of_the_result_with_their_intervals(tmp_path: Path) -> None:
    recorder = Recorder()
    result = scores(1.0, 2.0, 3.0, 4.0, 10.0)
    recorder.add(result, model="m", env="e")

    page = html_report(recorder.result_set())

    interval, rate = result.mean_reward_interval, result.success_interval
    assert interval is not None
    assert rate is not None
    assert f"4  [{interval.low:.4g}, {interval.high:.4g}]" in page
    assert f"60.0%  [{rate.low:.0%}, {rate.high:.0%}]  n = 5" in page


def test_videos_beyond_the_limit_are_links_to_the_bundle(reported: Path, tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    page = write_report(tmp_path / "bundle", tmp_path / "pages" / "r.html", embed=0)

    links = re.findall(r'<video[^>]* src="([^"]+)"', page.read_text())
    assert [(page.parent / link).resolve().exists() for link in links] == [True, True]
    assert "data:video" not in page.read_text()


def test_videos_of_a_zip_that_do_not_fit_are_named(play: Played, walk: Any, tmp_path: Path) -> None:
    with Recorder() as recorder:
        play(walk(), recorder.capture(model="m", env="e"), seeds=[1])
        path = recorder.export(tmp_path / "b.zip")

    page = write_report(path, tmp_path / "r.html", embed=0).read_text()

    assert "<video" not in page
    assert "in the bundle: <code>media/w000-m/e/ep00000/render.mp4</code>" in page


def test_a_bundle_can_hold_its_own_report(play: Played, walk: Any, tmp_path: Path) -> None:
    with Recorder() as recorder:
        play(walk(), recorder.capture(model="m", env="e"), seeds=[1])
        path = recorder.export(tmp_path / "b", report=True)

    assert load(path).verified
    page = (path / "report.html").read_text()
    assert re.findall(r'<video[^>]* src="([^"]+)"', page) == ["media/w000-m/e/ep00000/render.mp4"]
    assert "files verified" in page


@pytest.mark.parametrize(
    "result", [RunResult(), scores(), scores(1.0), scores(failed=3), scores(*[2.0] * 30)]
)
def test_any_number_of_episodes_makes_a_page(result: RunResult) -> None:
    recorder = Recorder()
    recorder.add(result, model="m", env="e")

    page = html_report(recorder.result_set(), title="T & T")

    assert "<title>T &amp; T</title>" in page
    assert page.rstrip().endswith("</html>")
    assert not re.search(r"\bnan\b", page.partition("<script>")[0])


def test_marks_of_an_axis_are_round_and_cover_the_range() -> None:
    assert ticks(0, 10) == [0, 2.5, 5, 7.5, 10]
    assert ticks(3, 3) == [2.5, 2.75, 3, 3.25, 3.5]
    assert ticks(-1.2, 7.9)[0] <= -1.2
    assert ticks(-1.2, 7.9)[-1] >= 7.9
    assert [window_of(count) for count in (1, 19, 50, 5000)] == [1, 1, 5, 100]


def test_the_command_writes_the_report_of_one_bundle_or_several(
    play: Played, walk: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        with Recorder() as recorder:
            play(walk(), recorder.capture(model=name, env="e", cameras=[]), seeds=[1])
            recorder.export(tmp_path / name)

    assert main(["report", str(tmp_path / "one")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'one.html'}\n"
    target = tmp_path / "both.html"
    both = [str(tmp_path / "one"), str(tmp_path / "two")]
    assert main(["report", *both, "--output", str(target), "--title", "Both"]) == 0
    assert "one on e" in target.read_text()
    assert "two on e" in target.read_text()
    assert main(["report", str(tmp_path / "none")]) == 1
    assert main(["report", both[0], "--output", str(tmp_path / "no" / "x.html")]) == 1


def test_a_report_has_the_whole_name_of_its_bundle(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = bundle.rename(bundle.with_name("run.v1"))

    assert main(["report", str(path)]) == 0
    assert capsys.readouterr().out == f"{path.with_name('run.v1.html')}\n"


def test_a_report_is_not_written_over_its_bundle(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = Recorder().export(tmp_path / "b.zip")

    assert main(["report", str(packed), "--output", str(packed)]) == 1
    assert "is the bundle itself" in capsys.readouterr().err
    assert load(packed).workloads == []


@pytest.mark.slow
def test_in_a_browser_it_sorts_filters_and_plays(reported: Path, browser_page: Page) -> None:
    page = browser_page
    page.goto(reported.as_uri())
    rows = page.locator("#episodes tbody tr:not([hidden])")

    def returns() -> list[str]:
        return [row.locator("td").nth(4).inner_text() for row in rows.all()]

    assert rows.count() == 9
    assert page.locator("#shown").inner_text() == "9 episodes"
    page.select_option("#workload", "1")
    assert returns() == ["1", "2", "3", "4", "10", "", ""]
    button = page.get_by_role("button", name="Return")
    button.click()
    assert returns() == ["1", "2", "3", "4", "10", "", ""]
    button.click()
    assert returns() == ["10", "4", "3", "2", "1", "", ""]
    assert page.locator('th[aria-sort="descending"]').inner_text() == "Return"
    page.select_option("#outcome", "env_error")
    assert rows.count() == 2
    assert page.locator("#shown").inner_text() == "2 of 9 episodes"
    assert page.locator(".videos article:not([hidden])").count() == 0
    page.select_option("#outcome", "")
    page.select_option("#workload", "")
    page.fill("#filter", "walker 2")
    assert [row.get_attribute("id") for row in rows.all()] == ["e0-1"]

    page.fill("#filter", "")
    video = page.locator("video").first
    video.scroll_into_view_if_needed()
    played = video.evaluate(
        """async (video) => {
            await video.play();
            await new Promise((ended) => video.addEventListener("ended", ended, {once: true}));
            return [video.readyState, video.duration, video.videoWidth, video.videoHeight];
        }"""
    )
    assert played[0] >= 2
    assert played[1] == pytest.approx(12 / 30, abs=0.01)
    assert played[2:] == [160, 120]

    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    assert page.evaluate("window.hacked") is None


def test_an_output_that_is_no_number_of_megabytes_is_refused(bundle: Path) -> None:
    with pytest.raises((SystemExit, ConfigurationError)):
        main(["report", str(bundle), "--embed", "many"])

import importlib
import json
import sys
from datetime import UTC, datetime, timedelta, timezone
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rlcore import ConfigurationError, EnvironmentIdentity, MissingDependencyError
from rlmesh.runs.journal import Header, Journal
from rlmesh.runs.notebook import MOST_EPISODES, result_html
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.provenance import machine, seeds_text
from rlmesh.runs.results import EpisodeResult, RunResult
from rlmesh.runs.telemetry import Telemetry

stats: Any = importlib.import_module("scipy.stats")  # Any: scipy ships no types
CARTPOLE = EnvironmentIdentity("CartPole-v1", 3, "sha256:12ab")


def episode(
    index: int = 0, reward: float | None = 1.0, **facts: Any
) -> EpisodeResult:  # Any: the fields' own types
    values: dict[str, Any] = {"seed": index + 10, "steps": 5 + index, "truncated": False, **facts}
    return EpisodeResult(index=index, reward=reward, terminated=True, **values)


def run_of(*episodes: EpisodeResult, **facts: Any) -> RunResult:  # Any: the fields' own types
    values: dict[str, Any] = {"environment": CARTPOLE, "model": "PPO", **facts}
    return RunResult(tuple(episodes), **values)


LOST: dict[str, Any] = {"outcome": Outcome.ENV_ERROR, "error": "ValueError: broken"}


def test_a_summary_counts_scores_and_failures_apart_and_says_how_sure_it_is() -> None:
    rewards = np.random.default_rng(0).exponential(10.0, 40)
    scored = [episode(i, float(r), success=r > 5) for i, r in enumerate(rewards)]

    found = run_of(*scored, episode(40, **LOST), asked=50).summary()

    assert found.coverage == (50, 40, 1)
    assert not found.coverage.complete
    assert found.reward is not None
    assert found.reward.mean == pytest.approx(rewards.mean())
    assert found.reward.std == pytest.approx(rewards.std(ddof=1))
    assert found.reward.iqm == pytest.approx(stats.trim_mean(rewards, 0.25))
    assert [found.reward.p5, found.reward.median, found.reward.p95] == pytest.approx(
        np.quantile(rewards, (0.05, 0.5, 0.95))
    )
    assert (found.reward.minimum, found.reward.maximum) == (rewards.min(), rewards.max())
    assert found.success is not None
    expected = stats.binomtest(found.success.successes, 40).proportion_ci(method="wilson")
    assert found.success.interval == pytest.approx((expected.low, expected.high))
    assert found.steps is not None
    assert found.steps.maximum == 44
    assert found.total.outcomes["env_error"] == 1


def test_less_confidence_makes_narrower_intervals() -> None:
    result = run_of(*(episode(i, float(i), success=i % 2 == 0) for i in range(30)))
    wide, narrow = result.summary(), result.summary(confidence=0.5)

    for one, two in ((wide.reward, narrow.reward), (wide.success, narrow.success)):
        assert one is not None
        assert two is not None
        assert one.interval is not None
        assert two.interval is not None
        assert one.interval.low < two.interval.low < two.interval.high < one.interval.high
    with pytest.raises(ConfigurationError, match=r"95 % is 0\.95"):
        result.summary(confidence=95)


def test_the_same_run_has_the_same_summary() -> None:
    result = run_of(*(episode(i, float(i % 7)) for i in range(30)))
    assert result.summary() == RunResult.from_json(result.to_json()).summary()


def test_nothing_has_no_mean() -> None:
    for result in (run_of(), run_of(episode(0, **LOST))):
        found = result.summary()
        assert (found.reward, found.success, found.steps) == (None, None, None)
        assert "no score" in str(found)
        json.dumps(found.to_dict(), allow_nan=False)


def test_one_episode_has_a_mean_and_no_interval() -> None:
    found = run_of(episode(0, 3.0)).summary().reward

    assert found is not None
    assert (found.mean, found.interval, found.std, found.iqm) == (3.0, None, None, 3.0)


def test_tasks_are_summed_up_apart() -> None:
    result = run_of(
        episode(0, 1.0, task="pick", success=True),
        episode(1, 3.0, task="place", success=False),
        episode(2, 5.0, task="place", success=True),
        episode(3, task="place", **LOST),
    )

    found = result.summary()

    assert list(found.tasks) == ["pick", "place"]
    place = found.tasks["place"]
    assert place.coverage == (3, 2, 1)
    assert place.reward is not None
    assert place.reward.mean == 4.0
    assert place.success is not None
    assert (place.success.successes, place.success.n) == (1, 2)
    assert "place  " in str(found)


def test_a_summary_tells_where_the_result_comes_from() -> None:
    telemetry = Telemetry()
    telemetry.series("env.step", "env", "endpoint.total").extend([1.0, 2.0])
    result = run_of(
        *(episode(i) for i in range(3)),
        telemetry=telemetry.rows(),
        package_versions={"rlmesh": "2.0.0a1"},
        machine=machine(),
        settings={"max_episode_steps": 100},
        model_digest="sha256:0123456789abcdef",
        stopped="interrupted",
        advisories=("mind the gap",),
    )

    text = str(result.summary())

    for part in (
        "CartPole-v1@3",
        "PPO (sha256:01234567…)",
        "10 to 12",
        "rlmesh 2.0.0a1",
        "interrupted",
        "mind the gap",
        "env.step  env",
    ):
        assert part in text
    assert result.summary().provenance.settings == {"max_episode_steps": 100}
    assert "env.step" in result.format_telemetry()
    assert RunResult().format_telemetry() == "no telemetry was recorded"


def test_the_machine_is_told_without_its_name() -> None:
    import platform

    facts = machine()
    assert facts["cpus"] >= 1  # type: ignore[operator] # an int
    assert platform.node() not in {str(value) for value in facts.values()}


@pytest.mark.parametrize(
    ("seeds", "text"),
    [
        ([], "none"),
        ([7], "7"),
        (range(100), "0 to 99"),
        ([3, 1, 2], "3, 1, 2"),
        ([None], "None"),
        (range(0, 40, 2), "0, 2, 4, 6, 8, 10, 12, 14 … (20 in all)"),
    ],
)
def test_seeds_are_told_in_few_words(seeds: Any, text: str) -> None:
    assert seeds_text(tuple(seeds)) == text


FLOATS = st.floats(-1e100, 1e100) | st.sampled_from([float("inf"), float("-inf")])
TEXTS = st.text(max_size=20)
# Shrinking so large a value takes minutes.
QUICK = (Phase.explicit, Phase.reuse, Phase.generate)
MOMENTS = st.datetimes(timezones=st.just(UTC) | st.just(timezone(timedelta(hours=5, minutes=30))))
EPISODES = st.builds(
    EpisodeResult,
    index=st.integers(0, 100),
    seed=st.none() | st.integers(-(2**63), 2**63 - 1),
    steps=st.integers(0, 10**6),
    reward=FLOATS,
    terminated=st.booleans(),
    truncated=st.booleans(),
    success=st.none() | st.booleans(),
    duration_s=st.floats(0, 1e6),
    predict_ms=st.none() | st.floats(0, 1e6),
    step_ms=st.none() | st.floats(0, 1e6),
    trial=st.none() | st.integers(0, 100),
    outcome=st.sampled_from(Outcome),
    error=st.none() | TEXTS,
    task=st.none() | TEXTS,
    attempts=st.integers(1, 5),
)


def rows_of(values: list[float]) -> Any:  # Any: rows of telemetry
    telemetry = Telemetry()
    telemetry.series("env.step", "env", "endpoint.total").extend(values)
    return telemetry.rows()


RESULTS = st.builds(
    RunResult,
    episodes=st.lists(EPISODES, max_size=4).map(tuple),
    telemetry=st.lists(st.floats(-1e6, 1e6), max_size=5).map(rows_of),
    advisories=st.lists(TEXTS, max_size=2).map(tuple),
    environment=st.none()
    | st.builds(EnvironmentIdentity, TEXTS, st.none() | st.integers(1, 9), TEXTS),
    model=TEXTS,
    model_digest=st.none() | TEXTS,
    asked=st.integers(0, 100),
    stopped=st.none() | TEXTS,
    started_at=st.none() | MOMENTS,
    finished_at=st.none() | MOMENTS,
    package_versions=st.dictionaries(TEXTS, TEXTS, max_size=2),
    machine=st.dictionaries(TEXTS, TEXTS | st.integers(), max_size=2),
    settings=st.dictionaries(
        TEXTS, st.none() | st.booleans() | st.integers() | FLOATS.filter(np.isfinite) | TEXTS
    ),
)


@settings(max_examples=60, deadline=None, phases=QUICK)
@given(RESULTS)
def test_every_result_survives_json(result: RunResult) -> None:
    assert RunResult.from_json(result.to_json()) == result


@settings(max_examples=30, deadline=None, phases=QUICK)
@given(RESULTS)
def test_every_result_has_a_text_a_page_and_a_table(result: RunResult) -> None:
    assert str(result)
    assert str(result.summary())
    assert result_html(result)
    assert result.to_csv().count("\n") >= 1 + result.num_episodes


def test_a_saved_result_is_loaded_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("what was there before")
    result = run_of(episode(0, 2.5), episode(1, **LOST), asked=2)

    result.save(path)

    assert RunResult.load(path) == result
    assert list(tmp_path.iterdir()) == [path]


def test_a_record_of_before_telemetry_was_kept_is_read() -> None:
    data = run_of(episode(0)).to_dict()
    for name in ("telemetry", "machine", "settings"):
        del data[name]
    (first,) = cast("list[dict[str, object]]", data["episodes"])
    del first["task"], first["attempts"]

    assert RunResult.from_dict(data) == run_of(episode(0), asked=1)


def test_what_cannot_be_written_or_read_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written: No such file"):
        run_of().save(tmp_path / "missing" / "out.json")
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        RunResult.load(tmp_path / "missing.json")
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        RunResult.load(tmp_path)


def test_a_journal_is_loaded_as_the_result_so_far(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    header = Header("PPO", None, CARTPOLE, (10, 11, 12))
    with Journal.open(path, header) as journal:
        journal.append(episode(1, 3.0))

    result = RunResult.load(path)

    assert result.episodes == (episode(1, 3.0),)
    assert result.coverage == (3, 1, 0)
    assert result.stopped == "the journal lacks 2 of its episodes"


def test_the_csv_has_a_line_for_each_episode_that_pandas_reads(tmp_path: Path) -> None:
    pandas = importlib.import_module("pandas")
    result = run_of(
        episode(0, 2.5, success=True), episode(1, outcome=Outcome.TIMEOUT, error='a,"b')
    )
    path = tmp_path / "out.csv"

    text = result.to_csv(path)

    assert path.read_text() == text
    frame = pandas.read_csv(path)
    assert frame["reward"].tolist()[0] == 2.5
    assert frame["error"].tolist()[1] == 'a,"b'
    assert frame["outcome"].tolist() == ["success", "timeout"]


def test_the_data_frame_keeps_whole_numbers_and_what_is_missing() -> None:
    result = run_of(episode(0, 2.5, success=True), episode(1, seed=None, **LOST))

    frame = result.to_dataframe()

    assert frame["seed"].tolist()[0] == 10
    assert str(frame["seed"].dtype) == "Int64"
    assert frame["reward"].isna().tolist() == [False, True]
    assert frame["success"].isna().tolist() == [False, True]
    assert frame["environment"].tolist() == [str(CARTPOLE)] * 2
    assert len(run_of().to_dataframe()) == 0
    assert frame["reward"].mean() == 2.5


def test_without_pandas_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"rlmesh\[dataframe\]"):
        run_of(episode(0)).to_dataframe()


def test_parts_of_a_run_are_merged_into_the_whole() -> None:
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    one = run_of(episode(0), episode(1), asked=3, started_at=early, telemetry=rows_of([1.0]))
    two = run_of(
        episode(0, seed=20),
        asked=1,
        finished_at=late,
        telemetry=rows_of([3.0]),
        package_versions={"rlmesh": "2"},
    )

    whole = one.merge(two)

    assert [(item.index, item.seed) for item in whole.episodes] == [(0, 10), (1, 11), (2, 20)]
    assert whole.coverage == (4, 3, 0)
    assert (whole.started_at, whole.finished_at) == (early, late)
    assert (whole.telemetry[0].count, whole.telemetry[0].avg) == (2, 2.0)
    assert whole.advisories == ("package_versions: rlmesh differs between the merged runs",)


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"model": "DQN"}, "not of one model: 'PPO' and 'DQN'"),
        ({"model_digest": "sha256:1"}, "not of one model digest"),
        ({"environment": None}, "not of one environment"),
    ],
)
def test_runs_of_different_things_are_not_merged(other: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        run_of(episode(0)).merge(run_of(episode(1), **other))


def test_the_same_episodes_twice_are_no_more_evidence() -> None:
    result = run_of(episode(0), episode(1))

    with pytest.raises(ConfigurationError, match="seed 10 is in more than one run"):
        result.merge(result)
    assert result.merge(result, repeats=True).num_episodes == 4


class Page(HTMLParser):
    """What a browser would load or run, and whether every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        names = {name for name, _ in attrs}
        if tag in {"script", "link", "img", "iframe"} or names & {"src", "href", "onclick"}:
            self.outside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_of_a_result_is_escaped_and_needs_nothing_from_outside() -> None:
    evil = "<script>alert(1)</script>"
    result = run_of(
        episode(0, error=evil, outcome=Outcome.ENV_ERROR),
        *(episode(i, float(i), task=evil) for i in range(1, 300)),
        model=evil,
        advisories=(evil,),
        environment=EnvironmentIdentity(evil, None, "sha256:12"),
        telemetry=rows_of([1.0]),
    )

    text = result_html(result)

    page = Page(text)
    assert page.open == []
    assert page.outside == []
    assert "<script" not in text
    assert f"{MOST_EPISODES} of 300 episodes" in text
    assert text.count("<circle") == 299


def test_the_repr_shows_how_many_episodes_their_mean_and_their_steps() -> None:
    result = run_of(episode(0, 1.0), episode(1, 2.0))
    assert repr(result) == "RunResult(num_episodes=2, mean_reward=1.50, total_steps=11)"
    assert repr(run_of()) == "RunResult(num_episodes=0, no score, total_steps=0)"

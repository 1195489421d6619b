from collections.abc import Callable
from typing import Any

import pytest
from rlmesh.runs.hooks import StepEvent
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.results import EpisodeResult
from rlmesh.viewer.hud import MOST_ROWS, Hud, Rate, outcome_of
from rlmesh.viewer.trace import MOST_POINTS, Trace

PUBLISHED = [
    "step",
    "reward",
    "outcome",
    "model_ms",
    "env_ms",
    "sps",
    "fps",
    "elapsed_s",
    "episode",
    "episodes",
    "seed",
    "width",
    "height",
    "chunk_pos",
    "chunk_len",
]


def test_the_published_keys_come_first_also_before_anything_happened() -> None:
    told = Hud().to_dict()
    assert list(told)[: len(PUBLISHED)] == PUBLISHED
    assert (told["seed"], told["episodes"], told["outcome"]) == (-1, 0, "")


def test_steps_are_counted(step_event: Callable[..., StepEvent]) -> None:
    hud = Hud(5)
    for step, reward in enumerate((1.0, 2.5, -0.5)):
        hud.step(step_event(step, reward=reward, episode=2, seed=11))
    told = hud.to_dict()
    assert (told["step"], told["reward"], told["step_reward"]) == (3, 3.0, -0.5)
    assert (told["episode"], told["episodes"], told["seed"]) == (2, 5, 11)
    assert (told["model_ms"], told["env_ms"]) == (2.0, 0.5)
    assert hud.curves()["return"] == {"every": 1, "points": [1.0, 3.5, 3.0]}
    assert hud.curves()["reward"] == {"every": 1, "points": [1.0, 2.5, -0.5]}


def test_the_next_episode_counts_from_zero(step_event: Callable[..., StepEvent]) -> None:
    hud = Hud(2)
    hud.step(step_event(0))
    hud.reset(episode=1, seed=8, lane=0)
    told = hud.to_dict()
    assert (told["step"], told["reward"], told["episode"], told["seed"]) == (0, 0.0, 1, 8)


def test_replayed_actions_are_told_as_the_place_in_their_chunk(
    step_event: Callable[..., StepEvent],
) -> None:
    hud = Hud()
    places: list[tuple[object, object, object]] = []
    for step, predict_ms in enumerate((4.0, 0.0, 0.0, 5.0, 0.0)):
        hud.step(step_event(step, predict_ms=predict_ms))
        told = hud.to_dict()
        places.append((told["chunk_pos"], told["chunk_len"], told["model_ms"]))
    assert places == [(0, 1, 4.0), (1, 2, 4.0), (2, 3, 4.0), (0, 3, 5.0), (1, 3, 5.0)]


def test_each_lane_is_counted_for_itself(step_event: Callable[..., StepEvent]) -> None:
    hud = Hud()
    hud.step(step_event(0, lane=0, episode=0))
    hud.step(step_event(0, lane=1, episode=1, seed=9, reward=7.0))
    hud.focus = 1
    told = hud.to_dict()
    assert (told["lane"], told["lanes"], told["reward"], told["seed"]) == (1, 2, 7.0, 9)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "success"),
        ({"success": False, "outcome": Outcome.FAILURE}, "failure"),
        (
            {
                "success": None,
                "terminated": False,
                "truncated": True,
                "outcome": Outcome.TRUNCATED,
            },
            "timeout",
        ),
        ({"success": None, "outcome": Outcome.COMPLETED}, "done"),
        ({"success": None, "outcome": Outcome.ENV_ERROR, "error": "x"}, "env_error"),
        ({"success": None, "outcome": Outcome.TIMEOUT, "error": "x"}, "env_timeout"),
    ],
)
def test_an_outcome_is_one_word(
    changes: dict[str, Any], word: str, episode_result: Callable[..., EpisodeResult]
) -> None:
    assert outcome_of(episode_result(0, **changes)) == word


def test_finished_episodes_are_listed_and_rated(
    step_event: Callable[..., StepEvent], episode_result: Callable[..., EpisodeResult]
) -> None:
    hud = Hud(3)
    hud.step(step_event(0))
    hud.episode(episode_result(0))
    hud.episode(episode_result(1, success=False, outcome=Outcome.FAILURE, reward=3.0))
    hud.episode(episode_result(2, success=None, outcome=Outcome.ENV_ERROR, error="x"))
    told = hud.to_dict()
    assert (told["finished"], told["success_rate"], told["outcome"]) == (3, 0.5, "success")
    assert hud.curves()["returns"] == {"every": 1, "points": [20.0, 3.0]}
    assert hud.rows()[0] == {
        "episode": 0,
        "seed": 0,
        "steps": 20,
        "reward": 20.0,
        "outcome": "success",
        "seconds": 0.25,
    }
    assert [row["outcome"] for row in hud.rows()] == ["success", "failure", "env_error"]


def test_the_list_is_of_bounded_length(episode_result: Callable[..., EpisodeResult]) -> None:
    hud = Hud()
    for index in range(MOST_ROWS + 5):
        hud.episode(episode_result(index))
    rows = hud.rows()
    assert len(rows) == MOST_ROWS
    assert rows[-1]["episode"] == MOST_ROWS + 4
    assert hud.finished == MOST_ROWS + 5


def test_a_return_that_json_cannot_hold_is_told_as_none(
    step_event: Callable[..., StepEvent],
) -> None:
    hud = Hud()
    hud.step(step_event(0, reward=float("inf")))
    assert hud.to_dict()["reward"] is None
    assert hud.curves()["return"] == {"every": 1, "points": [None]}


def test_a_rate_is_what_happened_in_the_last_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlmesh.viewer.hud.monotonic", lambda: 100.0)
    rate = Rate()
    rate.count = 30
    assert rate.per_second(100.1) == 0.0
    assert rate.per_second(101.0) == 30.0
    assert rate.per_second(101.2) == 30.0
    assert rate.per_second(102.0) == 0.0


def test_a_curve_keeps_its_shape_in_bounded_memory() -> None:
    trace = Trace()
    for value in range(100_000):
        trace.add(float(value))
    points = trace.points()
    assert len(points) < MOST_POINTS
    assert points == [float(trace.every * (n + 1) - 1) for n in range(len(points))]
    assert 100_000 - trace.every <= points[-1] + 1 <= 100_000

from typing import Any

import gymnasium as gym
import numpy as np
import rlmesh
from rleaas.evaluation.rollouts import (
    EpisodeName,
    RolloutRecord,
    RolloutRecorder,
    StepRecord,
    trajectory_of,
)
from rleaas.evaluation.rollouts.plain import plain
from rleaas.verify import EpisodeRecorder
from rlmesh.runs.hooks import StepEvent
from rlmesh.runs.results import EpisodeResult


class Desk(gym.Env[Any, np.int64]):
    """Asks for a check before a wire; a wire without it is refused."""

    metadata = {"action_names": ["check", "wire"]}  # noqa: RUF012  # gymnasium has it so
    observation_space = gym.spaces.Box(0, 1, (2,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.checked = False
        return np.zeros(2), {}

    def step(self, action: np.int64) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        call = {"tool": ["check", "wire"][action], "arguments": {"amount": 7}}
        refused = action == 1 and not self.checked
        self.checked = self.checked or action == 0
        info: dict[str, Any] = {
            "tool_calls": [] if refused else [{**call, "result": {"ok": True}}],
            "refused_calls": [{**call, "error": {"code": "not_checked"}}] if refused else [],
            "state": {"checked": self.checked},
            "reward_breakdown": {"task": 0.5, "note": "no number"},
        }
        done = action == 1 and not refused
        return np.array([float(self.checked), np.inf]), 0.5, done, False, info


def play(actions: list[int]) -> list[RolloutRecord]:
    made: list[RolloutRecord] = []
    left = iter(actions)

    def answer(observation: object) -> int:
        return next(left)

    recorder = RolloutRecorder(
        lambda record, _: made.append(record),
        name=lambda number: EpisodeName(id=f"ro_{number}", scenario_id="wire_1"),
        clock=lambda: 1000.0,
    )
    rlmesh.run(
        rlmesh.Model(answer),
        Desk(),
        seeds=[5],
        max_episode_steps=len(actions),
        hooks=recorder,
        progress=False,
    )
    return made


def test_each_step_has_its_call_its_result_and_when_they_happened() -> None:
    (made,) = play([1, 0, 1])

    assert (made.id, made.scenario_id, made.seed, made.index) == ("ro_0", "wire_1", 5, 0)
    assert (made.reward, made.truncated, made.state) == (1.5, False, {"checked": True})
    assert [(step.tool, step.ok) for step in made.steps] == [
        ("wire", False),
        ("check", True),
        ("wire", True),
    ]
    refused, checked, _ = made.steps
    assert refused.result == {"code": "not_checked"}
    assert checked.arguments == {"amount": 7}
    assert checked.result == {"ok": True}
    assert checked.reward_breakdown == {"task": 0.5}
    assert checked.observation == [1.0, "Infinity"]
    assert [event.event_type for event in checked.timeline] == ["TOOL_CALL", "TOOL_RESULT"]
    assert checked.timeline[1].timestamp_ms == 1_000_000
    assert checked.timeline[0].tool_args == {"amount": 7}
    assert made.steps[-1].timeline[-1].event_type == "SYSTEM"


def test_verifiers_see_of_a_record_what_they_saw_of_the_episode() -> None:
    (made,) = play([1, 0, 1])
    seen = EpisodeRecorder(action_names={0: "check", 1: "wire"})
    env = Desk()
    seen.begin(env.reset()[1])
    for action in [1, 0, 1]:
        observation, reward, _, truncated, info = env.step(np.int64(action))
        seen.step(action, observation, reward, info, truncated=truncated)

    expected, found = seen.trajectory(), trajectory_of(made)

    assert found.tool_calls == expected.tool_calls == ("check", "wire")
    assert found.calls == expected.calls
    assert found.state == expected.state
    assert found.rewards == expected.rewards
    assert found.truncated == expected.truncated


def test_an_episode_that_the_run_cuts_off_is_truncated() -> None:
    (made,) = play([0, 0])

    assert made.truncated
    assert trajectory_of(made).truncated
    assert made.outcome == "truncated"
    assert made.steps[-1].timeline[-1].content == "episode ended: cut off by the run"


def told(action: object, observation: object = None, **info: Any) -> StepRecord:
    made: list[RolloutRecord] = []
    recorder = RolloutRecorder(lambda record, _: made.append(record), clock=lambda: 2.0)
    recorder.on_episode_start(episode=3, seed=1)
    recorder.on_step(
        StepEvent(3, 1, 0, observation, action, 1.0, False, False, info, 100.0, 50.0, None)
    )
    recorder.on_episode_end(EpisodeResult(3, 1, 1, 1.0, False, False))
    return made[0].steps[0]


def test_a_models_thought_and_its_call_are_told_in_order() -> None:
    step = told('{"thought": "check first", "tool": "check", "arguments": {"a": 1}}', "Do it.")

    assert [(one.event_type, one.timestamp_ms) for one in step.timeline] == [
        ("SYSTEM", 1850),
        ("MODEL_THOUGHT", 1950),
        ("TOOL_CALL", 1950),
    ]
    assert [one.content for one in step.timeline] == ["Do it.", "check first", None]
    assert step.tool == "check"
    assert step.arguments == {"a": 1}


def test_prose_is_a_thought_and_no_call() -> None:
    step = told("I would rather not.")

    assert step.tool is None
    assert [one.content for one in step.timeline] == ["I would rather not."]


def test_what_json_has_not_is_told_in_words() -> None:
    assert plain(float("nan")) == "NaN"
    assert plain({1: np.float32(0.5), "b": (np.int64(3), b"\x01")}) == {"1": 0.5, "b": [3, "01"]}
    assert plain(object()) == {"left_out": "object"}
    picture = plain(np.zeros((80, 80, 3), np.uint8))
    assert picture["shape"] == [80, 80, 3]
    assert len(picture["sha256"]) == 64
    nested: list[Any] = []
    for _ in range(500):
        nested = [nested]
    assert "too deep" in str(plain(nested))

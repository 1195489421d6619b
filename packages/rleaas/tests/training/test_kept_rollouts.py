from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from rleaas.evaluation.rollouts import RolloutReader
from rleaas.training.kept_rollouts import MOST, KeptEnv, RolloutKeeper


class Desk(gym.Env[Any, np.int64]):
    """An episode is a check and a wire; the fourth reset's environment is lost."""

    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, names: bool = True) -> None:
        self.metadata = {"action_names": ["check", "wire"]} if names else {}
        self.resets = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.resets += 1
        return np.zeros(1, np.float32), {}

    def step(self, action: np.int64) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        told = {"tool": ["check", "wire"][action], "arguments": {"a": 1}, "result": {"ok": True}}
        info: dict[str, Any] = {"tool_calls": [told]}
        if action == 1:
            info |= {"is_success": True, "scenario_id": "wire_1", "composite_verifier_score": 0.25}
        if self.resets == 4:
            info["aborted"] = True
        return np.ones(1, np.float32), 0.5, bool(action == 1), self.resets == 4, info


def play(env: gym.Env[Any, Any], episodes: int) -> None:
    for number in range(episodes):
        env.reset(seed=number)
        for action in (0, 1):
            _, _, terminated, truncated, _ = env.step(np.int64(action))
            if terminated or truncated:
                break


def test_episodes_are_kept_with_their_steps_and_a_lost_one_is_not(tmp_path: Path) -> None:
    keeper = RolloutKeeper("job_1", tmp_path / "file", 10, begin=20)
    env = keeper.around(Desk())
    env.reset(seed=99)  # a look at whether there is room

    play(env, 6)
    keeper.close()

    with RolloutReader(tmp_path / "file") as reader:
        kept = list(reader)
    assert [one.index for one in kept] == [20, 21, 23, 24, 25]
    assert [one.seed for one in kept] == [0, 1, 3, 4, 5]
    first = kept[0]
    assert (first.id, first.scenario_id, first.success) == ("job_1-20", "wire_1", True)
    assert (first.reward, first.score, first.outcome) == (1.0, 0.25, "success")
    assert [step.tool for step in first.steps] == ["check", "wire"]
    assert first.steps[0].arguments == {"a": 1}
    assert first.steps[0].observation == [1.0]


def test_of_a_long_training_evenly_spread_episodes_are_kept(tmp_path: Path) -> None:
    keeper = RolloutKeeper("job_1", tmp_path / "file", 10 * MOST)

    numbers = [keeper.next() for _ in range(10 * MOST)]

    assert [one for one in numbers if one is not None] == list(range(0, 10 * MOST, 10))


def test_an_environment_whose_actions_call_no_tools_is_left_as_it_is(tmp_path: Path) -> None:
    keeper = RolloutKeeper("job_1", tmp_path / "file", 10)
    env = Desk(names=False)

    assert keeper.around(env) is env
    assert isinstance(keeper.around(Desk()), KeptEnv)
    keeper.close()
    assert (keeper.rollouts, keeper.path.exists()) == (0, False)

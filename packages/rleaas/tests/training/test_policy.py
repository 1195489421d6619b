# stable-baselines3 and gymnasium leave their type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

import zipfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from rlcore import ConfigurationError, InvalidObservationError
from rleaas.training.file_digest import file_digest
from rleaas.training.policy import load_policy


class Pictures(gymnasium.Env[Any, Any]):
    """Shows noise and a number; wants two floats."""

    observation_space = spaces.Dict(
        {"camera": spaces.Box(0, 255, (36, 40, 3), np.uint8), "mode": spaces.Discrete(3, start=1)}
    )
    action_space = spaces.Box(-2, 2, (2,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        return self.observation_space.sample(), 0.0, True, False, {}


def trained(train: Any, notebook: Any, make_env: Any) -> Path:
    train(notebook, make_env, num_episodes=8)
    path: Path = notebook.checkpoints[-1][2]
    return path


@pytest.mark.parametrize("make_env", [lambda: gymnasium.make("CartPole-v1"), Pictures])
def test_a_loaded_policy_acts_like_the_one_of_stable_baselines3(
    train: Any, notebook: Any, make_env: Any
) -> None:
    from stable_baselines3 import PPO

    path = trained(train, notebook, make_env)
    model, original = load_policy(path, "PPO"), PPO.load(path, device="cpu")
    space = make_env().observation_space
    space.seed(3)

    for _ in range(20):
        observation = space.sample()
        action = model.predict(observation)
        zero_based = dict(observation) if isinstance(observation, dict) else observation
        if isinstance(observation, dict):
            zero_based["mode"] = zero_based["mode"] - 1
        np.testing.assert_array_equal(action, original.predict(zero_based, deterministic=True)[0])
        assert make_env().action_space.contains(action)


def test_a_loaded_policy_is_known_by_the_digest_of_its_file(train: Any, notebook: Any) -> None:
    path = trained(train, notebook, lambda: gymnasium.make("CartPole-v1"))

    assert load_policy(path).digest == f"sha256:{file_digest(path)}"


def test_a_policy_plays_a_run(train: Any, notebook: Any) -> None:
    import rlmesh

    path = trained(train, notebook, lambda: gymnasium.make("CartPole-v1"))
    result = rlmesh.run(rlmesh.load_model(path), gymnasium.make("CartPole-v1"), seeds=[1, 2, 1])

    assert result.rewards[0] == result.rewards[2] > 0
    assert result.model_digest == f"sha256:{file_digest(path)}"


def test_an_observation_of_another_environment_is_refused(train: Any, notebook: Any) -> None:
    path = trained(train, notebook, lambda: gymnasium.make("CartPole-v1"))

    with pytest.raises(InvalidObservationError, match="job_1"):
        load_policy(path).predict(np.zeros(7, dtype=np.float32))


def test_a_checkpoint_of_another_algorithm_is_refused(
    train: Any, notebook: Any, tmp_path: Path
) -> None:
    path = trained(train, notebook, lambda: gymnasium.make("CartPole-v1"))
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(other, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name == "manifest.json":
                content = content.replace(b'"PPO"', b'"A2C"')
            target.writestr(name, content)

    with pytest.raises(ConfigurationError, match="'A2C'"):
        load_policy(other, "PPO")


def test_a_manifest_that_does_not_fit_its_weights_is_refused(
    train: Any, notebook: Any, tmp_path: Path
) -> None:
    path = trained(train, notebook, lambda: gymnasium.make("CartPole-v1"))
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(other, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name == "manifest.json":
                content = content.replace(b'"n": 2', b'"n": 3')
            target.writestr(name, content)

    with pytest.raises(ConfigurationError, match="does not describe its own policy"):
        load_policy(other)

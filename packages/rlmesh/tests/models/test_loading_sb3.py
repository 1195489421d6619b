"""Policies of stable-baselines3: every algorithm found from its file, and played as it does."""

# stable-baselines3 leaves its type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false

from __future__ import annotations

import json
import logging
import pickle
import zipfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import rlmesh
import stable_baselines3
import torch
from gymnasium import spaces
from rlcore import ConfigurationError, MissingDependencyError
from rlmesh.models.loading_sb3 import Sb3Policy
from rlmesh.models.model_files import ModelFileError
from rlmesh.models.policy import policy_for
from rlmesh.specs import contract_of
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

pytestmark = pytest.mark.slow  # the first optimizer imports torch's compiler, which takes seconds


def saved(name: str, env: Any, path: Path, policy: str = "MlpPolicy") -> Any:
    kind = getattr(stable_baselines3, name)
    options: dict[str, Any] = {"seed": 0, "device": "cpu"}
    if name in ("DQN", "SAC", "TD3", "DDPG"):
        options["buffer_size"] = 10
    algorithm = kind(policy, env, **options)
    algorithm.save(path)
    return algorithm


@pytest.mark.parametrize(
    ("name", "env_id"),
    [
        ("PPO", "CartPole-v1"),
        ("A2C", "CartPole-v1"),
        ("DQN", "CartPole-v1"),
        ("SAC", "Pendulum-v1"),
        ("TD3", "Pendulum-v1"),
        ("DDPG", "Pendulum-v1"),
        ("PPO", "Pendulum-v1"),
    ],
)
def test_every_algorithm_is_found_and_acts_as_it_did(
    tmp_path: Path, name: str, env_id: str
) -> None:
    path = tmp_path / "policy.zip"
    original = saved(name, env_id, path)
    model = rlmesh.load_model(path, device="cpu")

    env = gymnasium.make(env_id)
    env.observation_space.seed(1)
    policy = policy_for(model)
    policy.bind(contract_of(env), num_envs=3)
    batch = np.stack([env.observation_space.sample().clip(-3, 3) for _ in range(3)])
    lanes = [policy.begin(str(lane), lane) for lane in range(3)]
    expected = original.predict(batch, deterministic=True)[0]

    answer: Any = policy.predict_batch(batch, lanes)
    np.testing.assert_array_equal(answer, expected)
    for row, action in zip(batch, expected, strict=True):
        single: Any = policy.predict(row, lanes[0])
        np.testing.assert_allclose(single, action, rtol=1e-5, atol=1e-6)
    assert model.name == f"{name} policy"


class Pictures(gymnasium.Env[Any, Any]):
    """Shows a picture, channels last, and a number; wants two choices."""

    observation_space = spaces.Dict(
        {"camera": spaces.Box(0, 255, (36, 40, 3), np.uint8), "mode": spaces.Discrete(3)}
    )
    action_space = spaces.MultiDiscrete([2, 3])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(np.asarray(action))
        return self.observation_space.sample(), 1.0, False, False, {}


def test_pictures_and_dictionaries_are_given_as_the_library_takes_them(tmp_path: Path) -> None:
    path = tmp_path / "policy.zip"
    original = saved("PPO", Pictures(), path, "MultiInputPolicy")
    model = rlmesh.load_model(path, device="cpu")
    observation, _ = Pictures().reset(seed=3)

    np.testing.assert_array_equal(
        model.predict(observation), original.predict(observation, deterministic=True)[0]
    )
    result = rlmesh.run(model, Pictures(), seeds=[1, 2], max_episode_steps=3)
    assert result.rewards == (3.0, 3.0)


def test_observations_are_normalised_as_in_training(tmp_path: Path) -> None:
    venv = VecNormalize(make_vec_env("Pendulum-v1", 2, seed=0))
    original = stable_baselines3.PPO(
        "MlpPolicy", venv, n_steps=16, batch_size=32, n_epochs=1, device="cpu", seed=0
    )
    original.learn(32)
    original.save(tmp_path / "policy.zip")
    venv.save(str(tmp_path / "statistics.pkl"))
    observation = np.array([0.3, 0.4, 5.0], np.float32)
    expected = original.predict(venv.normalize_obs(observation), deterministic=True)[0]

    path = tmp_path / "policy.zip"
    by_file = rlmesh.load_model(path, normalize=tmp_path / "statistics.pkl")
    by_object = rlmesh.load_model(path, normalize=venv)
    without = rlmesh.load_model(path)

    np.testing.assert_allclose(by_file.predict(observation), expected, rtol=1e-6)
    np.testing.assert_allclose(by_object.predict(observation), expected, rtol=1e-6)
    assert abs(without.predict(observation) - expected).max() > 1e-4
    assert by_file.digest != without.digest
    batch: Any = by_file.predict_batch(np.stack([observation, observation]))
    np.testing.assert_allclose(batch, [expected, expected], rtol=1e-5)


def test_statistics_that_are_none_are_refused(tmp_path: Path) -> None:
    saved("A2C", "CartPole-v1", tmp_path / "policy.zip")
    for normalize, what in (
        (tmp_path / "missing.pkl", "cannot be read"),
        (tmp_path / "bad.pkl", "cannot be loaded"),
        (tmp_path / "other.pkl", "Give a VecNormalize"),
        (3, "Give a VecNormalize"),
    ):
        (tmp_path / "bad.pkl").write_bytes(b"nonsense")
        (tmp_path / "other.pkl").write_bytes(pickle.dumps({}))
        with pytest.raises(ConfigurationError, match=what):
            rlmesh.load_model(tmp_path / "policy.zip", normalize=normalize)


def test_loading_says_that_it_runs_code(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    saved("A2C", "CartPole-v1", tmp_path / "policy.zip")
    with caplog.at_level(logging.WARNING):
        rlmesh.load_model(tmp_path / "policy.zip")
    assert "runs code that is pickled in it" in caplog.text


def test_another_environment_is_refused_before_it_is_played(tmp_path: Path) -> None:
    saved("A2C", "CartPole-v1", tmp_path / "policy.zip")
    model = rlmesh.load_model(tmp_path / "policy.zip")
    with pytest.raises(ConfigurationError, match="trained with the observation_space") as caught:
        rlmesh.run(model, gymnasium.make("Pendulum-v1"), episodes=1)
    assert "Pendulum-v1" in str(caught.value)


def test_the_algorithm_can_be_given_and_must_exist(tmp_path: Path) -> None:
    path = tmp_path / "policy.zip"
    saved("A2C", "CartPole-v1", path)

    assert rlmesh.load_model(path, algorithm="a2c").name == "A2C policy"
    assert rlmesh.load_model(path, algorithm=stable_baselines3.A2C, name="mine").name == "mine"
    with pytest.raises(ConfigurationError, match="no algorithm 'XYZ'"):
        rlmesh.load_model(path, algorithm="xyz")
    with pytest.raises(MissingDependencyError, match="no-such-library"):
        rlmesh.load_model(path, algorithm="no_such_library:TQC")


def test_a_file_that_does_not_tell_is_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "policy.zip"
    for data, what in (({"policy_class": {}}, "does not tell"), ([], "cannot be loaded")):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("data", json.dumps(data))
            archive.writestr("_stable_baselines3_version", "2.9")
        with pytest.raises(ModelFileError, match=what):
            rlmesh.load_model(path)


@pytest.mark.parametrize(
    ("module", "fields", "library"),
    [
        ("sb3_contrib.common.recurrent.policies", {"clip_range": 0}, "RecurrentPPO"),
        ("somebody.policies", {"top_quantiles_to_drop_per_net": 2}, "TQC"),
    ],
)
def test_algorithms_of_the_contributed_package_are_known_by_name(
    tmp_path: Path, module: str, fields: dict[str, Any], library: str
) -> None:
    path = tmp_path / "policy.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", json.dumps({"policy_class": {"__module__": module}, **fields}))
        archive.writestr("_stable_baselines3_version", "2.9")
    with pytest.raises((MissingDependencyError, ModelFileError), match=f"sb3_contrib|{library}"):
        rlmesh.load_model(path)


class Counting:
    """A recurrent algorithm, whose action is how long its memory is."""

    class policy:  # noqa: N801 # the library's name for it
        lstm_actor = None

        @staticmethod
        def set_training_mode(mode: bool) -> None:
            assert not mode

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        count = np.array(0 if episode_start[0] else state + 1)
        return count, count


def test_a_recurrent_policy_remembers_each_episode_apart() -> None:
    policy = policy_for(rlmesh.Model(Sb3Policy(Counting(), deterministic=True, normalize=None)))
    policy.bind(None, num_envs=1)
    first, second = policy.begin("a", 1), policy.begin("b", 2)
    order = [first, first, second, first, second]
    assert [policy.predict(0, episode) for episode in order] == [0, 1, 0, 2, 1]


@pytest.mark.parametrize(("name", "env_id"), [("PPO", "CartPole-v1"), ("SAC", "Pendulum-v1")])
def test_samples_follow_from_the_seed_of_the_episode_alone(
    tmp_path: Path, name: str, env_id: str
) -> None:
    path = tmp_path / "policy.zip"
    saved(name, env_id, path)
    model = rlmesh.load_model(path, device="cpu", deterministic=False)

    def played(seeds: list[int], lanes: int) -> list[tuple[float | None, int]]:
        one, many = gymnasium.make, gymnasium.make_vec
        env: Any = many(env_id, lanes, vectorization_mode="sync") if lanes else one(env_id)
        result = rlmesh.run(model, env, seeds=seeds, max_episode_steps=20, close_env=True)
        return [(episode.reward, episode.steps) for episode in result.episodes]

    torch.manual_seed(5)
    first, before = played([0, 1], 0), torch.get_rng_state()
    torch.manual_seed(6)
    np.random.seed(6)

    assert played([1, 0], 0) == first[::-1]
    assert played([0, 1], 2) == [pytest.approx(episode) for episode in first]
    torch.manual_seed(5)
    assert torch.equal(before, torch.get_rng_state())  # which is the caller's own

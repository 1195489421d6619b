"""What all six algorithms have in common, on small networks and short trainings."""

# stable-baselines3 and gymnasium leave their type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false

from typing import Any

import gymnasium
import numpy as np
import pytest
import stable_baselines3
import torch
from gymnasium import spaces
from rlcore import TrainingJobFailed
from rleaas.training.algorithms import ALGORITHMS
from rleaas.training.checkpoint_file import read_manifest, read_weights
from rleaas.training.guarded import episode_seed
from rleaas.training.loaded_policy import open_policy
from rleaas.training.state_file import read_state
from rleaas.training.trainer import Resume, StopReason

REPLAY = {"learning_starts": 40, "train_freq": 4, "gradient_steps": 2, "batch_size": 16}
SMALL: dict[str, dict[str, Any]] = {
    "PPO": {"n_steps": 32, "num_envs": 2, "n_epochs": 2},
    "A2C": {"n_steps": 8, "num_envs": 2},
    # A target network that follows slowly moves in the middle of a rollout.
    "DQN": {**REPLAY, "train_freq": 16, "tau": 0.5, "target_update_interval": 10},
    "SAC": REPLAY,
    "TD3": {**REPLAY, "num_envs": 2},
    "DDPG": REPLAY,
}
CONTINUOUS = ("SAC", "TD3", "DDPG")
every_algorithm = pytest.mark.parametrize("algorithm", list(SMALL))


def environment(algorithm: str) -> gymnasium.Env[Any, Any]:
    return gymnasium.make("Pendulum-v1" if algorithm in CONTINUOUS else "CartPole-v1")


def small(algorithm: str) -> dict[str, Any]:
    of_kind = {"num_episodes": 24, "max_steps": 100}
    if algorithm in CONTINUOUS:
        of_kind = {"num_episodes": 8, "max_steps": 30}
    return {
        "algorithm": algorithm,
        "net_arch": [16],
        "checkpoint_interval": 3,
        **of_kind,
        **SMALL[algorithm],
    }


def curve(notebook: Any, after: int = 0) -> list[tuple[object, ...]]:
    return [
        (one.episode, one.timestep, one.episode_reward, one.avg_reward)
        for one in notebook.episodes
        if one.episode > after
    ]


def losses(notebook: Any) -> list[dict[str, float]]:
    return [
        {name: one for name, one in told.items() if name != "steps_per_second"}
        for told in notebook.rollouts
    ]


@every_algorithm
def test_the_same_request_gives_the_same_curve_also_when_it_is_stopped_and_resumed(
    train: Any, notebook_type: Any, algorithm: str
) -> None:
    whole, again, stopped, resumed = (notebook_type() for _ in range(4))
    stopped.stop_after = 61

    def run(notebook: Any, job_id: str, **more: Any) -> Any:
        return train(
            notebook, lambda: environment(algorithm), job_id=job_id, **small(algorithm), **more
        )

    run(whole, "whole")
    run(again, "again")
    assert curve(again) == curve(whole)
    assert losses(again) == losses(whole)

    assert run(stopped, "stopped").stopped_by is StopReason.CANCELLED
    _, progress, path = stopped.checkpoints[-1]
    run(resumed, "resumed", resume=Resume(policy=path, state=stopped.states[-1], same_job=True))

    assert 0 < progress.timestep < whole.episodes[-1].timestep
    assert curve(resumed) == curve(whole, after=progress.episode)
    assert losses(resumed) == losses(whole)[-len(losses(resumed)) or len(losses(whole)) :]
    final = read_weights(whole.checkpoints[-1][2])
    for name, weight in read_weights(resumed.checkpoints[-1][2]).items():
        assert torch.equal(weight, final[name]), name


NUMBERS = {episode_seed(1, session, one): one for session in range(2) for one in range(60)}


class Rising(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Every episode is worth more than the one before; its number is told by its seed."""

    _worth = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        self._worth = 10 * NUMBERS.get(seed or 0, 0)
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> Any:
        observation, reward, *rest = self.env.step(action)
        return observation, float(reward) + self._worth, *rest


@every_algorithm
def test_a_checkpoint_at_a_peak_changes_no_curve_and_is_gone_on_from_exactly(
    train: Any, notebook_type: Any, algorithm: str
) -> None:
    without, peaks, resumed = (notebook_type() for _ in range(3))
    request = {**small(algorithm), "num_episodes": 38, "max_steps": 9}

    def run(notebook: Any, job_id: str, interval: int, **more: Any) -> None:
        asked = {**request, "checkpoint_interval": interval, **more}
        train(notebook, lambda: Rising(environment(algorithm)), job_id=job_id, **asked)

    def saved(notebook: Any) -> list[tuple[str, int]]:
        return [(label, progress.episode) for label, progress, _ in notebook.checkpoints]

    run(without, "without", 10_000)
    run(peaks, "peaks", 50)
    assert saved(without) == [("final", 38)]
    _, progress, path = peaks.checkpoints[0]
    assert saved(peaks)[0] == ("best", progress.episode)
    assert 20 < progress.episode < 38
    assert curve(peaks) == curve(without)
    assert losses(peaks) == losses(without)

    resume = Resume(policy=path, state=peaks.states[0], same_job=True)
    run(resumed, "resumed", 50, resume=resume)
    assert curve(resumed) == curve(without, after=progress.episode)
    assert saved(resumed) == saved(peaks)[1:]
    final = read_weights(without.checkpoints[-1][2])
    for notebook in (peaks, resumed):
        for name, weight in read_weights(notebook.checkpoints[-1][2]).items():
            assert torch.equal(weight, final[name]), name


@every_algorithm
def test_a_loaded_policy_its_network_and_stable_baselines3_choose_the_same_actions(
    train: Any, notebook: Any, algorithm: str
) -> None:
    train(notebook, lambda: environment(algorithm), **small(algorithm))
    path = notebook.checkpoints[-1][2]
    original = getattr(stable_baselines3, algorithm).load(path, device="cpu")
    policy = open_policy(path)
    network, examples = policy.network()
    space = environment(algorithm).observation_space
    space.seed(5)
    batch = np.stack([space.sample() for _ in range(20)])

    assert list(examples) == ["observation"]
    with torch.no_grad():
        chosen = network(torch.as_tensor(batch)).numpy()
    expected, _ = original.predict(batch, deterministic=True)
    np.testing.assert_allclose(chosen, expected, rtol=1e-5, atol=1e-6)
    actions = np.stack([policy.predict(one) for one in batch])
    np.testing.assert_allclose(actions, expected, rtol=1e-5, atol=1e-6)


@every_algorithm
def test_a_checkpoint_tells_every_setting_and_a_request_changes_it(
    train: Any, notebook: Any, algorithm: str
) -> None:
    asked = {"learning_rate": 0.002, "gamma": 0.9, "learning_rate_schedule": "linear"}
    train(notebook, lambda: environment(algorithm), **{**small(algorithm), **asked})
    path = notebook.checkpoints[-1][2]
    told = read_manifest(path).hyperparameters
    original = getattr(stable_baselines3, algorithm).load(path, device="cpu")

    assert {name: told[name] for name in asked} == asked
    assert original.gamma == 0.9
    # Half of the budget is left, half of the rate is.
    assert original.lr_schedule(0.5) == pytest.approx(0.001)
    assert told["net_arch"] == [16]
    # The library has what is told, and everything that a request may say is told.
    for name in (
        "batch_size",
        "n_steps",
        "n_epochs",
        "gae_lambda",
        "tau",
        "buffer_size",
        "ent_coef",
    ):
        if name in told:
            assert getattr(original, name) == told[name], name
    assert set(ALGORITHMS[algorithm].hyperparameters) - {"replay_megabytes"} <= set(told)


@every_algorithm
def test_training_that_diverges_fails_with_advice_and_saves_none_of_it(
    train: Any, notebook: Any, algorithm: str
) -> None:
    wild = {**small(algorithm), "learning_rate": 1e30, "checkpoint_interval": 1000}

    with pytest.raises(TrainingJobFailed, match="diverged") as caught:
        train(notebook, lambda: environment(algorithm), **wild)

    assert caught.value.code == "training_diverged"
    assert "learning_rate" in str(caught.value)
    assert notebook.checkpoints == []


class Odd(gymnasium.Env[Any, Any]):
    """Shows two things, and wants actions of a given space; its episodes last five steps."""

    observation_space = spaces.Dict(
        {"place": spaces.Box(-1, 1, (2,), np.float32), "mode": spaces.MultiDiscrete([3, 2])}
    )

    def __init__(self, action_space: Any) -> None:
        self.action_space = action_space
        self._left = 5

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._left = 5
        return self._shown(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self._left -= 1
        return self._shown(), float(self._left), self._left == 0, False, {}

    def _shown(self) -> Any:
        place = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return {"place": place, "mode": np.array([self._left % 3, self._left % 2])}


@pytest.mark.parametrize(
    ("algorithm", "actions"),
    [
        ("PPO", spaces.MultiDiscrete([3, 2])),
        ("PPO", spaces.Box(-2, 1, (2, 2), np.float32)),
        ("A2C", spaces.MultiBinary(3)),
        ("A2C", spaces.Discrete(3, start=4)),
        ("DQN", spaces.Discrete(3, start=4)),
        ("SAC", spaces.Box(np.array([-2, 0]), np.array([1, 5]), dtype=np.float32)),
        ("TD3", spaces.Box(-2, 1, (2, 2), np.float32)),
        ("DDPG", spaces.Box(0, 3, (), np.float32)),
    ],
    ids=str,
)
def test_odd_spaces_are_learnt_resumed_and_exported(
    train: Any, notebook_type: Any, algorithm: str, actions: Any
) -> None:
    whole, resumed = notebook_type(), notebook_type()
    request = {**small(algorithm), "num_episodes": 16, "max_steps": 9}
    train(whole, lambda: Odd(actions), **request)
    _, progress, path = whole.checkpoints[0]
    resume = Resume(policy=path, state=whole.states[0], same_job=True)
    train(resumed, lambda: Odd(actions), job_id="resumed", resume=resume, **request)
    assert curve(resumed) == curve(whole, after=progress.episode)

    policy = open_policy(whole.checkpoints[-1][2])
    network, examples = policy.network()
    assert list(examples) == ["mode", "place"]
    space = Odd.observation_space
    space.seed(7)
    seen = [space.sample() for _ in range(10)]
    batch = [torch.as_tensor(np.stack([one[name] for one in seen])) for name in examples]
    with torch.no_grad():
        chosen = network(*batch).numpy()
    start = getattr(actions, "start", 0)
    for one, action in zip(seen, chosen, strict=True):
        predicted = policy.predict(one)
        assert actions.contains(predicted)
        np.testing.assert_allclose(action.reshape(actions.shape) + start, predicted, atol=1e-6)


def test_a_state_file_holds_no_more_of_the_replay_buffer_than_was_filled(
    train: Any, notebook: Any
) -> None:
    train(notebook, lambda: environment("SAC"), **small("SAC"), num_envs=1)

    replay = read_state(notebook.states[0])["replay"]
    progress = notebook.checkpoints[0][1]
    assert replay["columns"]["observations"].shape == (progress.timestep, 1, 3)
    assert replay["left_out"] == 0


def test_more_remembered_steps_than_a_checkpoint_may_keep_are_cut_to_the_newest(
    train: Any, notebook_type: Any
) -> None:
    first, second = notebook_type(), notebook_type()

    class Large(gymnasium.ObservationWrapper[Any, Any, Any]):
        def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
            super().__init__(env)
            self.observation_space = spaces.Box(-np.inf, np.inf, (3000,), np.float32)

        def observation(self, observation: Any) -> Any:
            return np.resize(observation, 3000)

    request = {**small("SAC"), "replay_megabytes": 1, "num_envs": 1}
    train(first, lambda: Large(environment("SAC")), **request)
    replay = read_state(first.states[-1])["replay"]
    # 2 observations of 3000 float32, action, reward, two flags: 24016 bytes a step.
    assert len(replay["columns"]["rewards"]) == 2**20 // 24016
    resume = Resume(policy=first.checkpoints[0][2], state=first.states[0], same_job=True)
    train(second, lambda: Large(environment("SAC")), job_id="job_2", resume=resume, **request)
    assert any("replay buffer was not kept whole" in line for line in second.lines)


def test_another_job_starts_from_weights_optimiser_and_memory_with_counters_at_zero(
    train: Any, notebook_type: Any
) -> None:
    first, second = notebook_type(), notebook_type()
    train(first, lambda: environment("DQN"), **small("DQN"))
    resume = Resume(policy=first.checkpoints[-1][2], state=first.states[-1])
    request = {**small("DQN"), "learning_starts": 2_399}
    train(second, lambda: environment("DQN"), job_id="job_2", resume=resume, **request)

    assert [one.episode for one in second.episodes] == list(range(1, 25))
    before = read_weights(first.checkpoints[-1][2])
    after = read_weights(second.checkpoints[-1][2])
    q_net = [name for name in before if name.startswith("q_net.")]
    assert all(torch.equal(before[name], after[name]) for name in q_net)
    assert any("with its optimiser and what it remembered" in line for line in second.lines)


def test_an_environment_that_is_not_deterministic_is_told_of_and_goes_on(
    train: Any, notebook_type: Any
) -> None:
    first, second = notebook_type(), notebook_type()
    noise = np.random.default_rng(3)

    class Noisy(gymnasium.ObservationWrapper[Any, Any, Any]):
        def observation(self, observation: Any) -> Any:
            return observation + noise.normal(0, 0.01, 4).astype(np.float32)

    first.stop_after = 75
    train(first, lambda: Noisy(environment("PPO")), **small("PPO"))
    resume = Resume(policy=first.checkpoints[-1][2], state=first.states[-1], same_job=True)
    train(second, lambda: Noisy(environment("PPO")), job_id="job_2", resume=resume, **small("PPO"))

    assert any("not deterministic" in line for line in second.lines)
    assert second.episodes[-1].episode == 24

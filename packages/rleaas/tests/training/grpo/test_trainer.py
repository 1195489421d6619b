# gymnasium leaves its type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from collections import Counter
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from rlcore import ConfigurationError, EnvironmentException, TrainingJobFailed
from rleaas.training.checkpoint_file import read_manifest, read_weights
from rleaas.training.loaded_policy import open_policy
from rleaas.training.state_file import read_state
from rleaas.training.trainer import Resume, StopReason, trainer_for


def cartpole() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("CartPole-v1")


def resume_from(path: Path, *, same_job: bool) -> Resume:
    return Resume(policy=path, state=path.with_suffix(".state.zip"), same_job=same_job)


def returns(notebook: Any) -> list[float]:
    return [progress.episode_reward for progress in notebook.episodes]


def test_the_trainer_of_grpo_is_found_by_its_name() -> None:
    assert type(trainer_for("grpo")).__name__ == "GRPOTrainer"


def test_a_bandit_is_learned(train: Any, notebook: Any) -> None:
    results = train(notebook, num_episodes=400, target_reward=3.9, learning_rate=0.02)

    # By chance a third of the four steps is right.
    assert np.mean(returns(notebook)[:16]) < 2.5
    assert results.stopped_by is StopReason.TARGET_REWARD


@pytest.mark.parametrize(
    "changed",
    [
        {"std_normalization": False, "length_normalization": "constant"},
        {"credit": "reward_to_go", "gamma": 0.0},
        {"kl_coef": 0.01, "reference": "initial"},
        {"kl_coef": 0.5, "reference": "previous"},
        {"clip_range_high": 0.4, "ent_coef": 0.001, "learning_rate_schedule": "linear"},
    ],
    ids=["Dr. GRPO", "reward to go", "near the initial policy", "near the previous", "others"],
)
def test_every_variant_learns_the_bandit(train: Any, notebook: Any, changed: Any) -> None:
    train(notebook, num_episodes=320, **{"learning_rate": 0.02, **changed})

    assert np.mean(returns(notebook)[-64:]) > 3


def test_all_episodes_of_a_group_share_their_start(
    train: Any, notebook: Any, bandit: type[Any]
) -> None:
    made: list[Any] = []

    def make_env() -> Any:
        made.append(bandit())
        return made[-1]

    train(notebook, make_env)

    # The first reset of a session only takes it.
    starts = Counter(start for env in made for start in env.starts[1:])
    assert set(starts.values()) == {4}
    assert len({seed for seed, _ in starts}) == 24 / 4


def test_training_ends_exactly_at_the_budget_of_episodes(train: Any, notebook: Any) -> None:
    results = train(notebook, num_episodes=19)

    assert results.stopped_by is StopReason.EPISODE_BUDGET
    assert [progress.episode for progress in notebook.episodes] == list(range(1, 20))
    assert [label for label, _, _ in notebook.checkpoints] == ["final"]


def test_checkpoints_come_with_the_update_after_their_interval(train: Any, notebook: Any) -> None:
    train(notebook, num_episodes=40, checkpoint_interval=10)

    episodes = [progress.episode for _, progress, _ in notebook.checkpoints]
    assert episodes == [16, 24, 32, 40]
    assert notebook.checkpoints[0][0] == "best"


def test_the_numbers_of_every_update_are_told(train: Any, notebook: Any) -> None:
    train(notebook)

    assert len(notebook.rollouts) == 3
    for told in notebook.rollouts:
        expected = {"loss", "policy_loss", "kl", "entropy", "clip_fraction", "approx_kl"}
        assert {*expected, "advantage_std", "steps_per_second"} <= set(told)
    # Before the first update the three arms are about as likely: the entropy is near log 3.
    assert notebook.rollouts[0]["entropy"] == pytest.approx(np.log(3), abs=0.05)


def test_groups_without_difference_are_counted_and_change_nothing(
    train: Any, notebook: Any, countdown: type[Any]
) -> None:
    # Every episode of a countdown has the return 4.
    train(notebook, countdown, num_episodes=8, ent_coef=0.0)
    train(notebook, countdown, num_episodes=24, ent_coef=0.0, job_id="job_2")

    assert [told["groups_without_difference"] for told in notebook.rollouts] == [2.0] * 4
    first, last = (read_weights(path) for _, _, path in notebook.checkpoints)
    assert all(bool((first[name] == last[name]).all()) for name in first)


def test_without_a_difference_the_policy_becomes_less_sure_of_what_it_does(
    train: Any, notebook: Any, countdown: type[Any]
) -> None:
    train(notebook, countdown, num_episodes=240, learning_rate=0.02)

    assert notebook.rollouts[0]["entropy"] < notebook.rollouts[-1]["entropy"]
    assert notebook.rollouts[-1]["entropy"] == pytest.approx(np.log(2), abs=1e-3)


def test_the_same_seed_trains_the_same_policy(train: Any, notebook_type: Any) -> None:
    one, other = notebook_type(), notebook_type()
    for sink in (one, other):
        train(sink, cartpole, num_episodes=40)

    assert returns(one) == returns(other)
    assert one.rollouts[-1]["loss"] == other.rollouts[-1]["loss"] != 0


def test_another_seed_trains_another_policy(train: Any, notebook_type: Any) -> None:
    one, other = notebook_type(), notebook_type()
    train(one, num_episodes=16)
    train(other, num_episodes=16, seed=2)

    assert returns(one) != returns(other)


@pytest.mark.parametrize("kl_coef", [0.0, 0.1])
def test_a_restarted_job_goes_on_exactly(
    train: Any, notebook_type: Any, tmp_path: Path, kl_coef: float
) -> None:
    settings = {"num_episodes": 80, "checkpoint_interval": 16, "kl_coef": kl_coef}
    whole = notebook_type()
    train(whole, cartpole, **settings)
    cut = notebook_type(stop_after=400)
    interrupted = train(cut, cartpole, job_id="job_2", **settings)
    _, saved, path = cut.checkpoints[-1]
    again = notebook_type()
    results = train(
        again, cartpole, job_id="job_2", resume=resume_from(path, same_job=True), **settings
    )

    assert interrupted.stopped_by is StopReason.CANCELLED
    assert 16 <= saved.episode < 80
    joined = [*cut.episodes[: saved.episode], *again.episodes]
    for one, other in zip(whole.episodes, joined, strict=True):
        assert (one.episode, one.timestep) == (other.episode, other.timestep)
        assert (one.episode_reward, one.avg_reward) == (other.episode_reward, other.avg_reward)
    assert results.progress.episode == 80
    final, resumed = (read_weights(sink.checkpoints[-1][2]) for sink in (whole, again))
    assert all(bool((final[name] == resumed[name]).all()) for name in final)


def test_another_job_starts_from_the_saved_weights_with_counters_at_zero(
    train: Any, notebook: Any, notebook_type: Any
) -> None:
    train(notebook, net_arch=[8])
    source = notebook.checkpoints[-1][2]
    other = notebook_type(stop_after=1)
    train(other, job_id="job_2", resume=resume_from(source, same_job=False))

    _, progress, path = other.checkpoints[-1]
    assert progress.episode == 0
    before, after = read_weights(source), read_weights(path)
    assert all(bool((before[name] == after[name]).all()) for name in before)
    optimizer = read_state(path.with_suffix(".state.zip"))["optimizer"]
    assert int(optimizer["updates"]) > 0


def test_a_checkpoint_of_another_environment_cannot_be_resumed(
    train: Any, notebook: Any, notebook_type: Any
) -> None:
    train(notebook)
    source = resume_from(notebook.checkpoints[-1][2], same_job=False)

    with pytest.raises(ConfigurationError, match="Bandit") as caught:
        train(notebook_type(), cartpole, job_id="job_2", resume=source)
    assert caught.value.code == "checkpoint_incompatible"
    with pytest.raises(ConfigurationError, match="net_arch"):
        train(notebook_type(), job_id="job_2", resume=source, net_arch=[3])


def test_diverged_weights_fail_with_advice_and_are_not_saved(train: Any, notebook: Any) -> None:
    with pytest.raises(TrainingJobFailed, match="diverged") as caught:
        train(notebook, learning_rate=3e37)

    assert caught.value.code == "training_diverged"
    assert "learning_rate" in str(caught.value)
    assert notebook.checkpoints == []


def test_a_stop_is_obeyed_after_the_step_in_which_it_came(train: Any, notebook_type: Any) -> None:
    notebook = notebook_type(stop_after=26)
    results = train(notebook)

    assert results.stopped_by is StopReason.CANCELLED
    assert results.progress.timestep == 26 * 2  # its four sessions step in two crews
    # Nothing was learned in the second round yet: the checkpoint is of the moment before it.
    assert [(label, at.episode) for label, at, _ in notebook.checkpoints] == [("last", 8)]


def test_an_environment_that_fails_leaves_what_was_learned(
    train: Any, notebook: Any, countdown: type[Any]
) -> None:
    steps = iter(range(10**6))

    def fail() -> float:
        if next(steps) == 20:
            raise EnvironmentException("the pole broke", operation="step")
        return 1.0

    with pytest.raises(EnvironmentException, match="the pole broke"):
        train(notebook, lambda: countdown(fail))

    assert [(label, at.episode) for label, at, _ in notebook.checkpoints] == [("last", 16)]


def test_a_used_up_quota_fails_and_keeps_the_checkpoint(train: Any, notebook: Any) -> None:
    with pytest.raises(TrainingJobFailed, match=r"compute_quota\.max_timesteps 40"):
        train(notebook, compute_quota={"max_timesteps": 40})

    assert [label for label, _, _ in notebook.checkpoints] == ["last"]


def test_an_episode_that_the_environment_lost_is_played_again(
    train: Any, notebook: Any, bandit: type[Any]
) -> None:
    class Flaky(gymnasium.Wrapper[Any, Any, Any, Any]):
        lost = 0

        def step(self, action: Any) -> Any:
            observation, reward, terminated, truncated, info = super().step(action)
            if terminated and Flaky.lost < 3:
                Flaky.lost += 1
                return observation, reward, False, True, {"aborted": True}
            return observation, reward, terminated, truncated, info

    results = train(notebook, lambda: Flaky(bandit()), num_episodes=16)

    assert results.progress.episode == 16
    # The lost steps were taken all the same.
    assert results.progress.timestep == (16 + 3) * 4


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-2.0, 2.0, (2,)),
        spaces.MultiDiscrete([2, 3], start=[1, 5]),
        spaces.MultiBinary(3),
        spaces.Discrete(4, start=7),
    ],
    ids=["Box", "MultiDiscrete", "MultiBinary", "Discrete"],
)
def test_a_policy_acts_in_the_environments_own_space(
    train: Any, notebook: Any, space: gymnasium.Space[Any]
) -> None:
    class Picky(gymnasium.Env[Any, Any]):
        action_space = space
        observation_space = spaces.Dict(
            {"seen": spaces.Box(-1.0, 1.0, (2,)), "mode": spaces.Discrete(2, start=3)}
        )

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            return self._observe(), {}

        def step(self, action: Any) -> Any:
            assert self.action_space.contains(action)
            return (
                self._observe(),
                float(np.sum(action)),
                bool(self.np_random.random() < 0.3),
                False,
                {},
            )

        def _observe(self) -> Any:
            seen = self.np_random.uniform(-1, 1, 2).astype(np.float32)
            return {"seen": seen, "mode": np.int64(3 + self.np_random.integers(2))}

    train(notebook, Picky, num_episodes=16)

    policy = open_policy(notebook.checkpoints[-1][2])
    observation = Picky().reset(seed=1)[0]
    assert space.contains(policy.predict(observation))


def test_a_checkpoint_says_what_it_is_and_how_it_was_made(train: Any, notebook: Any) -> None:
    train(notebook, group_size=3, target_reward=50)

    manifest = read_manifest(notebook.checkpoints[-1][2])
    assert (manifest.algorithm, manifest.family) == ("GRPO", "grpo")
    assert (manifest.episode, manifest.seed, manifest.environment.version) == (24, 1, 2)
    assert manifest.hyperparameters["group_size"] == 3
    assert manifest.metrics["avg_reward"] == pytest.approx(np.mean(returns(notebook)))


def test_the_network_of_a_policy_gives_the_same_actions(train: Any, notebook: Any) -> None:
    train(notebook)
    policy = open_policy(notebook.checkpoints[-1][2])
    network, example = policy.network()
    (name,) = example

    for sign in (1, 2, 3):
        # The learner counts signs and arms from zero.
        seen = example[name] * 0 + (sign - 1)
        assert [int(arm) - 1 for arm in network(seen)] == [int(policy.predict(sign))] * 2

# stable-baselines3 and gymnasium leave their type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false

from typing import Any

import gymnasium
import numpy as np
import pytest
from rlcore import (
    ConfigurationError,
    EnvironmentException,
    SessionBusy,
    TrainingJobFailed,
)
from rleaas.training.checkpoint_file import read_manifest, read_tensors
from rleaas.training.trainer import StopReason, trainer_for


def cartpole() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("CartPole-v1")


def test_training_ends_exactly_at_the_budget_of_episodes(train: Any, notebook: Any) -> None:
    results = train(notebook, num_episodes=41)

    assert results.stopped_by is StopReason.EPISODE_BUDGET
    assert [progress.episode for progress in notebook.episodes] == list(range(1, 42))
    assert {progress.episode_reward for progress in notebook.episodes} == {4.0}


def test_checkpoints_come_at_their_interval_and_at_the_end(train: Any, notebook: Any) -> None:
    train(notebook, num_episodes=35, checkpoint_interval=10)

    # Between two updates: with episodes of 4 steps, two sessions end 8 of them in a rollout of 16.
    saved = [(label, progress.episode) for label, progress, _ in notebook.checkpoints]
    assert saved == [("best", 16), ("checkpoint", 24), ("checkpoint", 32), ("final", 35)]


def test_a_peak_between_two_intervals_is_saved_as_the_best(
    train: Any, notebook: Any, countdown: Any
) -> None:
    thirds = iter(range(10**6))

    def risen_for_48_episodes() -> float:
        played = next(thirds)
        return float(played) if played < 48 else -100.0

    train(
        notebook,
        lambda: countdown(risen_for_48_episodes),
        num_episodes=70,
        checkpoint_interval=60,
        average_over=20,
    )

    # Rollouts end 8 episodes each. The mean after 24 is what the first peak rises above; a fifth
    # of the interval after it are 44, and after 48 the mean falls.
    saved = [(label, progress.episode) for label, progress, _ in notebook.checkpoints]
    assert saved == [("best", 32), ("best", 48), ("checkpoint", 64), ("final", 70)]


def test_a_checkpoint_says_what_it_is(train: Any, notebook: Any) -> None:
    train(notebook)

    manifest = read_manifest(notebook.checkpoints[-1][2])
    assert manifest.environment.version == 2
    assert (manifest.algorithm, manifest.episode, manifest.seed) == ("PPO", 40, 1)
    assert manifest.packages["stable-baselines3"].startswith("2.")


def test_a_checkpoint_is_also_one_of_stable_baselines3(train: Any, notebook: Any) -> None:
    from stable_baselines3 import PPO

    train(notebook)

    model = PPO.load(notebook.checkpoints[-1][2], device="cpu")
    assert model.predict(np.array(3))[0] in (0, 1)


def test_no_half_written_file_lies_beside_the_checkpoints(train: Any, notebook: Any) -> None:
    train(notebook, checkpoint_interval=10)

    path = notebook.checkpoints[0][2]
    assert {file.suffix for file in path.parent.iterdir()} == {".zip"}


def test_the_same_seed_trains_the_same_policy(train: Any, notebook_type: Any) -> None:
    one, other = notebook_type(), notebook_type()
    train(one, cartpole, num_episodes=30)
    train(other, cartpole, num_episodes=30)

    rewards = [progress.episode_reward for progress in one.episodes]
    assert rewards == [progress.episode_reward for progress in other.episodes]


def test_every_episode_of_every_session_has_a_seed_of_its_own(
    train: Any, notebook: Any, countdown: Any
) -> None:
    made: list[Any] = []

    def make_env() -> Any:
        made.append(countdown())
        return made[-1]

    train(notebook, make_env)

    # The first reset of a session is repeated when stepping begins.
    seeds = [seed for env in made for seed in env.seeds[1:]]
    assert None not in seeds
    assert len(set(seeds)) == len(seeds) > 40


def test_the_target_ends_training_early(train: Any, notebook: Any) -> None:
    results = train(notebook, num_episodes=500, target_reward=4)

    assert results.stopped_by is StopReason.TARGET_REWARD
    assert results.progress.episode == 100
    assert results.progress.success_rate == 1.0


def test_the_budget_of_timesteps_ends_training(train: Any, notebook: Any) -> None:
    results = train(notebook, total_timesteps=50)

    assert results.stopped_by is StopReason.TIMESTEP_BUDGET
    assert results.progress.timestep == 50


def test_max_steps_ends_an_episode(train: Any, notebook: Any) -> None:
    train(notebook, max_steps=3)

    assert {progress.episode_length for progress in notebook.episodes} == {3}


@pytest.mark.parametrize(("n_steps", "rounds"), [(32, 37), (16, 48)])
def test_a_stop_is_obeyed_after_the_step_in_which_it_came_or_after_its_short_rollout(
    train: Any, notebook_type: Any, monkeypatch: Any, n_steps: int, rounds: int
) -> None:
    monkeypatch.setattr("rleaas.training.sb3.run.QUICK_SECONDS", 60.0)
    notebook = notebook_type(stop_after=37)
    results = train(notebook, n_steps=n_steps)

    assert results.stopped_by is StopReason.CANCELLED
    assert results.progress.timestep == rounds * 2
    assert notebook.checkpoints[-1][0] == "last"


def test_an_interrupt_leaves_a_valid_checkpoint(train: Any, notebook: Any, countdown: Any) -> None:
    steps = iter(range(10**6))

    def interrupt() -> float:
        if next(steps) == 30:
            raise KeyboardInterrupt
        return 1.0

    results = train(notebook, lambda: countdown(interrupt))

    assert results.stopped_by is StopReason.CANCELLED
    # What is saved is the moment before the rollout, which is where the job would go on.
    assert 0 < read_manifest(notebook.checkpoints[-1][2]).episode <= results.progress.episode


@pytest.mark.parametrize("reward", [float("nan"), float("inf")])
def test_a_reward_that_is_no_number_fails_with_its_place(
    train: Any, notebook: Any, countdown: Any, reward: float
) -> None:
    with pytest.raises(EnvironmentException, match=f"reward {reward}") as caught:
        train(notebook, lambda: countdown(lambda: reward))

    assert (caught.value.environment, caught.value.step) == ("CartPole@2", 3)
    assert caught.value.seed is not None


def test_an_observation_with_nan_fails(train: Any, notebook: Any) -> None:
    class Blind(gymnasium.ObservationWrapper[Any, Any, Any]):
        def observation(self, observation: Any) -> Any:
            return observation * np.nan

    with pytest.raises(EnvironmentException, match="observation with NaN"):
        train(notebook, lambda: Blind(cartpole()))


def test_an_environment_that_fails_later_leaves_what_was_learned(
    train: Any, notebook: Any, countdown: Any
) -> None:
    steps = iter(range(10**6))

    def fail() -> float:
        if next(steps) == 30:
            raise EnvironmentException("the pole broke", operation="step")
        return 1.0

    with pytest.raises(EnvironmentException, match="the pole broke"):
        train(notebook, lambda: countdown(fail))

    assert [label for label, _, _ in notebook.checkpoints] == ["last"]


def test_diverged_weights_fail_with_advice_and_are_not_saved(train: Any, notebook: Any) -> None:
    with pytest.raises(TrainingJobFailed, match="diverged") as caught:
        train(notebook, cartpole, learning_rate=1e30, n_epochs=3)

    assert "learning_rate" in str(caught.value)
    assert notebook.checkpoints == []


def test_a_used_up_quota_fails_and_keeps_the_checkpoint(train: Any, notebook: Any) -> None:
    with pytest.raises(TrainingJobFailed, match=r"compute_quota\.max_timesteps 64"):
        train(notebook, compute_quota={"max_timesteps": 64})

    assert [label for label, _, _ in notebook.checkpoints] == ["last"]


def test_sessions_without_room_are_done_without(train: Any, notebook: Any, countdown: Any) -> None:
    made = iter(range(10))

    def make_env() -> Any:
        if next(made) >= 1:
            raise SessionBusy("taken")
        return countdown()

    results = train(notebook, make_env, num_envs=None)

    assert results.progress.episode == 40
    assert any("1 sessions" in line for line in notebook.lines)


def test_sessions_that_were_asked_for_must_have_room(
    train: Any, notebook: Any, countdown: Any
) -> None:
    made = iter(range(10))

    def make_env() -> Any:
        if next(made) >= 2:
            raise SessionBusy("taken")
        return countdown()

    with pytest.raises(ConfigurationError, match="room for 2 sessions, num_envs asks for 4"):
        train(notebook, make_env, num_envs=4)


def test_spaces_that_start_elsewhere_reach_the_environment_as_its_own(
    train: Any, notebook: Any, countdown: Any
) -> None:
    results = train(notebook, lambda: countdown(start=3))

    assert results.progress.episode == 40


def test_a_resumed_training_starts_from_the_saved_weights(
    train: Any, notebook: Any, notebook_type: Any
) -> None:
    train(notebook, cartpole, num_episodes=20, net_arch=[8])
    source = notebook.checkpoints[-1][2]
    resumed = notebook_type()
    # No update within these three episodes: what is saved is what was loaded.
    train(resumed, cartpole, num_episodes=3, job_id="job_2", resume_from=source, n_steps=2000)

    for member in ("policy.pth", "policy.optimizer.pth"):
        before = read_tensors(source, member)
        after = read_tensors(resumed.checkpoints[-1][2], member)
        assert str(before) == str(after)


def test_a_checkpoint_of_other_spaces_cannot_be_resumed(
    train: Any, notebook: Any, notebook_type: Any
) -> None:
    train(notebook)

    with pytest.raises(ConfigurationError, match="CartPole@2") as caught:
        train(notebook_type(), cartpole, job_id="job_2", resume_from=notebook.checkpoints[-1][2])
    assert caught.value.code == "checkpoint_incompatible"


def test_a_resumed_training_cannot_change_the_network(
    train: Any, notebook: Any, notebook_type: Any
) -> None:
    train(notebook)

    with pytest.raises(ConfigurationError, match="net_arch"):
        train(
            notebook_type(),
            job_id="job_2",
            resume_from=notebook.checkpoints[-1][2],
            net_arch=[8],
        )


def test_the_numbers_of_the_algorithm_are_told(train: Any, notebook: Any) -> None:
    train(notebook, num_episodes=140)

    told = {"loss", "policy_loss", "value_loss", "entropy", "kl", "steps_per_second"}
    assert told <= set(notebook.rollouts[-1])
    # Two actions at random: at most ln 2, and hardly less after a few small updates.
    assert 0.6 < notebook.rollouts[0]["entropy"] <= 0.6932


def test_a_batch_that_does_not_divide_a_rollout_is_mentioned_in_the_log(
    train: Any, notebook: Any
) -> None:
    train(notebook, batch_size=30)

    assert any("mini-batch" in line for line in notebook.lines)


def test_the_trainer_of_ppo_is_found_by_its_name() -> None:
    assert type(trainer_for("ppo")).__name__ == "SB3Trainer"


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", [0, 1])
def test_cartpole_is_solved_by_the_defaults(train: Any, notebook: Any, seed: int) -> None:
    results = train(
        notebook,
        cartpole,
        num_episodes=1500,
        max_steps=500,
        seed=seed,
        num_envs=None,
        n_steps=None,
        n_epochs=None,
        target_reward=475,
    )

    assert results.stopped_by is StopReason.TARGET_REWARD

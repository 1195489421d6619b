"""Runs on environments that step many lanes at once."""

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import rlmesh
import rlmesh.numpy
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from rlmesh import EnvServer, RunResult, StepEvent
from rlmesh.runs.hooks import RunHooks

SEEDS = list(range(3, 14))
LANES = 4


class Batched(rlmesh.numpy.Model):
    """Balances a pole, in one call for all lanes."""

    def load(self) -> None:
        self.sizes: list[int] = []

    def predict_batch(self, observations: Any) -> Any:
        self.sizes.append(len(observations))
        return (observations[:, 2] + observations[:, 3] > 0).astype(np.int64)


def make() -> Any:
    return gym.make("CartPole-v1", max_episode_steps=60)


def single(**arguments: Any) -> RunResult:
    return rlmesh.run(Batched(), make(), seeds=SEEDS, **arguments)


def agreeing(result: RunResult, **arguments: Any) -> bool:
    return single(**arguments).agrees_with(result) == () and result.seeds == tuple(SEEDS)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_lanes_in_this_process_play_the_episodes_that_one_environment_plays(
    mode: AutoresetMode,
) -> None:
    model = Batched()
    env = SyncVectorEnv([make] * LANES, autoreset_mode=mode)

    result = rlmesh.run(model, env, seeds=SEEDS)

    assert agreeing(result)
    assert [episode.index for episode in result.episodes] == list(range(len(SEEDS)))
    assert max(model.sizes) == LANES
    # All lanes share a call, so there are about a quarter as many.
    assert len(model.sizes) < result.total_steps / LANES * 1.5


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_served_lanes_play_them_too_and_keep_to_the_step_limit(mode: AutoresetMode) -> None:
    with EnvServer(make, num_envs=LANES, autoreset_mode=mode) as server:
        result = rlmesh.run(Batched(), server.address, seeds=SEEDS, max_episode_steps=25)

    assert agreeing(result, max_episode_steps=25)
    assert {episode.steps for episode in result.episodes} == {25}
    assert {episode.outcome.value for episode in result.episodes} == {"truncated"}


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_served_vector_environment_plays_them_too(mode: AutoresetMode) -> None:
    with EnvServer(lambda: SyncVectorEnv([make] * LANES, autoreset_mode=mode)) as server:
        result = rlmesh.run(Batched(), server.address, seeds=SEEDS)

    assert agreeing(result)


@pytest.mark.parametrize("room", [rlmesh, rlmesh.numpy])
def test_a_handle_of_lanes_is_driven_as_it_is(room: Any) -> None:
    with EnvServer(make, num_envs=LANES) as server, room.RemoteVectorEnv(server.address) as handle:
        assert agreeing(rlmesh.run(Batched(), handle, seeds=SEEDS))


def test_random_samples_do_not_depend_on_the_lane() -> None:
    env = SyncVectorEnv([make] * LANES)

    one = rlmesh.run(rlmesh.RANDOM_SAMPLE, make(), seeds=SEEDS)

    assert one.agrees_with(rlmesh.run(rlmesh.RANDOM_SAMPLE, env, seeds=SEEDS)) == ()


def test_a_model_without_batches_keeps_the_memory_of_each_episode_apart() -> None:
    def predict(observation: Any, context: Any) -> int:
        state = context["state"]
        assert context["predict_index"] == state.setdefault("count", 0)
        state["count"] += 1
        return int(context["predict_index"]) % 2

    model = rlmesh.numpy.Model(predict)
    one = rlmesh.run(model, make(), seeds=SEEDS)

    lanes = rlmesh.run(model, SyncVectorEnv([make] * LANES), seeds=SEEDS)

    assert one.agrees_with(lanes) == ()


class Lockstep(gym.vector.VectorEnv[Any, Any, Any]):
    """Lanes that only start together, and go on by themselves at the end of an episode."""

    def __init__(self, make: Callable[[], Any], count: int) -> None:
        self._inner: Any = SyncVectorEnv([make] * count)
        self.num_envs = count
        self.metadata = dict(self._inner.metadata)
        self.single_observation_space = self._inner.single_observation_space
        self.single_action_space = self._inner.single_action_space
        self.observation_space = self._inner.observation_space
        self.action_space = self._inner.action_space
        self.resets = 0

    def reset(self, *, seed: Any = None, options: Mapping[str, Any] | None = None) -> Any:
        assert options is None
        self.resets += 1
        return self._inner.reset(seed=seed)

    def step(self, actions: Any) -> Any:
        return self._inner.step(actions)

    def close(self, **kwargs: Any) -> None:
        self._inner.close()


def test_lanes_that_cannot_be_reset_apart_keep_their_seeds_all_the_same() -> None:
    env = Lockstep(make, LANES)

    result = rlmesh.run(Batched(), env, seeds=SEEDS)

    assert agreeing(result)
    assert env.resets == 3  # 11 episodes in rounds of 4


def test_a_server_whose_lanes_cannot_be_reset_apart_keeps_their_seeds_all_the_same() -> None:
    with EnvServer(lambda: Lockstep(make, LANES)) as server:
        assert agreeing(rlmesh.run(Batched(), server.address, seeds=SEEDS))


@pytest.mark.parametrize("served", [False, True])
def test_a_lane_that_fails_costs_only_its_own_episode(corridor: Any, served: bool) -> None:
    def on_step(seed: int | None, step: int) -> None:
        if (seed, step) == (6, 2):
            raise ZeroDivisionError("torque")

    def lane() -> Any:
        return corridor(4, on_step=on_step)

    right = rlmesh.numpy.Model(lambda observation: 1)
    alone = rlmesh.run(right, lane(), seeds=SEEDS)
    if served:
        with EnvServer(lane, num_envs=LANES) as server:
            result = rlmesh.run(right, server.address, seeds=SEEDS)
    else:
        result = rlmesh.run(right, SyncVectorEnv([lane] * LANES), seeds=SEEDS)

    assert alone.agrees_with(result) == ()
    assert [e.seed for e in result.episodes if e.outcome.value == "env_error"] == [6]
    assert "torque" in (result.episodes[3].error or "")


def test_trials_reach_each_lane(corridor: Any) -> None:
    made: list[Any] = []

    def lane() -> Any:
        made.append(corridor(3))
        made[-1].metadata = {"rlmesh.env.v1.reset_options": ["trial_index"]}
        return made[-1]

    right = rlmesh.numpy.Model(lambda observation: 1)
    with EnvServer([lane(), lane()]) as server:
        rlmesh.run(right, server.address, seeds=range(5), trial_index_base=10)

    given = {
        seed: options["trial_index"]
        for env in made
        for seed, options in zip(env.seeds, env.options, strict=True)
        if options
    }
    assert given == {0: 10, 1: 11, 2: 12, 3: 13, 4: 14}


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_hooks_see_the_steps_of_each_lane_as_those_of_one_environment(
    mode: AutoresetMode, corridor: Any
) -> None:
    class Diary(RunHooks):
        def __init__(self) -> None:
            self.events: dict[int, list[StepEvent]] = {}

        def on_step(self, event: StepEvent) -> None:
            self.events.setdefault(event.seed, []).append(event)

    def lane() -> Any:
        return corridor(3, info={"success": True})

    right = rlmesh.numpy.Model(lambda observation: 1)
    diary = Diary()
    env = SyncVectorEnv([lane] * 2, autoreset_mode=mode)

    result = rlmesh.run(right, env, seeds=range(5), hooks=diary)

    assert result.success_rate == 1.0
    for seed in range(5):
        events = diary.events[seed]
        assert [event.observation.tolist() for event in events] == [[0.0], [1.0], [2.0]]
        assert [event.next_observation.tolist() for event in events] == [[1.0], [2.0], [3.0]]
        assert [event.terminated for event in events] == [False, False, True]
        assert [event.action for event in events] == [1, 1, 1]
        assert events[-1].info["success"]
        assert len({event.lane for event in events}) == 1
    assert {event.lane for events in diary.events.values() for event in events} == {0, 1}


def test_a_wrong_batch_is_the_models_error() -> None:
    class Short(rlmesh.numpy.Model):
        def predict_batch(self, observations: Any) -> Any:
            return np.zeros(len(observations) - 1, np.int64)

    with pytest.raises(rlmesh.InvalidValueError) as caught:
        rlmesh.run(Short(), SyncVectorEnv([make] * 2), seeds=SEEDS)

    assert caught.value.__dict__["partial"].coverage.scored == 0


def test_a_session_drives_one_environment_only() -> None:
    with (
        rlmesh.session(Batched(), SyncVectorEnv([make] * 2)) as driven,
        pytest.raises(rlmesh.ConfigurationError, match="a session drives one environment"),
    ):
        driven.reset(seed=0)


@pytest.mark.parametrize("served", [False, True])
def test_lanes_that_take_one_seed_together_are_played_and_their_episodes_have_none(
    served: bool,
) -> None:
    def vector() -> Any:
        # gymnasium's own vector CartPole takes a number, and no list.
        return gym.make_vec("CartPole-v1", num_envs=LANES, vectorization_mode="vector_entry_point")

    def played() -> RunResult:
        if not served:
            return rlmesh.run(Batched(), vector(), seeds=SEEDS)
        with EnvServer(vector()) as server:
            return rlmesh.run(Batched(), server.address, seeds=SEEDS)

    first, second = played(), played()

    assert first.coverage.scored == len(SEEDS)
    assert set(first.seeds) == {None}
    assert "takes one seed for all lanes: it was started with 3" in " ".join(first.advisories)
    assert [episode.reward for episode in first.episodes] == [
        episode.reward for episode in second.episodes
    ]

"""What RemoteVectorEnv takes and gives, and who can use it."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
import rlmesh
import rlmesh.jax
import rlmesh.torch
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import ClipReward, RecordEpisodeStatistics, RescaleAction
from rlcore import InvalidActionError, SessionClosed
from rlmesh.numpy import RemoteVectorEnv
from rlmesh.server.env_server import EnvServer
from rlmesh.values import Tensor

Serve = Callable[..., EnvServer]
BOX = np.arange(12, dtype=np.float32).reshape(2, 2, 3) / 12


ONES = np.ones(1, np.float32)


def objects(values: list[Any]) -> Any:
    array = np.empty(len(values), object)
    array[:] = values
    return array


SHAPES: dict[str, list[Any]] = {
    "box": [
        BOX,
        BOX.astype(np.float64),
        list(BOX),
        tuple(BOX),
        BOX.tolist(),
        [BOX[0].tolist(), BOX[1]],
        objects(list(BOX)),
        torch.tensor(BOX),
        [torch.tensor(lane) for lane in BOX],
        Tensor(BOX, BOX.shape, "float32"),
    ],
    "discrete": [
        np.array([-2, 2]),
        np.array([-2, 2], np.int32),
        np.array([[-2], [2]]),
        [-2, 2],
        (-2, np.int64(2)),
        [np.array(-2), np.array([2])],
        objects([-2, 2]),
        torch.tensor([-2, 2]),
        np.array([-2.0, 2.0]),
    ],
    "text": [("aé", "z"), ["aé", "z"], np.array(["aé", "z"]), objects(["aé", "z"])],
}


@pytest.mark.parametrize(
    ("kind", "actions"), [(kind, actions) for kind, all_ in SHAPES.items() for actions in all_]
)
def test_actions_arrive_alike_in_whatever_form_they_are_given(
    kind: str, actions: Any, wanderer: Any, serve: Serve
) -> None:
    lanes = [wanderer(kind), wanderer(kind)]
    with RemoteVectorEnv(serve(lanes).address) as env:
        env.reset(seed=0)
        env.step(actions)
    expected = {"box": list(BOX), "discrete": [-2, 2], "text": ["aé", "z"]}[kind]
    np.testing.assert_equal([lane.actions[0] for lane in lanes], expected)


def test_trees_of_actions_are_batched_or_one_for_each_lane(wanderer: Any, serve: Serve) -> None:
    lanes = [wanderer("dict"), wanderer("dict")]
    space = lanes[0].action_space
    space.seed(4)
    each = [space.sample(), space.sample()]
    batched = {
        "pose": np.stack([one["pose"] for one in each]),
        "nested": {
            key: np.stack([one["nested"][key] for one in each]) for key in ("buttons", "gears")
        },
        "pair": (np.array([one["pair"][0] for one in each]), [one["pair"][1] for one in each]),
    }
    with RemoteVectorEnv(serve(lanes).address) as env:
        for actions in (each, tuple(each), objects(each), batched):
            env.reset(seed=0)
            env.step(actions)
    for lane, one in zip(lanes, each, strict=True):
        for given in lane.actions:
            np.testing.assert_equal(given, one)


@pytest.mark.parametrize("actions", [BOX[:1], 1.0, None, [BOX[0]], np.zeros((2, 7)), "no"])
def test_what_is_not_an_action_for_each_lane_steps_nobody(
    actions: Any, wanderer: Any, serve: Serve
) -> None:
    lanes = [wanderer(), wanderer()]
    with RemoteVectorEnv(serve(lanes).address) as env:
        env.reset()
        with pytest.raises(InvalidActionError):
            env.step(actions)
        assert [lane.steps for lane in lanes] == [0, 0]
        env.step(BOX)


def test_results_are_arrays_with_an_element_for_each_lane(wanderer: Any, serve: Serve) -> None:
    with RemoteVectorEnv(serve([wanderer(), wanderer()]).address) as env:
        env.reset(seed=0)
        observations, rewards, terminated, truncated, _ = env.step(BOX)
    assert (observations.shape, observations.dtype) == ((2, 2, 3), np.float32)
    assert (rewards.shape, rewards.dtype) == ((2,), np.float64)
    assert (terminated.shape, terminated.dtype) == ((2,), np.bool_)
    assert (truncated.shape, truncated.dtype) == ((2,), np.bool_)
    observations[:] = rewards[:, None, None]  # they are the caller's own
    terminated[:] = True


def test_plain_values_are_tensors_and_python(wanderer: Any, serve: Serve) -> None:
    server = serve([wanderer("dict"), wanderer("dict")], autoreset_mode="next_step")
    with rlmesh.RemoteVectorEnv(server.address) as env:
        observations, info = env.reset(seed=0)
        assert isinstance(observations["pose"], Tensor)
        assert observations["pose"].shape == [2, 3]
        numbers, texts = observations["pair"]
        assert isinstance(numbers, list)
        assert isinstance(texts, tuple)
        assert info["episode_ids"] == list(env.episode_ids)
        assert env.action_space.contains(env.action_space.sample())
        _, rewards, terminated, _, info = env.step(env.action_space.sample())
        assert type(rewards) is type(terminated) is np.ndarray
        assert (rewards.dtype, rewards.shape) == (np.float64, (2,))
        assert terminated.dtype == np.bool_
        assert info["completed_episodes"] == 0
        assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        frame = env.render(env_index=1)
        assert (frame.dtype, frame.shape) == ("uint8", [4, 6, 3])


@pytest.mark.parametrize("framework", [rlmesh.torch, rlmesh.jax])
def test_each_framework_has_its_own_arrays(framework: Any, wanderer: Any, serve: Serve) -> None:
    with framework.RemoteVectorEnv(serve([wanderer(), wanderer()]).address) as env:
        assert gymnasium.vector.VectorEnv in type(env).mro()
        observations, _ = env.reset(seed=0)
        kind = observations.__class__
        one = framework.space_from_spec(env.action_space_spec)
        assert type(one.sample()) is kind
        assert env.action_space.contains(env.action_space.sample())
        env.step(env.action_space.sample())
        observations, rewards, terminated, _, _ = env.step([one.sample(), one.sample()])
        assert type(rewards) is type(terminated) is type(observations) is kind
        assert tuple(observations.shape) == (2, 2, 3)


def test_a_seeded_reset_seeds_the_handle_too(wanderer: Any, serve: Serve) -> None:
    with RemoteVectorEnv(serve([wanderer(), wanderer()]).address) as env:
        env.reset(seed=11)
        assert env.np_random_seed == 11
        first = env.np_random.integers(2**30)
        env.reset(seed=11)
        assert env.np_random.integers(2**30) == first


def test_a_closed_client_says_so(wanderer: Any, serve: Serve) -> None:
    env = RemoteVectorEnv(serve([wanderer(), wanderer()]).address)
    env.reset()
    env.close()
    env.close()
    assert env.closed
    for call in (env.reset, env.render, partial(env.step, BOX)):
        with pytest.raises(SessionClosed):
            call()


def test_statistics_of_episodes_are_recorded_as_for_a_local_one(serve: Serve) -> None:
    make = partial(gymnasium.make, "CartPole-v1", max_episode_steps=12)
    here: Any = RecordEpisodeStatistics(SyncVectorEnv([make] * 2))
    remote: Any = RecordEpisodeStatistics(RemoteVectorEnv(serve(SyncVectorEnv([make] * 2)).address))
    for env in (here, remote):
        env.reset(seed=1)
        for _ in range(60):
            env.step(np.array([1, 0]))
        env.close()
    assert list(remote.return_queue) == list(here.return_queue)
    assert len(remote.length_queue) > 4
    assert list(remote.length_queue) == list(here.length_queue)


def test_wrappers_of_values_work_on_it(serve: Serve) -> None:
    address = serve(SyncVectorEnv([partial(gymnasium.make, "Pendulum-v1")] * 2)).address
    # Bounds of the space's own type, as gymnasium warns of any other.
    env: Any = ClipReward(RescaleAction(RemoteVectorEnv(address), -ONES, ONES), -0.25, 0.0)
    env.reset(seed=0)
    _, rewards, _, _, _ = env.step(np.ones((2, 1), np.float32))
    assert rewards.min() == -0.25
    env.close()


def test_an_environment_can_be_made_again_from_its_spec(wanderer: Any, serve: Serve) -> None:
    address = serve(wanderer, num_envs=2).address
    with RemoteVectorEnv(address) as env:
        assert env.spec is not None
        again = gymnasium.make_vec(env.spec, num_envs=2)
        assert isinstance(again, RemoteVectorEnv)
        assert again.num_envs == 2
        again.close()


def test_it_needs_no_gymnasium(wanderer: Any, serve: Serve) -> None:
    server = serve([wanderer(), wanderer()], autoreset_mode="same_step")
    program = f"""
import sys
sys.modules["gymnasium"] = None
import numpy as np
from rlmesh.numpy import RemoteVectorEnv
with RemoteVectorEnv({server.address!r}) as env:
    observations, info = env.reset(seed=[1, 2])
    assert observations.shape == (2, 2, 3), observations.shape
    for _ in range(8):
        observations, rewards, terminated, truncated, info = env.step(env.action_space.sample())
        if "final_obs" in info:
            break
    assert info["_final_obs"].any(), info
    print(env.action_space.shape, env.metadata["autoreset_mode"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=False
    )
    assert done.stderr == ""
    assert done.stdout == "[2, 2, 3] SameStep\n"


def test_batched_spaces_of_ours_are_those_of_gymnasium() -> None:
    from gymnasium.vector.utils import batch_space
    from rlmesh.spaces import from_gymnasium_space
    from rlmesh.spaces.batched import batched

    single = spaces.Dict(
        box=spaces.Box(np.array([-1.0, 0.0]), np.array([1.0, 9.0]), (2,), np.float64),
        one=spaces.Discrete(5, start=-2),
        many=spaces.MultiDiscrete([3, 4], start=[1, -1]),
        both=spaces.Tuple((spaces.Discrete(3), spaces.Text(4, charset="ab"))),
    )
    ours = batched(from_gymnasium_space(single), 3)
    theirs: Any = batch_space(single, 3)
    theirs.seed(0)
    for _ in range(5):
        assert ours.contains(theirs.sample())
    converted: Any = ours.to_gymnasium_space()
    assert converted["box"] == theirs["box"]
    assert converted["both"] == theirs["both"]

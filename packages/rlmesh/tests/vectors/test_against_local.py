"""A served vector environment and the same one here, stepped side by side."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from rlmesh.numpy import RemoteVectorEnv
from rlmesh.server.env_server import EnvServer

LANES = 3
Serve = Callable[..., EnvServer]


def local(make: Callable[[], Any], mode: AutoresetMode) -> SyncVectorEnv[Any, Any]:
    return SyncVectorEnv([make] * LANES, autoreset_mode=mode)


def assert_alike(remote: RemoteVectorEnv, here: Any, *, seed: int, steps: int) -> None:
    assert_same(remote.reset(seed=seed), here.reset(seed=seed))
    here.action_space.seed(seed)
    for _ in range(steps):
        actions = here.action_space.sample()
        ours, theirs = remote.step(actions), here.step(actions)
        assert_same(ours, theirs)
        over = theirs[2] | theirs[3]
        if here.metadata["autoreset_mode"] is AutoresetMode.DISABLED and over.any():
            mask = {"reset_mask": over}
            assert_same(remote.reset(options=mask), here.reset(options=dict(mask)))


def assert_same(ours: Any, theirs: Any) -> None:
    ours, theirs = numbers_as_python(ours), numbers_as_python(theirs)
    assert data_equivalence(ours, theirs), f"{ours}\nis not\n{theirs}"


def numbers_as_python(value: Any) -> Any:
    """The value with numpy's integers as Python's, which is what a single Discrete value is."""
    found = value.__class__
    if found is dict:
        return {key: numbers_as_python(part) for key, part in value.items()}
    if found is tuple:
        return tuple(numbers_as_python(part) for part in value)
    if found is np.ndarray and value.dtype.kind == "O":
        return [numbers_as_python(part) for part in value]
    return int(value) if found is np.int64 else value


@pytest.mark.parametrize("way", ["grpc", "local"])
@pytest.mark.parametrize("kind", ["box", "discrete", "dict", "text"])
@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_vector_environment_behaves_as_it_does_here(
    mode: AutoresetMode, kind: str, way: Literal["grpc", "local"], wanderer: Any, serve: Serve
) -> None:
    make = partial(wanderer, kind)
    server, here = serve(local(make, mode)), local(make, mode)
    with RemoteVectorEnv(server.address, lane=way) as remote:
        assert isinstance(remote, gymnasium.vector.VectorEnv)
        for seed in (0, 7):
            assert_alike(remote, here, seed=seed, steps=25)


@pytest.mark.parametrize("kind", ["box", "discrete", "dict", "text"])
@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_list_of_environments_behaves_as_a_vector_environment_does(
    mode: AutoresetMode, kind: str, wanderer: Any, serve: Serve
) -> None:
    make = partial(wanderer, kind)
    server = serve([make() for _ in range(LANES)], autoreset_mode=mode)
    here = local(make, mode)
    with RemoteVectorEnv(server.address) as remote:
        for seed in (0, 7):
            assert_alike(remote, here, seed=seed, steps=25)


@pytest.mark.parametrize("kind", ["box", "discrete", "dict", "text"])
def test_its_spaces_and_metadata_are_those_of_the_local_one(
    kind: str, wanderer: Any, serve: Serve
) -> None:
    here: Any = local(partial(wanderer, kind), AutoresetMode.SAME_STEP)
    server = serve(local(partial(wanderer, kind), AutoresetMode.SAME_STEP))
    with RemoteVectorEnv(server.address) as client:
        remote: Any = client
        assert remote.num_envs == LANES
        assert remote.observation_space == here.observation_space
        assert remote.action_space == here.action_space
        assert remote.single_observation_space == here.single_observation_space
        assert remote.single_action_space == here.single_action_space
        assert remote.metadata == here.metadata
        assert remote.render_mode == "rgb_array"


@pytest.mark.slow
def test_processes_of_gymnasium_behave_as_the_local_ones(serve: Serve) -> None:
    make = partial(gymnasium.make, "CartPole-v1", max_episode_steps=9)
    server = serve(make, num_envs=LANES, vectorization_mode="async", autoreset_mode="same_step")
    here = local(make, AutoresetMode.SAME_STEP)
    with RemoteVectorEnv(server.address) as remote:
        assert_alike(remote, here, seed=3, steps=30)

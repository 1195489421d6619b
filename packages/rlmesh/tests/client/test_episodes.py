"""What a client sees of episodes that go well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from rlcore import EnvironmentException, SessionClosed
from rlmesh.client.remote_env import RemoteEnv as PlainEnv
from rlmesh.numpy import RemoteEnv
from rlmesh.server.env_server import EnvServer
from rlmesh.values import Tensor

Serve = Callable[..., EnvServer]


def test_a_remote_cartpole_is_the_local_one_step_by_step(serve: Serve, either_address: str) -> None:
    local = gymnasium.make("CartPole-v1")
    server = serve(lambda: gymnasium.make("CartPole-v1"), either_address)
    with RemoteEnv(server.address) as remote:
        for seed in (3, 4):
            expected, _ = local.reset(seed=seed)
            observation, info = remote.reset(seed=seed)
            assert np.array_equal(observation, expected)
            assert info == {}
            ended = False
            while not ended:
                here, there = local.step(1), remote.step(1)
                assert np.array_equal(here[0], there[0])
                assert here[1:] == (*there[1:4], here[4])
                ended = there[2]


def test_an_observation_belongs_to_the_caller(serve: Serve, scripted: Any) -> None:
    with RemoteEnv(serve(scripted())) as env:
        first, _ = env.reset()
        first += 5
        second, *_ = env.step(0)
    assert first.tolist() == [5, 6]
    assert second.tolist() == [1, 1]


def test_the_plain_client_gives_tensors_and_episode_ids(serve: Serve, scripted: Any) -> None:
    with PlainEnv(serve(scripted())) as env:
        observation, info = env.reset(seed=1)
        assert isinstance(observation, Tensor)
        assert observation.shape == [2]
        assert info["episode_ids"] == [env.episode_id]
        assert env.step(0)[4]["episode_ids"] == [env.episode_id]


def test_seed_and_options_reach_the_environment(serve: Serve, scripted: Any) -> None:
    inner = scripted()
    with RemoteEnv(serve(inner)) as env:
        env.reset(seed=np.int64(7), options={"level": 2})
        env.reset()
    assert inner.resets == [(7, {"level": 2}), (None, None)]


def test_a_seed_beyond_64_bits_is_refused_here(serve: Serve, scripted: Any) -> None:
    with RemoteEnv(serve(scripted())) as env, pytest.raises(OverflowError):
        env.reset(seed=2**63)


def test_info_values_that_cannot_travel_do_not_end_the_episode(
    serve: Serve, scripted: Any, caplog: pytest.LogCaptureFixture
) -> None:
    odd = {"when": {1, 2}, "fine": 3, "nothing": None}

    def answer(env: Any, action: object) -> object:
        return env.observation(), 1.0, False, False, odd

    with RemoteEnv(serve(scripted(answer))) as env:
        env.reset()
        *_, info = env.step(0)
        env.step(0)
    assert info["fine"] == 3
    assert info["nothing"] is None
    assert isinstance(info["when"], str | list)
    assert len([one for one in caplog.records if "simplified" in one.message]) == 1


def test_environments_of_the_older_form_are_served(serve: Serve, scripted: Any) -> None:
    def old(env: Any, action: int) -> object:
        return env.observation(), 1.0, True, {"TimeLimit.truncated": action == 1}

    with RemoteEnv(serve(scripted(old))) as env:
        env.reset()
        assert env.step(0)[2:4] == (True, False)
        assert env.step(1)[2:4] == (False, True)


def test_frames_arrive_pixel_by_pixel(serve: Serve, scripted: Any) -> None:
    inner = scripted()
    inner.render_mode = "rgb_array"
    frame = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    inner.render = lambda: frame
    with RemoteEnv(serve(inner)) as env:
        env.reset()
        assert env.render_mode == "rgb_array"
        rendered = env.render()
        assert rendered is not None
        assert rendered.tolist() == frame.tolist()


def test_an_environment_without_a_picture_renders_none(serve: Serve, scripted: Any) -> None:
    inner = scripted()
    inner.render = lambda: None
    with RemoteEnv(serve(inner)) as env:
        env.reset()
        assert env.render() is None


def test_a_step_before_the_first_reset_is_refused(serve: Serve, scripted: Any) -> None:
    inner = scripted()
    with RemoteEnv(serve(inner)) as env:
        with pytest.raises(EnvironmentException, match=r"Call reset\(\) first") as caught:
            env.step(0)
        assert caught.value.code == "not_ready"
        env.reset()
        env.step(0)
    assert inner.steps == 1


def test_a_closed_client_says_so(serve: Serve, scripted: Any) -> None:
    env = RemoteEnv(serve(scripted()))
    env.reset()
    env.close()
    env.close()
    for call in (env.reset, lambda: env.step(0), env.render):
        with pytest.raises(SessionClosed, match="closed"):
            call()


def test_the_contract_is_the_same_on_both_sides(serve: Serve) -> None:
    server = serve(lambda: gymnasium.make("CartPole-v1"))
    with RemoteEnv(server) as env:
        assert env.env_contract == server.env_contract
        assert env.env_contract.digest == server.env_contract.digest
        assert env.identity.name == "CartPole-v1"
        assert env.identity.version is None
        assert env.identity.contract_digest == server.env_contract.digest
        assert env.selected_workflow_edition == "2026.06"

"""The NumPy client is a gymnasium environment like any other."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, cast

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit
from rlcore import UnsupportedError
from rlmesh.numpy import RemoteEnv, RemoteVectorEnv
from rlmesh.protocol.handshake import REWARD_THRESHOLD, Peer, Welcome
from rlmesh.server.env_server import EnvServer
from rlmesh.server.options import ServeOptions

Serve = Callable[..., EnvServer]


def cartpole() -> Any:
    return gymnasium.make("CartPole-v1")


def warnings_of_check(env: Any, **options: bool) -> list[str]:
    """Check an environment and return what gymnasium warns about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(env, **options)
    return [str(one.message) for one in caught]


def test_it_passes_gymnasiums_own_check_as_the_local_one_does(serve: Serve) -> None:
    # Locally the check would open a window.
    local = warnings_of_check(cartpole().unwrapped, skip_render_check=True)
    with RemoteEnv(serve(cartpole)) as env:
        assert isinstance(env, gymnasium.Env)
        assert warnings_of_check(env) == local


def test_a_shared_environment_passes_too_without_a_spec(serve: Serve) -> None:
    with RemoteEnv(serve(cartpole())) as env:
        assert env.spec is None
        assert "not having a spec" in warnings_of_check(env)[-1]


def test_spaces_are_gymnasiums_and_equal_the_local_ones(serve: Serve) -> None:
    local = cartpole()
    with RemoteEnv(serve(cartpole)) as env:
        assert env.observation_space == local.observation_space
        assert env.action_space == local.action_space
        assert env.metadata["render_fps"] == 50
        assert env.metadata["render_modes"] == []


def test_a_wrong_argument_is_told_under_the_client_s_own_name(serve: Serve) -> None:
    server = serve([cartpole(), cartpole()])
    many: Any = RemoteVectorEnv(server.address)  # Any: checkers know the arguments
    for method in ("reset", "step", "render"):
        with pytest.raises(TypeError, match=rf"^RemoteVectorEnv\.{method}\(\) got an unexpected"):
            getattr(many, method)(foo=1)
    many.close()
    with pytest.raises(TypeError, match=r"^RemoteEnv\.reset\(\) got an unexpected"):
        cast("Any", RemoteEnv(serve(cartpole).address)).reset(foo=1)


def test_wrappers_take_it_for_a_local_one(serve: Serve) -> None:
    with RemoteEnv(serve(cartpole)) as env:
        wrapped = RecordEpisodeStatistics(TimeLimit(env, max_episode_steps=3))
        wrapped.reset(seed=1)
        for _ in range(2):
            assert wrapped.step(0)[3] is False
        _, _, terminated, truncated, info = wrapped.step(0)
        assert (terminated, truncated) == (False, True)
        assert info["episode"]["l"] == 3


def test_its_spec_makes_another_client(serve: Serve) -> None:
    with RemoteEnv(serve(cartpole)) as env:
        assert env.spec is not None
        assert env.spec.id == "CartPole-v1"
        another = env.spec.make()
        another.reset(seed=1)
        env.reset(seed=1)
        assert isinstance(another.unwrapped, RemoteEnv)
        another.close()
        with pytest.raises(UnsupportedError, match="'human'"):
            env.spec.make(render_mode="human")


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_its_spec_says_at_which_return_it_is_solved(serve: Serve, isolation: Any) -> None:
    """gymnasium registers CartPole-v1 with 475; its contract, whose digest is an identity, is
    what it was before servers told that."""
    with RemoteEnv(serve(cartpole, options=ServeOptions(isolation=isolation))) as env:
        assert env.spec is not None
        assert env.spec.reward_threshold == 475.0
        assert env.env_contract.digest == (
            "sha256:bfac299f32848757691486d15635ca802fdbda6d2d9b57674d89cb742f326f76"
        )


def test_the_spec_of_lanes_says_it_too(serve: Serve) -> None:
    with RemoteVectorEnv(serve(cartpole, num_envs=2)) as env:
        assert env.spec is not None
        assert env.spec.reward_threshold == 475.0


def test_a_spec_of_an_environment_that_is_never_solved_says_nothing(serve: Serve) -> None:
    with RemoteEnv(serve(lambda: gymnasium.make("Pendulum-v1"))) as env:
        assert env.spec is not None
        assert env.spec.reward_threshold is None


@pytest.mark.parametrize("told", ["", "nan", "inf", "high"])
def test_a_threshold_that_is_no_number_is_none(told: str) -> None:
    peer = Peer("env_server", extra={REWARD_THRESHOLD: told})
    assert Welcome(True, (), None, {}, peer).reward_threshold is None


def test_its_spec_makes_another_client_with_the_token_and_does_not_print_it(serve: Serve) -> None:
    server = serve(cartpole, token="open sesame")
    with RemoteEnv(server.address, token="open sesame") as env:
        assert env.spec is not None
        assert server.address in str(env.spec)
        for text in (str(env.spec), repr(vars(env.spec.entry_point)), env.spec.pprint(True)):
            assert "sesame" not in str(text)
        env.spec.make().close()


def test_a_reset_seeds_the_handles_own_generator(serve: Serve) -> None:
    with RemoteEnv(serve(cartpole)) as env:
        env.reset(seed=3)
        first = env.np_random.random()
        env.reset(seed=3)
        assert env.np_random.random() == first


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_stable_baselines_learns_on_it(serve: Serve) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from stable_baselines3 import PPO

        env = RemoteEnv(serve(cartpole))
        model: Any = PPO("MlpPolicy", env, n_steps=64, batch_size=32, n_epochs=1, device="cpu")
        model.learn(256)
    env.close()
    assert model.num_timesteps == 256
    action, _ = model.predict(np.zeros(4, np.float32))
    assert action in (0, 1)

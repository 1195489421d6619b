import threading
from typing import Any

import gymnasium as gym
import pytest
from rlcore import ConfigurationError, EnvironmentException, SessionClosed, UnsupportedError
from rlmesh import EnvServer
from rlmesh.models.model import Model as NativeModel
from rlmesh.models.numpy_model import Model
from rlmesh.models.sentinels import RANDOM_SAMPLE
from rlmesh.runs.run import run
from rlmesh.runs.session import session
from rlmesh.values import Tensor

RIGHT = Model(lambda observation: 1)


def test_a_session_is_driven_step_by_step(corridor: Any) -> None:
    env = corridor(2)

    with session(RIGHT, env) as driven:
        observation, _ = driven.reset(seed=4)
        total = 0.0
        while not driven.done:
            observation, reward, *_ = driven.step(driven.predict(observation))
            total += reward

    assert (env.seeds, total, env.closed) == ([4], 2.0, 0)


def test_a_session_and_a_run_see_the_same(corridor: Any) -> None:
    seen: list[type] = []

    def watch(observation: object) -> int:
        seen.append(type(observation))
        return 1

    with session(NativeModel(watch), corridor(1)) as driven:
        driven.predict(driven.reset(seed=0)[0])
    run(NativeModel(watch), corridor(1))

    assert seen == [Tensor, Tensor]


def test_a_session_opens_its_environment_at_the_first_use() -> None:
    made: list[int] = []

    def factory() -> object:
        made.append(1)
        return gym.make("CartPole-v1")

    driven = session(RANDOM_SAMPLE, factory)
    assert (made, repr(driven)) == ([], "<rlmesh.Session created>")

    assert driven.contract is not None
    assert (made, repr(driven)) == ([1], "<rlmesh.Session connected>")
    driven.close()
    driven.close()
    assert repr(driven) == "<rlmesh.Session closed>"


def test_a_session_can_run_episodes_and_stays_open(corridor: Any) -> None:
    with session(RIGHT, corridor(3)) as driven:
        first = driven.run(episodes=2, seed=5)
        second = driven.run(seeds=[5, 6])
        driven.reset(seed=0)

    assert first.agrees_with(second) == ()


def test_a_closed_session_refuses_every_use(corridor: Any) -> None:
    driven = session(RIGHT, corridor())
    driven.close()

    for use in (driven.reset, lambda: driven.predict(0), lambda: driven.step(0), driven.run):
        with pytest.raises(SessionClosed):
            use()


def test_a_step_before_the_first_reset_says_what_comes_first(corridor: Any) -> None:
    env = corridor()

    with session(RIGHT, env) as driven, pytest.raises(EnvironmentException) as caught:
        driven.step(1)

    assert (caught.value.code, caught.value.hint) == ("not_ready", "Call reset() first.")
    assert env.actions == []


def test_an_error_of_the_environment_comes_out_whole(corridor: Any) -> None:
    def on_step(seed: int | None, step: int) -> None:
        raise ValueError("out of memory")

    with session(RIGHT, corridor(on_step=on_step)) as driven:
        driven.reset(seed=9)
        with pytest.raises(EnvironmentException) as caught:
            driven.step(1)

    error = caught.value
    assert (error.operation, error.seed, error.step) == ("step", 9, 1)
    assert error.remote_type == "ValueError"
    assert "out of memory" in (error.remote_traceback or "")
    assert isinstance(error.__cause__, ValueError)


def test_a_trial_for_an_environment_that_takes_none_is_left_out_with_a_warning(
    corridor: Any,
) -> None:
    with session(RIGHT, corridor()) as driven:
        with pytest.warns(UserWarning, match="does not take a trial index") as caught:
            told = driven.reset(seed=0, trial_index=3)
        assert told == driven.reset(seed=0)
    assert caught[0].filename == __file__


def test_a_session_tells_what_it_drives(corridor: Any) -> None:
    with session(RIGHT, corridor()) as driven:
        assert driven.num_envs == 1
        assert driven.frame_sources() == ()
        with pytest.raises(UnsupportedError, match="no workflow edition"):
            _ = driven.selected_workflow_edition
    with EnvServer(corridor) as server, session(RIGHT, server.address) as driven:
        assert driven.selected_workflow_edition


@pytest.mark.parametrize("horizon", [0, 1025, 1.5])
def test_a_horizon_that_cannot_be_is_refused_at_once(corridor: Any, horizon: Any) -> None:
    with pytest.raises(ConfigurationError, match="execution_horizon"):
        session(RIGHT, corridor(), execution_horizon=horizon)


def test_a_model_is_asked_without_a_reset_too(corridor: Any) -> None:
    with session(RIGHT, corridor()) as driven:
        assert driven.predict(0) == 1


def test_times_of_a_sessions_run_end_with_it(corridor: Any) -> None:
    threads: list[int] = []

    def note(seed: int | None, step: int) -> None:
        threads.append(threading.get_ident())

    with session(RIGHT, corridor(on_step=note)) as driven:
        driven.run(step_timeout_seconds=30)
        driven.reset(seed=1)
        driven.step(1)

    assert threads[0] != threading.get_ident()
    assert threads[-1] == threading.get_ident()


def test_what_a_sessions_run_does_not_take_is_named(corridor: Any) -> None:
    wrong: Any = {"num_workers": 2}
    with (
        session(RIGHT, corridor()) as driven,
        pytest.raises(ConfigurationError, match="no argument 'num_workers'"),
    ):
        driven.run(**wrong)

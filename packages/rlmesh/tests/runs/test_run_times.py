"""Runs whose environments or models take too long."""

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Any

import pytest
import rlmesh
import rlmesh.numpy
from gymnasium.vector import SyncVectorEnv
from rlmesh import CallTimeout, EnvServer, ModelServer, RunFailed, RunResult

RIGHT = rlmesh.numpy.Model(lambda observation: 1)


@pytest.fixture
def released() -> Any:
    event = threading.Event()
    yield event
    event.set()


def hanging(
    released: threading.Event, *, seed: int, step: int = 2
) -> Callable[[int | None, int], None]:
    def on_step(at_seed: int | None, at_step: int) -> None:
        if (at_seed, at_step) == (seed, step):
            released.wait(30)

    return on_step


def outcomes(result: object) -> list[str]:
    assert isinstance(result, RunResult)
    return [episode.outcome.value for episode in result.episodes]


def test_a_step_that_hangs_is_a_timeout_and_the_environment_is_made_anew(
    corridor: Any, released: threading.Event
) -> None:
    made: list[Any] = []
    closed: SimpleQueue[int] = SimpleQueue()

    def factory() -> Any:
        number = len(made)
        on_step = hanging(released, seed=1)
        made.append(corridor(on_step=on_step, on_close=lambda: closed.put(number)))
        return made[-1]

    result = rlmesh.run(RIGHT, factory, episodes=3, step_timeout_seconds=0.3)

    assert outcomes(result) == ["completed", "timeout", "completed"]
    assert "did not return within 0.3 s" in (result.episodes[1].error or "")
    assert [env.closed for env in made] == [0, 1]  # nobody calls what hangs
    assert closed.get(timeout=10) == 1
    released.set()
    assert closed.get(timeout=10) == 0  # it is closed when its call is over


def test_an_object_that_hangs_ends_the_run_with_its_partial_result(
    corridor: Any, released: threading.Event
) -> None:
    with pytest.raises(RunFailed, match="the environment hangs") as caught:
        rlmesh.run(
            RIGHT,
            corridor(on_step=hanging(released, seed=1)),
            episodes=3,
            step_timeout_seconds=0.3,
            close_env=True,
        )

    assert outcomes(caught.value.partial) == ["completed", "timeout"]
    assert isinstance(caught.value.__cause__, CallTimeout)


def test_lanes_that_hang_cost_the_episode_that_hangs(
    corridor: Any, released: threading.Event
) -> None:
    def lane() -> Any:
        return corridor(3, on_step=hanging(released, seed=2))

    result = rlmesh.run(
        RIGHT, lambda: SyncVectorEnv([lane, lane]), episodes=5, step_timeout_seconds=0.3
    )

    assert outcomes(result) == ["completed", "completed", "timeout", "completed", "completed"]


@pytest.mark.parametrize("served", [False, True])
def test_an_episode_that_takes_too_long_in_all_has_no_score(corridor: Any, served: bool) -> None:
    def slow(seed: int | None, step: int) -> None:
        if seed == 1:
            time.sleep(0.05)

    def play(env: Any) -> RunResult:
        return rlmesh.run(RIGHT, env, episodes=3, episode_timeout_seconds=0.4)

    if served:
        with EnvServer(lambda: corridor(40, on_step=slow)) as server:
            result = play(server.address)
    else:
        result = play(corridor(40, on_step=slow))

    assert outcomes(result) == ["completed", "timeout", "completed"]
    assert result.episodes[1].steps < 20


@pytest.mark.parametrize("number", [1, 2])
def test_a_run_whose_time_is_up_returns_what_it_has(corridor: Any, number: int) -> None:
    def slow(seed: int | None, step: int) -> None:
        time.sleep(0.02)

    envs = [corridor(5, on_step=slow) for _ in range(number)]

    result = rlmesh.run(RIGHT, envs, episodes=1000, run_timeout_seconds=0.5)

    assert result.stopped == "run_timeout_seconds=0.5 are over"
    assert 1 <= result.coverage.scored <= 5 * number
    assert outcomes(result).count("cancelled") in range(1, number + 1)
    assert result.coverage.asked == 1000


def test_a_run_whose_time_is_up_while_a_call_hangs_returns_too(
    corridor: Any, released: threading.Event
) -> None:
    env = corridor(on_step=hanging(released, seed=1))
    started = time.monotonic()

    result = rlmesh.run(RIGHT, env, episodes=3, run_timeout_seconds=0.5)

    assert outcomes(result) == ["completed", "cancelled"]
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("lanes", [False, True])
def test_a_model_that_hangs_ends_the_run_with_its_partial_result(
    corridor: Any, released: threading.Event, lanes: bool
) -> None:
    def predict(observation: Any, context: Any) -> int:
        if context["episode_seed"] == 1:
            released.wait(30)
        return 1

    env = SyncVectorEnv([corridor]) if lanes else corridor()
    with pytest.raises(RunFailed, match="the model hangs") as caught:
        rlmesh.run(rlmesh.numpy.Model(predict), env, episodes=3, predict_timeout_seconds=0.3)

    assert outcomes(caught.value.partial) == ["completed", "timeout"]
    assert isinstance(caught.value.__cause__, CallTimeout)
    assert caught.value.__cause__.layer == "model"


@pytest.mark.parametrize("kind", ["one", "lanes", "two", "served"])
def test_a_run_whose_time_is_up_while_a_model_hangs_returns_too(
    corridor: Any, released: threading.Event, kind: str
) -> None:
    def predict(observation: Any, context: Any) -> int:
        if context["episode_seed"] == 1:
            released.wait(30)
        return 1

    model = rlmesh.numpy.Model(predict)
    env = SyncVectorEnv([corridor]) if kind == "lanes" else corridor()
    started = time.monotonic()
    with ExitStack() as opened:
        if kind == "served":
            server = opened.enter_context(ModelServer(model))
            opened.callback(released.set)
            played: Any = rlmesh.numpy.RemoteModel(server)
        else:
            played = model
        targets = [env, corridor()] if kind == "two" else env
        result = rlmesh.run(played, targets, episodes=3, run_timeout_seconds=0.5)
        took = time.monotonic() - started

    assert result.stopped == "run_timeout_seconds=0.5 are over"
    if kind == "two":  # the other environment waits for the model that hangs
        assert "cancelled" in outcomes(result)
    else:
        assert outcomes(result) == ["completed", "cancelled"]
    assert took < 10


def test_a_served_model_that_hangs_costs_its_episode_only(
    corridor: Any, released: threading.Event
) -> None:
    def predict(observation: Any, context: Any) -> int:
        if context["episode_seed"] == 1:
            released.wait(1.4)
        return 1

    with ModelServer(rlmesh.numpy.Model(predict)) as server:
        model = rlmesh.numpy.RemoteModel(server)
        result = rlmesh.run(model, corridor(), episodes=3, predict_timeout_seconds=1)

    assert outcomes(result) == ["completed", "timeout", "completed"]


def test_an_episode_whose_time_is_up_while_the_model_predicts_costs_only_itself(
    corridor: Any, released: threading.Event
) -> None:
    def predict(observation: Any, context: Any) -> int:
        if context["episode_seed"] == 1:
            released.wait(1)
        return 1

    model = rlmesh.numpy.Model(predict)
    result = rlmesh.run(model, corridor(), episodes=3, episode_timeout_seconds=0.4)

    assert outcomes(result) == ["completed", "timeout", "completed"]
    assert "predict of the model" in (result.episodes[1].error or "")


def test_limits_that_are_not_reached_change_nothing(corridor: Any) -> None:
    plain = rlmesh.run(RIGHT, corridor(), episodes=3)

    bounded = rlmesh.run(
        RIGHT,
        corridor(),
        episodes=3,
        step_timeout_seconds=30,
        episode_timeout_seconds=30,
        run_timeout_seconds=30,
        predict_timeout_seconds=30,
    )

    assert plain.agrees_with(bounded) == ()


def test_calls_of_an_environment_stay_on_one_thread(corridor: Any) -> None:
    threads: set[int] = set()

    def note(*_: object) -> None:
        threads.add(threading.get_ident())

    env = corridor(on_step=note, on_reset=note, on_close=note)
    rlmesh.run(RIGHT, env, episodes=3, step_timeout_seconds=30, close_env=True)

    assert len(threads) == 1
    assert threads != {threading.get_ident()}


@pytest.mark.parametrize(
    "name",
    [
        "step_timeout_seconds",
        "episode_timeout_seconds",
        "run_timeout_seconds",
        "predict_timeout_seconds",
    ],
)
@pytest.mark.parametrize("value", [0, -1, "x", float("nan")])
def test_times_that_are_none_are_refused(corridor: Any, name: str, value: Any) -> None:
    wrong: dict[str, Any] = {name: value}
    with pytest.raises(rlmesh.ConfigurationError, match=f"^{name} is "):
        rlmesh.run(RIGHT, corridor(), **wrong)

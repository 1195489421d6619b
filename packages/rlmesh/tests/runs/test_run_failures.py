import contextlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.vector import SyncVectorEnv
from rlcore import (
    CallTimeout,
    EnvironmentException,
    RunFailed,
    RunInterrupted,
    SessionClosed,
)
from rlmesh import EnvServer
from rlmesh.models.numpy_model import Model
from rlmesh.runs.hooks import RunHooks
from rlmesh.runs.results import EpisodeResult, RunResult
from rlmesh.runs.run import run
from rlmesh.specs import contract_of

RIGHT = Model(lambda observation: 1)


def raising(error: BaseException, *, seed: int, step: int) -> Callable[[int | None, int], None]:
    def on_step(at_seed: int | None, at_step: int) -> None:
        if (at_seed, at_step) == (seed, step):
            raise error

    return on_step


class Altered:
    """An environment whose steps give some other parts."""

    def __init__(self, env: Any, parts: dict[str, Any]) -> None:
        self.env = env
        self.parts = parts
        self.observation_space = env.observation_space
        self.action_space = env.action_space
        self.metadata = env.metadata
        self.render_mode = None

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> Any:
        names = ("observation", "reward", "terminated", "truncated", "info")
        given = dict(zip(names, self.env.step(action), strict=True))
        return tuple({**given, **self.parts}.values())

    def close(self) -> None:
        self.env.close()


def altered(env: Any, **parts: Any) -> Altered:
    return Altered(env, parts)


def outcomes(result: object) -> list[str]:
    assert isinstance(result, RunResult)
    return [episode.outcome.value for episode in result.episodes]


def test_a_crash_costs_one_episode_its_score_and_the_run_goes_on(corridor: Any) -> None:
    env = corridor(on_step=raising(ZeroDivisionError("torque"), seed=1, step=2))

    result = run(RIGHT, env, episodes=3)

    assert outcomes(result) == ["completed", "env_error", "completed"]
    assert result.coverage == (3, 2, 1)
    assert result.mean_reward == 3.0
    crashed = result.episodes[1]
    assert crashed.reward is None
    assert crashed.steps == 1
    assert crashed.error is not None
    assert "'Corridor' (seed 1, step 2) raised ZeroDivisionError: torque" in crashed.error


def test_a_reset_that_raises_costs_its_episode_only(corridor: Any) -> None:
    def on_reset(seed: int | None) -> None:
        if seed == 0:
            raise OSError("no such level")

    result = run(RIGHT, corridor(on_reset=on_reset), episodes=2)

    assert outcomes(result) == ["env_error", "completed"]
    assert "raised OSError: no such level" in (result.episodes[0].error or "")


def test_an_answer_of_the_old_api_counts_as_it_does_on_a_server(corridor: Any) -> None:
    class Gym21:
        observation_space = corridor().observation_space
        action_space = corridor().action_space

        def reset(self, *, seed: int | None = None) -> Any:
            return corridor().reset(seed=seed)

        def step(self, action: int) -> Any:
            return 0, 1.0, True, {}

    result = run(RIGHT, Gym21())

    assert outcomes(result) == ["completed"]
    assert result.rewards == (1.0,)


def test_a_reset_without_info_is_an_error_of_the_environment(corridor: Any) -> None:
    result = run(RIGHT, corridor(answers=1))

    assert outcomes(result) == ["env_error"]
    assert "has shape [1, 1]; it must be [1]" in (result.episodes[0].error or "")


def test_a_failed_episode_never_enters_the_mean_even_after_rewards(corridor: Any) -> None:
    env = corridor(1000, on_step=raising(RuntimeError("late"), seed=0, step=999))

    result = run(RIGHT, env, episodes=1)

    assert result.rewards == ()
    assert result.episodes[0].steps == 998


def test_more_failures_than_allowed_stop_the_run(corridor: Any) -> None:
    def on_step(seed: int | None, step: int) -> None:
        if seed in (1, 3):
            raise RuntimeError("flaky")

    with pytest.raises(RunFailed, match="2 episodes failed, more than max_failures=1") as caught:
        run(RIGHT, corridor(on_step=on_step), episodes=9, max_failures=1)

    assert outcomes(caught.value.partial) == ["completed", "env_error", "completed", "env_error"]
    assert isinstance(caught.value.__cause__, EnvironmentException)
    assert run(RIGHT, corridor(on_step=on_step), episodes=9, max_failures=2).coverage.failed == 2


def test_ctrl_c_keeps_a_valid_partial_result(corridor: Any) -> None:
    env = corridor(on_step=raising(KeyboardInterrupt(), seed=2, step=2))
    ended: list[RunResult] = []

    class Watch(RunHooks):
        def on_run_end(self, result: RunResult) -> None:
            ended.append(result)

    with pytest.raises(KeyboardInterrupt) as caught:
        run(RIGHT, env, episodes=10, hooks=Watch(), close_env=True)

    assert isinstance(caught.value, RunInterrupted)
    partial = caught.value.partial
    assert outcomes(partial) == ["completed", "completed", "cancelled"]
    assert isinstance(partial, RunResult)
    assert partial.coverage == (10, 2, 1)
    assert partial.stopped == "interrupted"
    assert RunResult.from_json(partial.to_json()) == partial
    assert ended == [partial]
    assert env.closed == 1


def test_what_the_model_raises_keeps_its_type_and_brings_the_result_along(corridor: Any) -> None:
    def predict(observation: Any, context: Any) -> int:
        if context["episode_seed"] == 1:
            raise LookupError("no plan")
        return 1

    env = corridor()
    with pytest.raises(LookupError, match="no plan") as caught:
        run(Model(predict), env, episodes=3)

    assert outcomes(caught.value.__dict__["partial"]) == ["completed", "cancelled"]
    assert caught.value.__notes__[0].endswith("was predicting for float32[1]")


@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize("end", ["model", "ctrl-c", "rule"])
def test_a_model_is_told_of_the_end_of_every_episode_it_was_asked_in(
    corridor: Any, lanes: bool, end: str
) -> None:
    begun: set[str] = set()
    over: list[str] = []

    class Noted(Model):
        def predict(self, observation: Any, context: Any) -> int:
            begun.add(context["episode_id"])
            if end == "model" and context["episode_seed"] == 1:
                raise LookupError("no plan")
            return 1

        def on_episode_end(self, episode_id: str) -> None:
            over.append(episode_id)

    def on_step(seed: int | None, step: int) -> None:
        if end == "ctrl-c" and (seed, step) == (1, 2):
            raise KeyboardInterrupt

    def lane(length: int = 3) -> Any:
        return corridor(length, on_step=on_step)

    env = SyncVectorEnv([lane, lambda: lane(5)]) if lanes else lane()
    with contextlib.suppress(LookupError, KeyboardInterrupt):
        run(Noted(), env, episodes=4, stop_when=lambda result: end == "rule")

    assert begun
    assert sorted(over) == sorted(begun)


def test_what_a_hook_raises_ends_the_run_and_on_run_end_is_told(corridor: Any) -> None:
    ended: list[RunResult] = []

    class Strict(RunHooks):
        def on_episode_end(self, result: EpisodeResult) -> None:
            if result.index == 1:
                raise AssertionError("enough")

        def on_run_end(self, result: RunResult) -> None:
            ended.append(result)
            raise OSError("disk full")

    with pytest.raises(AssertionError, match="enough") as caught:
        run(RIGHT, corridor(), episodes=3, hooks=Strict())

    assert [result.num_episodes for result in ended] == [2]
    assert caught.value.__notes__ == ["on_run_end failed as well: OSError: disk full"]


@pytest.mark.parametrize("error", [OSError("no room"), KeyboardInterrupt()])
def test_what_on_run_end_raises_brings_the_finished_result_along(
    corridor: Any, error: BaseException
) -> None:
    class Report(RunHooks):
        def on_run_end(self, result: RunResult) -> None:
            raise error

    with pytest.raises(type(error)) as caught:
        run(RIGHT, corridor(), episodes=2, hooks=Report())

    partial: Any = getattr(caught.value, "partial", None)
    assert outcomes(partial) == ["completed"] * 2
    assert partial.stopped is None


def test_a_criterion_that_raises_is_a_grader_error(corridor: Any) -> None:
    def broken(episode: EpisodeResult) -> bool:
        raise ValueError("unclear")

    result = run(RIGHT, corridor(), episodes=1, success=broken)

    assert outcomes(result) == ["grader_error"]
    assert result.coverage.failed == 1
    assert result.episodes[0].error == "judging success raised ValueError: unclear"


def test_a_factory_that_raises_is_an_environment_exception() -> None:
    def factory() -> object:
        raise FileNotFoundError("scene.xml")

    with pytest.raises(EnvironmentException, match=r"FileNotFoundError: scene\.xml") as caught:
        run(RIGHT, factory)

    assert caught.value.operation == "make"
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_a_slow_remote_environment_is_a_timeout_not_a_score(corridor: Any) -> None:
    env = corridor(on_step=raising(CallTimeout("step took over 300 s"), seed=1, step=1))

    result = run(RIGHT, env, episodes=3)

    assert outcomes(result) == ["completed", "timeout", "completed"]


def test_a_lost_handle_stops_the_run_with_what_was_finished(corridor: Any) -> None:
    def on_reset(seed: int | None) -> None:
        if seed is not None and seed >= 1:
            raise SessionClosed("the server went away")

    with pytest.raises(RunFailed, match="the server went away") as caught:
        run(RIGHT, corridor(on_reset=on_reset), episodes=10)

    partial = caught.value.partial
    assert outcomes(partial) == ["completed", "infra_error", "infra_error"]
    assert isinstance(partial, RunResult)
    assert partial.coverage == (10, 1, 2)
    assert isinstance(caught.value.__cause__, SessionClosed)


def test_a_lost_environment_that_the_run_made_is_made_again(corridor: Any) -> None:
    made: list[Any] = []

    def factory() -> object:
        lost = raising(SessionClosed("gone"), seed=0, step=2) if not made else None
        made.append(corridor(on_step=lost))
        return made[-1]

    result = run(RIGHT, factory, episodes=3)

    assert outcomes(result) == ["infra_error", "completed", "completed"]
    assert [env.closed for env in made] == [1, 1]


class Breaking:
    """Raises for good from an episode on, as a simulator whose process is gone."""

    def __init__(self, corridor: Any, *, seed: int) -> None:
        self.broken = False
        self.seed = seed
        self.env = corridor(on_step=self.note)
        self.action_space, self.observation_space = self.env.action_space, Box(0, 100, (1,))
        self.reset, self.close = self.env.reset, self.env.close

    def note(self, seed: int | None, step: int) -> None:
        self.broken |= seed == self.seed
        if self.broken:
            raise BrokenPipeError("the simulator is gone")

    def step(self, action: Any) -> Any:
        return self.env.step(action)


def test_what_the_run_made_is_made_again_after_it_raised(corridor: Any) -> None:
    made: list[Breaking] = []

    def factory() -> object:
        made.append(Breaking(corridor, seed=3))
        return made[-1]

    result = run(RIGHT, factory, episodes=6)

    assert outcomes(result) == [*["completed"] * 3, "env_error", *["completed"] * 2]
    assert [env.env.closed for env in made] == [1, 1]


def test_a_factory_that_makes_the_same_again_keeps_it_open(corridor: Any) -> None:
    env = corridor(on_step=raising(RuntimeError("once"), seed=1, step=1))

    result = run(RIGHT, lambda: env, episodes=3)

    assert outcomes(result) == ["completed", "env_error", "completed"]
    assert env.closed == 1


def test_a_given_environment_that_is_broken_does_not_burn_all_episodes(
    corridor: Any, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"episodes": 30, "journal": tmp_path / "journal.jsonl"}
    with pytest.raises(RunFailed, match="10 episodes in a row failed") as caught:
        run(RIGHT, Breaking(corridor, seed=2), **given)

    assert outcomes(caught.value.partial) == [*["completed"] * 2, *["env_error"] * 10]
    assert outcomes(run(RIGHT, Breaking(corridor, seed=-1), **given)) == ["completed"] * 30


def test_another_environment_behind_the_same_factory_is_noticed(corridor: Any) -> None:
    made: list[Any] = []

    def factory() -> object:
        lost = raising(SessionClosed("gone"), seed=0, step=1) if not made else None
        env = corridor(on_step=lost)
        if made:
            env.action_space = type(env.action_space)(5)
        made.append(env)
        return env

    with pytest.raises(RunFailed, match=r"the environment was .* and is now") as caught:
        run(RIGHT, factory, episodes=3)

    assert outcomes(caught.value.partial) == ["infra_error"]


def test_a_close_that_raises_does_not_lose_the_result(corridor: Any) -> None:
    def on_close() -> None:
        raise OSError("still in use")

    with pytest.raises(RunFailed, match=r"closing failed: .*still in use") as caught:
        run(RIGHT, corridor(on_close=on_close), close_env=True)

    assert outcomes(caught.value.partial) == ["completed"]


def test_a_close_that_raises_does_not_hide_what_ended_the_run(corridor: Any) -> None:
    def on_close() -> None:
        raise OSError("still in use")

    def predict(observation: Any) -> int:
        raise LookupError("no plan")

    with pytest.raises(LookupError, match="no plan") as caught:
        run(Model(predict), corridor(on_close=on_close), close_env=True)

    assert caught.value.__notes__[-1].startswith("Closing failed as well: EnvironmentException")


@pytest.mark.parametrize("reward", [math.nan, math.inf])
def test_a_reward_that_is_not_finite_is_an_error_of_the_environment(
    corridor: Any, reward: float
) -> None:
    result = run(RIGHT, altered(corridor(), reward=reward), episodes=2)

    assert outcomes(result) == ["env_error", "env_error"]
    assert f"reward is {reward}" in (result.episodes[0].error or "")
    assert str(result) == f"{result.environment}: 0 of 2 scored, 2 failed, no score"


@pytest.mark.parametrize("lanes", [False, True])
def test_rewards_that_add_up_to_no_number_are_no_score(corridor: Any, lanes: bool) -> None:
    env: Any = altered(corridor(), reward=1e308)
    result = run(RIGHT, SyncVectorEnv([lambda: env]) if lanes else env)

    assert outcomes(result) == ["env_error"]
    assert "gave no score: its rewards add up to inf" in (result.episodes[0].error or "")


def test_a_handle_whose_reward_is_not_finite_gives_no_score(corridor: Any) -> None:
    class Handle(Altered):
        env_contract = contract_of(corridor())
        identity = None

    result = run(RIGHT, Handle(corridor(), {"reward": math.nan}))

    assert outcomes(result) == ["env_error"]
    assert result.episodes[0].steps == 0
    assert "step (seed 0, step 1) gave no score: reward is nan" in (result.episodes[0].error or "")


@pytest.mark.parametrize(
    ("parts", "outcome"),
    [
        ({"observation": np.zeros(2, np.float32)}, "env_error"),
        ({"observation": None}, "env_error"),
        ({"terminated": 1}, "env_error"),
        ({"info": [1]}, "env_error"),
        ({"reward": "much"}, "env_error"),
        ({"info": None}, "completed"),
        ({"observation": np.full(1, 0.1)}, "completed"),
    ],
)
def test_an_answer_is_judged_the_same_locally_and_remotely(
    corridor: Any, parts: dict[str, Any], outcome: str
) -> None:
    local = run(RIGHT, altered(corridor(1), **parts))
    with EnvServer(lambda: altered(corridor(1), **parts)) as server:
        remote = run(RIGHT, server.address)

    assert outcomes(local) == outcomes(remote) == [outcome]
    assert local.agrees_with(remote) == ()


def test_a_local_model_sees_observations_of_the_spaces_type(corridor: Any) -> None:
    seen: list[Any] = []

    def watch(observation: Any) -> int:
        seen.append(observation)
        return 1

    run(Model(watch), altered(corridor(2), observation=np.full(1, 0.1)))

    assert [(item.dtype, item[0]) for item in seen] == [
        (np.float32, np.float32(0)),
        (np.float32, np.float32(0.1)),
    ]


def test_an_environment_that_exits_costs_its_episode_only(corridor: Any) -> None:
    env = corridor(on_step=raising(SystemExit(3), seed=0, step=2))

    result = run(RIGHT, env, episodes=2)

    assert outcomes(result) == ["env_error", "completed"]
    assert "raised SystemExit: 3" in (result.episodes[0].error or "")

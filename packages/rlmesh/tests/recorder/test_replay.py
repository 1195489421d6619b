"""A replay agrees step by step, or stops at the first difference and shows it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from rlcore import ConfigurationError, IdentityError
from rlmesh.cli.main import main
from rlmesh.models.seeds import ENV_RESET_OPTIONS_KEY
from rlmesh.models.sentinels import RANDOM_SAMPLE
from rlmesh.recorder import Difference, Recorder, load, replay
from rlmesh.runs.results import RunResult
from rlmesh.server.env_server import EnvServer
from rlmesh.torch import Model as TorchModel

Played = Callable[..., RunResult]


def recorded(play: Played, env: Any, target: Path, **options: Any) -> Path:
    own = ("seeds", "max_episode_steps", "model")
    run = {key: options.pop(key) for key in own if key in options}
    with Recorder() as recorder:
        hooks = recorder.capture(model="m", env="e", cameras=[], **options)
        play(env, hooks, **run)
        return recorder.export(target)


def test_the_same_environment_agrees_in_every_step(bundle: Path, walk: Any) -> None:
    told: list[int] = []

    report = replay(bundle, walk(), on_episode=lambda done: told.append(done.episode))

    assert report.matches
    assert [(one.episode, one.seed, one.steps) for one in report.episodes] == [(0, 1, 5), (1, 2, 5)]
    assert str(report) == "2 episodes agree in all of 10 steps"
    assert told == [0, 1]


def test_digests_alone_are_enough_to_tell(play: Played, walk: Any, tmp_path: Path) -> None:
    path = recorded(play, walk(), tmp_path / "b")

    assert replay(path, walk).matches


class Off(gym.Wrapper[Any, Any, Any, Any]):
    """Differs from the recorded environment in its third step."""

    what = ""

    def step(self, action: Any) -> Any:
        inner: Any = self.unwrapped
        given: list[Any] = list(self.env.step(action))
        if inner.at == 3:
            match self.what:
                case "observation":
                    given[0] = given[0] + np.array([0, 0.25], np.float32)
                case "reward":
                    given[1] += 0.5
                case "terminated":
                    given[2] = True
                case "truncated":
                    given[3] = True
                case _:
                    raise RuntimeError("out of order")
        return tuple(given)


@pytest.fixture
def off(walk: Any) -> Callable[[str], Any]:
    def made(what: str) -> Any:
        env = Off(walk())
        env.what = what
        return env

    return made


@pytest.mark.parametrize("what", ["observation", "reward", "terminated", "truncated", "error"])
def test_it_stops_at_the_first_difference_and_names_it(
    what: str, bundle: Path, off: Callable[[str], Any]
) -> None:
    report = replay(bundle, off(what))

    assert not report.matches
    assert report.episodes == ()
    difference = report.difference
    assert difference is not None
    where = (difference.workload, difference.episode, difference.seed, difference.field)
    assert where == (0, 0, 1, what)
    assert difference.step == (2 if what == "error" else 3)


def test_a_difference_of_numbers_says_where_and_how_large(
    bundle: Path, off: Callable[[str], Any]
) -> None:
    observation = replay(bundle, off("observation")).difference
    reward = replay(bundle, off("reward")).difference

    assert observation is not None
    assert reward is not None
    assert observation.path == "$[1]"
    assert observation.max_abs_diff == pytest.approx(0.25, abs=1e-6)
    assert float(observation.actual) - float(observation.expected) == pytest.approx(0.25, abs=1e-6)
    assert reward.path == "$"
    assert reward.max_abs_diff == pytest.approx(0.5)
    assert str(observation).startswith(
        "workload 0, episode 0 (seed 1) differs at step 3 in observation $[1]: recorded "
    )


def test_a_difference_of_digests_shows_what_came_instead(
    play: Played, walk: Any, tmp_path: Path, off: Callable[[str], Any]
) -> None:
    difference = replay(recorded(play, walk(), tmp_path / "b"), off("observation")).difference

    assert difference is not None
    assert difference.expected.startswith("a digest of ")
    assert "array(" in difference.actual


def test_a_tolerance_lets_small_differences_pass(bundle: Path, off: Callable[[str], Any]) -> None:
    assert replay(bundle, off("observation"), tolerance=0.3).matches
    assert not replay(bundle, off("observation"), tolerance=0.2).matches


def test_a_tolerance_needs_recorded_observations(play: Played, walk: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="recorded by their digests"):
        replay(recorded(play, walk(), tmp_path / "b"), walk(), tolerance=0.1)
    with pytest.raises(ConfigurationError, match="tolerance is -1"):
        replay(tmp_path / "b", walk(), tolerance=-1)


def test_an_episode_that_the_run_cut_off_agrees(play: Played, walk: Any, tmp_path: Path) -> None:
    path = recorded(play, walk(), tmp_path / "b", max_episode_steps=3)

    (one, _) = load(path).workloads[0].episodes
    assert (one.steps, one.truncated) == (3, True)
    assert replay(path, walk()).matches


def test_an_environment_that_cuts_itself_off_has_to_do_it_again(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    class Limited(gym.Wrapper[Any, Any, Any, Any]):
        limit = 3

        def step(self, action: Any) -> Any:
            inner: Any = self.unwrapped
            seen, reward, over, _, info = self.env.step(action)
            return seen, reward, over, inner.at >= self.limit, info

    path = recorded(play, Limited(walk()), tmp_path / "b", max_episode_steps=3)
    longer = Limited(walk())
    longer.limit = 4

    assert replay(path, Limited(walk())).matches
    difference = replay(path, longer).difference
    assert difference is not None
    assert (difference.field, difference.step) == ("truncated", 3)


def test_the_recorded_trial_is_sent_again(play: Played, walk: Any, tmp_path: Path) -> None:
    class Trials(gym.Wrapper[Any, Any, Any, Any]):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            inner: Any = self.unwrapped
            _, info = self.env.reset(seed=seed)
            inner.where = inner.where + np.float32(options["trial_index"])
            return inner.where, info

    def trials() -> Any:
        env = Trials(walk())
        env.metadata = {**walk.metadata, ENV_RESET_OPTIONS_KEY: ["trial_index"]}
        return env

    path = recorded(play, trials(), tmp_path / "b", seeds=[5, 5])

    assert replay(path, trials()).matches


def test_a_recorded_gymnasium_id_is_made_again(play: Played, tmp_path: Path) -> None:
    env = gym.make("CartPole-v1")
    path = recorded(play, env, tmp_path / "b", model=RANDOM_SAMPLE)
    kept = recorded(
        play,
        gym.make("CartPole-v1", sutton_barto_reward=True),
        tmp_path / "kept",
        model=RANDOM_SAMPLE,
    )
    named = recorded(
        play,
        gym.make("CartPole-v1", sutton_barto_reward=True),
        tmp_path / "named",
        model=RANDOM_SAMPLE,
        source="python://gymnasium.envs.classic_control:CartPoleEnv",
        env_kwargs={"sutton_barto_reward": True},
    )

    assert replay(named, trust_source=True).matches
    assert replay(path).matches
    assert replay(kept).matches
    assert not replay(kept, "CartPole-v1").matches


def test_a_served_environment_replays_what_a_local_one_did(bundle: Path, walk: Any) -> None:
    with EnvServer(walk, "tcp://127.0.0.1:0") as server:
        assert replay(bundle, server.address).matches


def test_what_a_remote_run_recorded_is_replayed_locally(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    with EnvServer(walk, "tcp://127.0.0.1:0") as server:
        path = recorded(play, server.address, tmp_path / "b", observations=True)

    assert replay(path, walk()).matches


def test_lanes_are_replayed_one_by_one(play: Played, walk: Any, tmp_path: Path) -> None:
    vector: Any = gym.vector.SyncVectorEnv(
        [walk, walk], autoreset_mode=gym.vector.AutoresetMode.DISABLED
    )
    path = recorded(play, vector, tmp_path / "b", seeds=[1, 2, 3])

    assert len(replay(path, walk()).episodes) == 3
    with pytest.raises(ConfigurationError, match="has several lanes"):
        replay(path, vector)


def test_episodes_and_workloads_can_be_chosen(bundle: Path, walk: Any) -> None:
    assert [one.seed for one in replay(bundle, walk(), episodes=[1]).episodes] == [2]
    assert len(replay(bundle, walk(), workload=0).episodes) == 2
    with pytest.raises(ConfigurationError, match="there is no workload 1"):
        replay(bundle, walk(), workload=1)
    with pytest.raises(ConfigurationError, match="has no such episode"):
        replay(bundle, walk(), episodes=[9])


def test_a_bundle_without_steps_cannot_be_replayed(tmp_path: Path, play: Played, walk: Any) -> None:
    recorder = Recorder()
    recorder.add(play(walk()), model="m", env="e")

    with pytest.raises(ConfigurationError, match="its steps were not recorded"):
        replay(recorder.export(tmp_path / "b"), walk())


def test_an_environment_with_other_spaces_is_not_stepped(bundle: Path) -> None:
    with pytest.raises(IdentityError, match="not the environment that was recorded") as caught:
        replay(bundle, "CartPole-v1")

    assert caught.value.differences == ("observation_space",)


def test_an_environment_that_nobody_can_make_has_to_be_named(bundle: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not say exactly what 'Walk' is made from"):
        replay(bundle)


def test_the_command_prints_what_agrees_and_returns_zero(
    play: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(play, gym.make("CartPole-v1"), tmp_path / "b", model=RANDOM_SAMPLE, seeds=[1])
    steps = load(path).workloads[0].episodes[0].steps

    assert main(["replay", str(path)]) == 0
    assert capsys.readouterr().out == (
        f"workload 0, episode 0, seed 1: {steps} steps agree\n"
        f"1 episode agrees in all of {steps} steps\n"
    )
    assert main(["replay", str(path), "--env", "CartPole-v1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "matches": True,
        "complete": True,
        "verified": True,
        "episodes": [{"workload": 0, "episode": 0, "seed": 1, "steps": steps, "partly": None}],
        "difference": None,
        "skipped": [],
    }


def test_the_command_returns_one_at_a_difference_and_on_failures(
    play: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(
        play,
        gym.make("CartPole-v1", sutton_barto_reward=True),
        tmp_path / "b",
        model=RANDOM_SAMPLE,
        seeds=[1],
    )

    assert main(["replay", str(path), "--env", "CartPole-v1"]) == 1
    told = capsys.readouterr().out
    assert "differs at step 1 in reward: recorded 0.0, now 1.0; up to 1 apart" in told
    assert main(["replay", str(path), "--episodes", "7:9"]) == 1
    assert "has no such episode" in capsys.readouterr().err
    assert main(["replay", str(tmp_path / "none")]) == 1
    assert "there is no bundle" in capsys.readouterr().err


def test_a_difference_is_told_in_one_line() -> None:
    difference = Difference(0, 3, 103, 0, "observation", "$.x[0]", "1.0", "1.5", 0.5)

    assert str(difference) == (
        "workload 0, episode 3 (seed 103) differs at its reset in observation $.x[0]: "
        "recorded 1.0, now 1.5; up to 0.5 apart"
    )


def test_what_a_torch_model_saw_is_replayed_with_arrays(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    model = TorchModel(lambda seen: int(seen.sum() > 0))
    path = recorded(play, walk(), tmp_path / "b", model=model, observations=True)

    assert replay(path, walk()).matches

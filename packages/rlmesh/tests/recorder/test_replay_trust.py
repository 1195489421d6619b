"""A replay runs nothing that a bundle names unasked, and believes no result without its steps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import FlattenObservation, NormalizeObservation, TimeLimit, TransformReward
from rlcore import BundleError, ConfigurationError
from rlmesh.cli.main import main
from rlmesh.models.sentinels import RANDOM_SAMPLE
from rlmesh.recorder import Recorder, ReplayReport, load, replay
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.results import EpisodeResult, RunResult
from rlmesh.server.env_server import EnvServer

Played = Callable[..., RunResult]
Recorded = Callable[..., Path]


@pytest.fixture
def recorded(play: Played, tmp_path: Path) -> Recorded:
    """Record two episodes of random actions, and return the bundle."""

    def made(env: object, **options: Any) -> Path:
        run = {key: options.pop(key) for key in ("seeds", "success", "retries") if key in options}
        with Recorder() as recorder:
            hooks = recorder.capture(model="m", env="e", cameras=[], **options)
            play(env, hooks, model=RANDOM_SAMPLE, **run)
            return recorder.export(tmp_path / "b", report=False)

    return made


def changed(path: Path, name: str, change: Callable[[Any], object]) -> Path:
    """Change a document of a bundle, which loses its manifest."""
    (path / "manifest.json").unlink(missing_ok=True)
    document = json.loads((path / name).read_text())
    change(document["workloads"][0])
    (path / name).write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    "says",
    [
        {"source": "os:mkdir", "kwargs": {"path": "MARK"}},
        {"source": "python://os:mkdir", "kwargs": {"path": "MARK"}},
        {"source": "gym://os:CartPole-v1"},
        {"source": "tcp://127.0.0.1:9"},
        {"source": "GymV21Environment-v0", "kwargs": {"env_id": "os"}},
        {"source": "CartPole-v1", "kwargs": {"model": {"file": ["/etc/passwd"]}}},
        {"gymnasium": {"id": "os:x", "kwargs": {}, "wrappers": []}},
        {"gymnasium": {"id": "Ant-v5", "kwargs": {"xml_file": "./a.xml"}, "wrappers": []}},
    ],
    ids=str,
)
def test_what_a_bundle_names_is_not_run_without_trust(
    says: Any, recorded: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = tmp_path / "mark"
    said = json.loads(json.dumps(says).replace("MARK", str(mark)))
    path = changed(
        recorded(gym.make("CartPole-v1")), "details.json", lambda one: one.update(replay=said)
    )

    with pytest.raises(ConfigurationError) as caught:
        replay(path)
    assert main(["replay", str(path)]) == 1

    assert caught.value.code == "untrusted"
    assert "--trust-source" in capsys.readouterr().err
    assert not mark.exists()
    assert replay(path, "CartPole-v1").matches


ODD: list[Any] = [
    [1],
    {"source": 5},
    {"source": "CartPole-v1", "kwargs": [1]},
    {"gymnasium": 5},
    {"gymnasium": {"id": "CartPole-v1", "kwargs": {}}},
    {"gymnasium": {"id": "CartPole-v1", "kwargs": {}, "wrappers": [["RecordVideo", {}]]}},
]


@pytest.mark.parametrize("says", ODD, ids=str)
def test_what_a_bundle_says_in_no_known_form_is_refused(says: Any, recorded: Recorded) -> None:
    path = changed(
        recorded(gym.make("CartPole-v1")), "details.json", lambda one: one.update(replay=says)
    )

    with pytest.raises(BundleError):
        replay(path)


def test_a_trusted_bundle_is_followed(
    recorded: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(
        gym.make("CartPole-v1"), source="python://gymnasium.envs.classic_control:CartPoleEnv"
    )

    assert main(["replay", str(path), "--trust-source"]) == 0
    assert "2 episodes agree" in capsys.readouterr().out


@pytest.mark.parametrize(
    "make",
    [
        lambda: gym.make("CartPole-v1", max_episode_steps=5),
        lambda: TimeLimit(gym.make("CartPole-v1"), 5),
        lambda: TimeLimit(gym.make("CartPole-v1", max_episode_steps=5), 1000),
        lambda: FlattenObservation(gym.make("FrozenLake-v1", is_slippery=False, desc=["SF", "FG"])),
        lambda: gym.make("CartPole-v1", render_mode="rgb_array"),
        lambda: gym.make_vec(
            "CartPole-v1",
            num_envs=2,
            vectorization_mode="sync",
            max_episode_steps=6,
            vector_kwargs={"autoreset_mode": gym.vector.AutoresetMode.DISABLED},
        ),
    ],
    ids=["limit", "limited", "two limits", "wrapped", "drawn", "lanes"],
)
def test_an_unchanged_environment_of_gymnasium_agrees(
    make: Callable[[], Any], recorded: Recorded
) -> None:
    report = replay(recorded(make()))

    assert (report.matches, report.complete, len(report.episodes)) == (True, True, 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TransformReward(gym.make("CartPole-v1"), lambda reward: float(reward) / 2),
        lambda: NormalizeObservation(gym.make("CartPole-v1")),
        lambda: gym.make("FrozenLake-v1", desc=np.array([["S", "F"], ["F", "G"]])),
        lambda: gym.vector.SyncVectorEnv(
            [
                lambda: gym.make("CartPole-v1"),
                lambda: gym.make("CartPole-v1", sutton_barto_reward=True),
            ],
            autoreset_mode=gym.vector.AutoresetMode.DISABLED,
        ),
    ],
    ids=["function", "memory", "array", "unlike lanes"],
)
def test_an_environment_that_cannot_be_made_again_exactly_has_to_be_named(
    make: Callable[[], Any], recorded: Recorded
) -> None:
    with pytest.raises(ConfigurationError, match="does not say exactly"):
        replay(recorded(make()))


def test_the_id_of_a_remote_environment_is_not_guessed_from(recorded: Recorded) -> None:
    with EnvServer(lambda: gym.make("FrozenLake-v1", is_slippery=False), "tcp://127.0.0.1:0") as at:
        path = recorded(at.address)

    with pytest.raises(ConfigurationError, match="does not say exactly"):
        replay(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [("reward", 500.0), ("steps", 3), ("terminated", False), ("truncated", True)],
)
def test_a_result_that_is_not_that_of_its_steps_is_noticed(
    key: str, value: object, recorded: Recorded
) -> None:
    path = recorded(gym.make("CartPole-v1"))
    changed(path, "result.json", lambda one: one["episodes"][0].update({key: value}))

    report = replay(path)

    assert report.difference is not None
    assert (report.difference.field, report.difference.actual) == (f"result.{key}", str(value))
    assert f"its {key} is {value}, and theirs " in str(report)


def test_a_success_that_the_environment_does_not_tell_again_is_noticed(
    recorded: Recorded, walk: Any
) -> None:
    path = recorded(walk())
    assert replay(path, walk()).matches
    changed(path, "result.json", lambda one: one["episodes"][0].update(success=False))

    difference = replay(path, walk()).difference

    assert difference is not None
    assert (difference.field, difference.expected, difference.actual) == (
        "success",
        "False",
        "True",
    )


def test_a_criterion_of_the_run_is_not_asked_of_the_environment(
    recorded: Recorded, walk: Any
) -> None:
    def never(episode: EpisodeResult) -> bool:
        return False

    path = recorded(walk(), success=never)

    assert [one.success for one in load(path).workloads[0].episodes] == [False, False]
    assert replay(path, walk()).matches


def test_a_bundle_without_its_manifest_is_said_to_be_unverified(recorded: Recorded) -> None:
    path = recorded(gym.make("CartPole-v1"))
    (path / "manifest.json").unlink()

    report = replay(path)

    assert not report.verified
    assert str(report).endswith("; the bundle's files were NOT verified")


def test_an_episode_that_ended_with_an_error_is_replayed_in_part(
    recorded: Recorded, walk: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    class Breaks(gym.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            inner: Any = self.unwrapped
            if inner.at == 3:
                raise RuntimeError("it fell over")
            return self.env.step(action)

    path = recorded(Breaks(walk()), seeds=[4])
    assert [one.outcome for one in load(path).workloads[0].episodes] == [Outcome.ENV_ERROR]

    report = replay(path, walk())

    assert (report.matches, report.complete, report.partly) == (True, False, 1)
    assert "it fell over" in str(report.episodes[0].partly)
    assert str(report) == "1 episode agrees in all of 3 steps; 1 of them NOT to the end"


def test_skipped_episodes_are_said_and_fail_where_all_are_wanted(
    recorded: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(gym.make("CartPole-v1"))
    changed(path, "result.json", lambda one: one["episodes"][0].update(seed=None))

    assert main(["replay", str(path)]) == 0
    told = capsys.readouterr().out
    assert "NOT replayed: workload 0, episode 0: it had no seed" in told
    assert "1 NOT replayed" in told.splitlines()[-1]
    assert main(["replay", str(path), "--all"]) == 1
    assert not ReplayReport((), None, ("one",)).complete

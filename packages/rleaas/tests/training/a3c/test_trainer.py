# gymnasium leaves its type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import psutil
import pytest
from gymnasium import spaces
from rlcore import (
    ConfigurationError,
    EnvironmentException,
    EnvironmentIdentity,
    SessionBusy,
    TrainingJobFailed,
)
from rleaas.training.a3c.settings import Team
from rleaas.training.a3c.trainer import A3CTrainer
from rleaas.training.algorithms import ALGORITHMS
from rleaas.training.checkpoint_file import read_weights
from rleaas.training.config import validate_training_config
from rleaas.training.curriculum import CurriculumSettings
from rleaas.training.loaded_policy import open_policy
from rleaas.training.rewards.spec import RewardSpec
from rleaas.training.session_parts import SessionParts
from rleaas.training.state_file import read_state
from rleaas.training.trainer import Resume, SessionFactory, StopReason, TrainingTask, trainer_for

# Every actor is a process that imports torch.
pytestmark = pytest.mark.timeout(240)

IDENTITY = EnvironmentIdentity("Signs", 2, "sha256:" + "0" * 64)


class Signs(gymnasium.Env[Any, Any]):
    """Shows one of two signs four times; the reward is 1 for the arm that the sign means."""

    observation_space = spaces.Discrete(2, start=1)
    action_space = spaces.Discrete(2, start=3)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._left = 4
        self._sign = int(self.np_random.integers(2))
        return 1 + self._sign, {}

    def step(self, action: Any) -> Any:
        reward = float(action == 3 + self._sign)
        self._left -= 1
        self._sign = int(self.np_random.integers(2))
        return 1 + self._sign, reward, self._left == 0, False, {}


@dataclass(frozen=True)
class Opens:
    """A factory that other processes can be given."""

    room: int = 100
    fails_at: int | None = None
    nan: bool = False

    def __call__(self, session: int) -> Any:
        if session >= self.room:
            raise SessionBusy("taken")
        return Signs() if self.fails_at is None else Breaks(self.fails_at, self.nan)


class Breaks(Signs):
    """Fails in its n-th step, or gives a reward there that is no number."""

    def __init__(self, at: int, nan: bool) -> None:
        self._at = at
        self._nan = nan

    def step(self, action: Any) -> Any:
        self._at -= 1
        observation, reward, *ends = super().step(action)
        if self._at == 0 and not self._nan:
            raise RuntimeError("the sign fell down")
        return observation, reward if self._at else float("nan"), *ends


class Scheduled:
    """Adds a thousandth of the episode's number to its first reward, by the job's own function."""

    def __init__(self) -> None:
        text = "reward + 0.001 * episode * (step == 1)"
        self.parts = SessionParts.of(max_steps=10, reward=RewardSpec(text=text, is_code=False))

    def __call__(self, session: int) -> Any:
        return self.parts.wrap(Signs())


class Tiered:
    """A curriculum of two tiers, of which twenty successes master the first."""

    def __init__(self) -> None:
        settings = CurriculumSettings(thresholds={3: 1.0}, window=20, start_tier=3)
        self.parts = SessionParts.of(max_steps=10, curriculum=settings)

    def __call__(self, session: int) -> Any:
        return self.parts.wrap(Succeeds())


class Succeeds(Signs):
    """Every episode is a success."""

    def __init__(self) -> None:
        self.metadata = {"takes_tiers": True}

    def step(self, action: Any) -> Any:
        *told, _ = super().step(action)
        return *told, {"is_success": True}


Train = Callable[..., Any]


@pytest.fixture
def train(tmp_path: Path) -> Train:
    """Run A3C, reporting to `sink`."""

    def run(
        sink: Any,
        make_env: SessionFactory | None = None,
        *,
        num_episodes: int = 60,
        resume: Resume | None = None,
        job_id: str = "job_1",
        **config: object,
    ) -> Any:
        directory = tmp_path / job_id
        directory.mkdir(exist_ok=True)
        settings = {"seed": 1, "t_max": 8, "learning_rate": 0.01, **config}
        checked = validate_training_config("A3C", num_episodes, 10, settings)
        task = TrainingTask(
            job_id=job_id,
            config=checked,
            seed=1,
            environment=IDENTITY,
            make_env=make_env or Opens(),
            directory=directory,
            resume=resume,
        )
        return A3CTrainer().train(task, sink)

    return run


def test_the_trainer_of_a3c_is_found_by_its_name_and_promises_no_curve() -> None:
    assert type(trainer_for("a3c")).__name__ == "A3CTrainer"
    assert not ALGORITHMS["A3C"].reproducible
    assert ALGORITHMS["A3C"].why_not


def test_two_actors_train_one_policy_and_leave_nothing_behind(train: Train, notebook: Any) -> None:
    results = train(notebook, num_episodes=400, checkpoint_interval=150, n_workers=2, num_envs=2)

    assert results.stopped_by is StopReason.EPISODE_BUDGET
    assert [progress.episode for progress in notebook.episodes] == list(range(1, 401))
    assert [label for label, _, _ in notebook.checkpoints][-1] == "final"
    assert [at.episode for _, at, _ in notebook.checkpoints] == [150, 300, 400]
    # Both signs were learned.
    policy = open_policy(notebook.checkpoints[-1][2])
    assert [int(policy.predict(sign)) for sign in (1, 2)] == [3, 4]
    network, example = policy.network()
    assert network(*example.values()).tolist() == [0, 0]
    assert updates_of(notebook.checkpoints[-1][2]) > 100
    assert multiprocessing.active_children() == []


def test_one_actor_alone_gives_the_same_curve_and_a_restart_goes_on(
    train: Train, notebook_type: Any
) -> None:
    one, again = notebook_type(), notebook_type()
    train(one, Scheduled(), n_workers=1, num_episodes=100)
    _, saved, path = one.checkpoints[-1]
    state = path.with_suffix(".state.zip")
    resume = Resume(policy=path, state=state, same_job=True)
    train(again, Scheduled(), resume=resume, n_workers=1, num_episodes=130)

    # The counters and the window go on where they were.
    assert [at.episode for at in again.episodes] == list(range(101, 131))
    assert again.episodes[0].timestep > saved.timestep
    before, after = one.episodes[-1], again.episodes[0]
    dropped = one.episodes[0].episode_reward
    expected = before.avg_reward + (after.episode_reward - dropped) / 100
    assert after.avg_reward == pytest.approx(expected)
    assert updates_of(again.checkpoints[-1][2]) > updates_of(path)
    # Four sessions have played about 25 each: so a reward function is told.
    assert [numbers(sink) for sink in (one, again)] == [(1, 25), (26, 33)]

    other = notebook_type()
    train(other, Scheduled(), job_id="job_2", n_workers=1, num_episodes=100)
    assert curve(one) == curve(other)


def curve(notebook: Any) -> Any:
    return [(at.episode, at.timestep, at.episode_reward) for at in notebook.episodes]


def numbers(notebook: Any) -> tuple[int, int]:
    """The smallest and the largest number of an episode that the reward function was told."""
    told = [round(at.episode_reward % 1 * 1000) for at in notebook.episodes]
    return min(told), max(told)


def updates_of(policy: Path) -> int:
    return int(read_state(policy.with_suffix(".state.zip"))["optimizer"]["updates"])


def test_an_actor_that_is_killed_fails_the_job_by_name(train: Train, notebook: Any) -> None:
    def kill_one(progress: Any) -> None:
        if progress.episode == 5:
            actor = next(
                one for one in multiprocessing.active_children() if one.name == "rleaas-actor-0"
            )
            os.kill(int(actor.pid or 0), signal.SIGKILL)

    notebook.episode_finished = kill_one
    with pytest.raises(TrainingJobFailed, match="actor 0 of 1 ended by signal 9") as caught:
        train(notebook, num_episodes=10**6, n_workers=1)

    assert caught.value.code == "actor_lost"
    assert [label for label, _, _ in notebook.checkpoints] == ["last"]
    assert multiprocessing.active_children() == []


def test_what_fails_in_an_actor_is_told_with_its_place(train: Train, notebook: Any) -> None:
    with pytest.raises(TrainingJobFailed, match="actor 0 failed: RuntimeError: the sign") as caught:
        train(notebook, Opens(fails_at=50), n_workers=1, num_episodes=10**6)

    story = vars(caught.value)["remote_traceback"]
    assert "in step" in story
    assert any("the sign fell down" in line for line in notebook.lines)


def test_an_environments_error_in_an_actor_arrives_as_what_it_was(
    train: Train, notebook: Any
) -> None:
    with pytest.raises(EnvironmentException, match="a reward nan in step 2") as caught:
        train(notebook, Opens(fails_at=2, nan=True), n_workers=1, num_episodes=10**6)

    error = caught.value
    assert (error.operation, error.environment, error.step) == ("step", "Signs@2", 2)
    assert error.seed is not None
    assert "in step" in str(error.remote_traceback)
    assert "in actor 0" in error.__notes__


def test_actors_move_one_curriculum_together(train: Train, notebook: Any) -> None:
    make_env = Tiered()
    train(notebook, make_env, n_workers=2, num_envs=2, num_episodes=60)

    tiers = [at.tier for at in notebook.episodes]
    # Neither of the two has to master it alone; what the other had begun was of the old tier.
    assert 20 <= tiers.count(3) <= 21
    assert tiers.count(4) == 60 - tiers.count(3)
    curriculum = make_env.parts.curriculum
    assert curriculum is not None
    assert [advance.to_tier for advance in curriculum.news()] == [4]


def test_a_stop_is_obeyed_at_once(train: Train, notebook_type: Any) -> None:
    notebook = notebook_type(stop_after=1)
    began = time.monotonic()
    results = train(notebook, num_episodes=10**6)

    assert results.stopped_by is StopReason.CANCELLED
    assert multiprocessing.active_children() == []
    # Processes that are still starting are not waited for.
    assert time.monotonic() - began < 5


def test_another_job_starts_from_the_saved_weights(train: Train, notebook_type: Any) -> None:
    one, other = notebook_type(stop_after=1), notebook_type(stop_after=1)
    train(one, net_arch=[4], n_workers=1)
    source = one.checkpoints[-1][2]
    resume = Resume(policy=source, state=source.with_suffix(".state.zip"))
    train(other, job_id="job_2", resume=resume, n_workers=1)

    before, after = read_weights(source), read_weights(other.checkpoints[-1][2])
    assert all(bool((before[name] == after[name]).all()) for name in before)


def test_diverged_weights_fail_with_advice(train: Train, notebook: Any) -> None:
    with pytest.raises(TrainingJobFailed, match="diverged") as caught:
        train(notebook, n_workers=1, learning_rate=3e37, num_episodes=10**6)

    assert caught.value.code == "training_diverged"
    assert notebook.checkpoints == []


def test_an_actor_without_room_is_done_without(train: Train, notebook: Any) -> None:
    results = train(notebook, Opens(room=4))

    assert results.progress.episode == 60


def test_actors_that_were_asked_for_must_have_room(train: Train, notebook: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"2 actors need 8"):
        train(notebook, Opens(room=2), n_workers=2, num_episodes=10**6)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, (2, 4)),
        ({"n_workers": 3}, (3, 4)),
        ({"n_workers": 3, "num_envs": 7}, (3, 2)),
        ({"num_envs": 1}, (1, 1)),
        ({"compute_quota": {"max_processes": 4}}, (1, 4)),
    ],
)
def test_the_team_is_what_the_request_leaves_room_for(config: Any, expected: Any) -> None:
    team = Team.settle(validate_training_config("A3C", 100, 10, config))

    assert (team.workers, team.sessions) == expected


def test_more_actors_than_the_quota_has_processes_are_refused() -> None:
    asked = {"n_workers": 4, "compute_quota": {"max_processes": 6}}

    with pytest.raises(ConfigurationError, match="max_processes 6 is too small for 4 actors"):
        Team.settle(validate_training_config("A3C", 100, 10, asked))


ORPHANS = """
import sys, pathlib
from packages.rleaas.tests.training.a3c.test_trainer import IDENTITY, Opens
from rleaas.training.a3c.trainer import A3CTrainer
from rleaas.training.config import validate_training_config
from rleaas.training.trainer import TrainingTask

class Sink:
    def __getattr__(self, name):
        return lambda *_: None
    def episode_finished(self, progress):
        if progress.episode == 1:
            print("playing", flush=True)

if __name__ == "__main__":
    config = validate_training_config("A3C", 10**9, 10, {"seed": 1, "n_workers": 1})
    A3CTrainer().train(TrainingTask(
        job_id="job", config=config, seed=1, environment=IDENTITY, make_env=Opens(),
        directory=pathlib.Path(sys.argv[1])), Sink())
"""


@pytest.mark.slow
def test_actors_end_with_a_worker_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(ORPHANS)
    worker = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout is not None
    try:
        assert worker.stdout.readline() == "playing\n"
        children = psutil.Process(worker.pid).children(recursive=True)
        assert children
    finally:
        worker.kill()
        worker.wait()
        worker.stdout.close()

    gone, alive = psutil.wait_procs(children, timeout=10)
    assert (len(gone), alive) == (len(children), [])

"""A full disk, Ctrl-C and SIGKILL: the run goes on, and what was finished is kept."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rlcore import BundleError, EnvironmentException, RecordingError, RunInterrupted
from rlmesh.recorder import Recorder, load, replay
from rlmesh.runs.hooks import RunHooks, StepEvent
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.results import RunResult

Played = Callable[..., RunResult]
FullDisk = Callable[[int], AbstractContextManager[None]]


def noisy(walk: Any, length: int = 200) -> Any:
    """Draws what cannot be compressed, so that files grow."""
    env = walk(length=length, size=(120, 160))
    random = np.random.default_rng(0)
    env.render = lambda: random.integers(0, 255, (120, 160, 3), np.uint8)
    return env


def test_a_full_disk_stops_the_recording_with_one_warning_and_not_the_run(
    play: Played, walk: Any, tmp_path: Path, full_disk: FullDisk
) -> None:
    with Recorder() as recorder:
        hooks = recorder.capture(model="m", env="e", cameras=[])
        play(walk(length=3), hooks, seeds=[1])
        with (
            full_disk(3000),
            pytest.warns(UserWarning, match="the recording stopped: File too large") as told,
        ):
            result = play(walk(length=400), hooks, seeds=[2, 3, 4])
        path = recorder.export(tmp_path / "b")

    assert len(told) == 1
    assert result.coverage.scored == 3
    episodes = load(path).workloads[0].episodes
    assert [(one.seed, one.trajectory is not None) for one in episodes] == [
        (1, True),
        (2, False),
        (3, False),
        (4, False),
    ]
    assert [one.reward for one in episodes[1:]] == [one.reward for one in result.episodes]


def test_a_full_disk_while_filming_stops_the_recording_as_well(
    play: Played, walk: Any, tmp_path: Path, full_disk: FullDisk
) -> None:
    with Recorder(quality=90) as recorder:
        hooks = recorder.capture(model="m", env="e")
        with full_disk(20_000), pytest.warns(UserWarning, match="the recording stopped"):
            result = play(noisy(walk), hooks, seeds=[1, 2])
        path = recorder.export(tmp_path / "b")

    assert result.coverage.scored == 2
    found = load(path)
    assert found.verified
    assert [one.steps for one in found.workloads[0].episodes] == [200, 200]


def test_a_strict_recorder_ends_the_run_with_its_partial_result(
    play: Played, walk: Any, full_disk: FullDisk
) -> None:
    with Recorder(strict=True) as recorder:
        hooks = recorder.capture(model="m", env="e", cameras=[])
        with full_disk(3000), pytest.raises(RecordingError, match="File too large") as caught:
            play(walk(length=400), hooks, seeds=range(50))

    partial: Any = vars(caught.value)["partial"]
    assert isinstance(partial, RunResult)
    assert 0 < partial.num_episodes < 50


class StopsAt(RunHooks):
    def __init__(self, inner: RunHooks, episode: int, step: int) -> None:
        self.inner, self.episode, self.step = inner, episode, step

    def on_run_start(self, context: Any) -> None:
        self.inner.on_run_start(context)

    def on_episode_start(self, *, episode: int, seed: int) -> None:
        self.inner.on_episode_start(episode=episode, seed=seed)

    def on_step(self, event: StepEvent) -> None:
        self.inner.on_step(event)
        if (event.episode, event.step) == (self.episode, self.step):
            raise KeyboardInterrupt

    def on_episode_end(self, result: Any) -> None:
        self.inner.on_episode_end(result)

    def on_run_end(self, result: RunResult) -> None:
        self.inner.on_run_end(result)


def test_ctrl_c_leaves_a_valid_bundle_with_the_steps_until_then(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    with Recorder() as recorder:
        hooks = recorder.capture(model="m", env="e")
        with pytest.raises(RunInterrupted):
            play(walk(), StopsAt(hooks, 1, 2), seeds=[1, 2, 3])
        path = recorder.export(tmp_path / "b")

    found = load(path)
    first, second = found.workloads[0].episodes
    assert found.verified
    assert (first.outcome, second.outcome) == (Outcome.SUCCESS, Outcome.CANCELLED)
    assert not second.included_in_metrics
    assert second.trajectory is not None
    assert second.trajectory.steps == 3
    assert [film.frame_count for film in second.media] == [3]
    assert replay(path, walk()).matches


class Fails:
    """Breaks in the fourth step of the first tries at an episode."""

    def __init__(self, walk: Any, times: int) -> None:
        self.env, self.left = walk(), times
        self.observation_space = self.env.observation_space
        self.action_space = self.env.action_space
        self.reset = self.env.reset

    def step(self, action: Any) -> Any:
        if self.env.at == 3 and self.left:
            self.left -= 1
            raise RuntimeError("broken")
        return self.env.step(action)


def test_an_episode_that_fails_keeps_the_steps_that_it_had(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    with Recorder() as recorder:
        play(Fails(walk, 1), recorder.capture(model="m", env="e"), seeds=[1, 2])
        path = recorder.export(tmp_path / "b")

    lost, played = load(path).workloads[0].episodes
    assert (lost.outcome, played.outcome) == (Outcome.ENV_ERROR, Outcome.SUCCESS)
    assert lost.error is not None
    assert "broken" in lost.error
    assert lost.trajectory is not None
    assert lost.trajectory.steps == 3


def test_of_an_episode_that_is_tried_again_the_last_try_is_kept(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    with Recorder() as recorder:
        result = play(Fails(walk, 2), recorder.capture(model="m", env="e"), seeds=[1], retries=2)
        path = recorder.export(tmp_path / "b")

    assert result.episodes[0].attempts == 3
    (one,) = load(path).workloads[0].episodes
    assert (one.outcome, one.attempts) == (Outcome.SUCCESS, 3)
    assert one.trajectory is not None
    assert one.trajectory.steps == 5
    assert replay(path, walk()).matches


RECORDS = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from cart import make
from rlmesh.models.sentinels import RANDOM_SAMPLE
from rlmesh.recorder import Recorder
from rlmesh.runs.run import run

recorder = Recorder(staging=sys.argv[1], result_set_id="killed")
hooks = recorder.capture(model="m", env="e")
def told(result):
    recorder.workloads  # everything is on the disk
    print(result.index, flush=True)
run(RANDOM_SAMPLE, make(), seeds=range(10_000), hooks=hooks, on_episode=told, progress=False)
"""

CART = """
import gymnasium
def make():
    return gymnasium.make("CartPole-v1")
"""


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The staging folder of a process that was killed after its third episode."""
    (tmp_path / "cart.py").write_text(CART)
    staging = tmp_path / "staging"
    with subprocess.Popen(
        [sys.executable, "-c", RECORDS, staging, tmp_path], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= 2:
                process.send_signal(signal.SIGKILL)
                break
    assert process.returncode == -signal.SIGKILL
    return staging


def test_a_process_that_is_killed_leaves_its_finished_episodes_whole(
    killed: Path, tmp_path: Path
) -> None:
    with Recorder.recover(killed) as recorder:
        path = recorder.export(tmp_path / "b")

    found = load(path)
    episodes = found.workloads[0].episodes
    assert (found.result_set_id, found.verified) == ("killed", True)
    assert len(episodes) >= 3
    assert [one.seed for one in episodes] == list(range(len(episodes)))
    assert len(replay(path).episodes) == len(episodes)
    assert not killed.exists()


def test_a_recovered_recorder_goes_on(
    killed: Path, tmp_path: Path, play: Played, walk: Any
) -> None:
    with Recorder.recover(killed) as recorder:
        before = len(recorder.workloads[0].episodes)
        play(walk(), recorder.capture(model="more", env="e"), seeds=[5])
        path = recorder.export(tmp_path / "b")

    found = load(path)
    assert [len(workload.episodes) for workload in found.workloads] == [before, 1]


def test_a_torn_last_line_of_the_journal_is_cut_off(killed: Path) -> None:
    journal = killed / "journal.jsonl"
    whole = journal.read_bytes()
    lines = whole.splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]) + lines[-1][: len(lines[-1]) // 2])

    with Recorder.recover(killed) as recorder:
        count = len(recorder.workloads[0].episodes)

    assert count == sum(b'"kind": "episode"' in line for line in lines[:-1])


def test_a_folder_in_which_somebody_records_is_left_alone(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    with Recorder(staging=tmp_path / "s") as recorder:
        play(walk(), recorder.capture(model="m", env="e", cameras=[]), seeds=[1])

        with pytest.raises(RecordingError, match="still recording"):
            Recorder.recover(tmp_path / "s")
        second = Recorder(staging=tmp_path / "s")
        with pytest.raises(RecordingError, match="holds another recording"):
            play(walk(), second.capture(model="m", env="e"), seeds=[1])


def test_a_chosen_staging_folder_stays_until_it_was_exported(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    with Recorder(staging=tmp_path / "s") as recorder:
        play(walk(), recorder.capture(model="m", env="e", cameras=[]), seeds=[1])
    assert (tmp_path / "s" / "journal.jsonl").exists()

    with Recorder.recover(tmp_path / "s") as again:
        again.export(tmp_path / "b")
    assert not (tmp_path / "s").exists()
    assert load(tmp_path / "b").workloads[0].episodes[0].seed == 1


def test_what_is_no_recording_cannot_be_recovered(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="there is no recording"):
        Recorder.recover(tmp_path)
    (tmp_path / "journal.jsonl").write_text('{"kind": "other"}\n')
    with pytest.raises(BundleError, match="is no journal of a recording"):
        Recorder.recover(tmp_path)


def test_a_run_whose_environment_cannot_be_made_leaves_a_valid_recorder(
    play: Played, tmp_path: Path
) -> None:
    def broken() -> object:
        raise RuntimeError("no such world")

    with Recorder() as recorder:
        with pytest.raises(EnvironmentException):
            play(broken, recorder.capture(model="m", env="e"))
        found = load(recorder.export(tmp_path / "b"))

    assert [workload.episodes for workload in found.workloads] == [[]]


RAISES = """
import sys
sys.path.insert(0, sys.argv[1])
from cart import make
from rlmesh.models.sentinels import RANDOM_SAMPLE
from rlmesh.recorder import Recorder
from rlmesh.runs.run import run

def main():
    recorder = Recorder()
    run(RANDOM_SAMPLE, make(), seeds=[1, 2], hooks=recorder.capture(model="m", env="e"),
        progress=False)
    print(recorder.staging, flush=True)
    if sys.argv[2] == "export":
        recorder.export(sys.argv[1] + "/b")
    else:
        raise ValueError("before the export")
main()
"""


def test_a_script_that_raises_before_its_export_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text(CART)
    done = subprocess.run(
        [sys.executable, "-c", RAISES, tmp_path, "raise"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "ValueError: before the export" in done.stderr
    assert "Recorder.recover(" in done.stderr
    with Recorder.recover(done.stdout.strip()) as recorder:
        assert [one.seed for one in recorder.workloads[0].episodes] == [1, 2]
        recorder.export(tmp_path / "b")
    assert not Path(done.stdout.strip()).exists()


def test_a_script_that_exported_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text(CART)
    done = subprocess.run(
        [sys.executable, "-c", RAISES, tmp_path, "export"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert not Path(done.stdout.strip()).exists()


def test_a_recorder_that_nobody_has_any_more_leaves_nothing_behind(play: Played, walk: Any) -> None:
    recorder = Recorder()
    play(walk(), recorder.capture(model="m", env="e", cameras=[]), seeds=[1])
    staging = recorder.staging

    del recorder
    gc.collect()

    assert staging is not None
    assert not staging.exists()

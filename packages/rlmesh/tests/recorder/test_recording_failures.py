"""A full disk, Ctrl-C and SIGKILL: the run goes on, and what was finished is kept."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rlcore import BundleError, EnvironmentException, RecordingError, RunInterrupted
from rlmesh.recorder import Recorder, load, replay
from rlmesh.recorder.recorder import _LIVE  # pyright: ignore[reportPrivateUsage]  # to end them
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


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "rlmesh-recorder"]


def dropped(recorders: list[Recorder]) -> None:
    """Have nobody hold a recorder any more, and wait until that has had its effects."""
    mine = set(threads())
    recorders.clear()
    gc.collect()
    for thread in mine:
        thread.join(timeout=30)


@pytest.fixture
def no_threads() -> None:
    """Recorders of other tests that are still there keep theirs."""
    gc.collect()
    for recorder in list(_LIVE):
        recorder.close()


@pytest.mark.usefixtures("no_threads")
def test_a_recorder_that_nobody_has_any_more_keeps_what_was_not_exported(
    play: Played, walk: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorders = [Recorder()]
    play(walk(), recorders[0].capture(model="m", env="e", cameras=[]), seeds=[1, 2])
    staging = recorders[0].staging
    assert staging is not None

    dropped(recorders)

    assert threads() == []
    assert str(staging) in caplog.text
    with Recorder.recover(staging) as again:
        again.export(tmp_path / "b")
    assert [one.seed for one in load(tmp_path / "b").workloads[0].episodes] == [1, 2]
    assert not staging.exists()


@pytest.mark.usefixtures("no_threads")
def test_a_recorder_that_nobody_has_any_more_leaves_nothing_behind_of_what_was_exported(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    recorders = [Recorder()]
    play(walk(), recorders[0].capture(model="m", env="e", cameras=[]), seeds=[1])
    staging = recorders[0].staging
    recorders[0].export(tmp_path / "b")
    assert len(threads()) == 1

    dropped(recorders)

    assert threads() == []
    assert staging is not None
    assert not staging.exists()


def test_hooks_keep_their_recorder(play: Played, walk: Any) -> None:
    hooks = Recorder(result_set_id="of hooks").capture(model="m", env="e", cameras=[])
    gc.collect()

    play(walk(), hooks, seeds=[1])

    (owner,) = [one for one in _LIVE if one.result_set_id == "of hooks"]
    with owner:
        assert [one.seed for one in owner.workloads[0].episodes] == [1]


@pytest.mark.parametrize("error", [ValueError("a bug"), KeyboardInterrupt()])
def test_an_exception_before_the_export_keeps_what_was_recorded(
    error: BaseException,
    play: Played,
    walk: Any,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    recorder = Recorder()

    def script() -> None:
        with recorder:
            play(walk(), recorder.capture(model="m", env="e"), seeds=[1])
            raise error

    with pytest.raises(type(error)):
        script()
    (kept,) = re.findall(r"Recorder\.recover\('(.*)'\) has it", caplog.text)
    with pytest.raises(RecordingError, match=re.escape(kept)):
        recorder.export(tmp_path / "b")
    with Recorder.recover(kept) as again:
        found = load(again.export(tmp_path / "b"))
    (one,) = found.workloads[0].episodes
    assert [film.frame_count for film in one.media] == [5]
    assert one.trajectory is not None
    assert not Path(kept).exists()


def test_an_exception_after_the_export_leaves_nothing_behind(
    play: Played, walk: Any, tmp_path: Path
) -> None:
    found: list[Path | None] = []

    def script() -> None:
        with Recorder() as recorder:
            play(walk(), recorder.capture(model="m", env="e", cameras=[]), seeds=[1])
            found.append(recorder.staging)
            recorder.export(tmp_path / "b")
            raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        script()

    (staging,) = found
    assert staging is not None
    assert not staging.exists()


class Second(RunHooks):
    """Starts another run with the same hooks in the middle of an episode."""

    def __init__(self, again: Callable[[], object]) -> None:
        self.again = again
        self.refused: list[RecordingError] = []

    def on_step(self, event: StepEvent) -> None:
        if event.step == 2:
            try:
                self.again()
            except RecordingError as error:
                self.refused.append(error)


def test_hooks_do_not_record_two_runs_at_once(play: Played, walk: Any) -> None:
    with Recorder() as recorder:
        hooks = recorder.capture(model="m", env="e", cameras=[])
        second = Second(lambda: play(walk(), hooks, seeds=[7]))
        play(walk(), [hooks, second], seeds=[1, 2])
        play(walk(), hooks, seeds=[3])
        episodes = recorder.workloads[0].episodes

        assert [one.seed for one in episodes] == [1, 2, 3]
        assert [one.trajectory.steps for one in episodes if one.trajectory] == [5, 5, 5]
    assert [("another run" in str(error)) for error in second.refused] == [True, True]


def test_hooks_of_a_closed_recorder_record_nothing(
    play: Played, walk: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    recorder = Recorder()
    hooks = recorder.capture(model="m", env="e", cameras=[])
    recorder.close()

    with pytest.raises(RecordingError, match="the recorder is closed"):
        play(walk(), hooks, seeds=[1])

    assert list(tmp_path.iterdir()) == []


class Closes(RunHooks):
    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def on_step(self, event: StepEvent) -> None:
        if (event.episode, event.step) == (1, 2):
            self.recorder.close()


@pytest.mark.parametrize("cameras", [None, []])
def test_a_recorder_that_is_closed_in_a_run_does_not_end_it(
    cameras: list[str] | None, play: Played, walk: Any
) -> None:
    recorder = Recorder()
    hooks = recorder.capture(model="m", env="e", cameras=cameras)

    with pytest.warns(UserWarning, match="closed in the middle of a run") as told:
        result = play(walk(), [hooks, Closes(recorder)], seeds=[1, 2, 3])

    assert len(told) == 1
    assert result.coverage.scored == 3


FORKS = """
import os, sys
sys.path.insert(0, sys.argv[1])
from cart import make
from rlmesh.models.sentinels import RANDOM_SAMPLE
from rlmesh.recorder import Recorder
from rlmesh.runs.run import run

with Recorder() as recorder:
    run(RANDOM_SAMPLE, make(), seeds=[1], hooks=recorder.capture(model="m", env="e"),
        progress=False)
    child = os.fork()
    if child == 0:
        try:
            recorder.workloads
        except RuntimeError as error:
            print(error, flush=True)
        sys.exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    recorder.export(sys.argv[1] + "/b")
"""


def test_a_forked_child_that_exits_leaves_the_recording_to_its_parent(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text(CART)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS, tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "belongs to the process" in done.stdout
    assert load(tmp_path / "b").workloads[0].episodes[0].trajectory is not None


LEAVES_A_CHILD = """
import os, sys
sys.path.insert(0, sys.argv[1])
from cart import make
from rlmesh.models.sentinels import RANDOM_SAMPLE
from rlmesh.recorder import Recorder
from rlmesh.runs.run import run

ours, theirs = os.pipe()
recorder = Recorder(staging=sys.argv[1] + "/s")
run(RANDOM_SAMPLE, make(), seeds=[1], hooks=recorder.capture(model="m", env="e"), progress=False)
recorder.workloads
if os.fork() == 0:
    os.close(theirs)
    os.read(ours, 1)  # until the parent has ended
    os._exit(0)
recorder.close()
with Recorder.recover(sys.argv[1] + "/s") as again:
    again.export(sys.argv[1] + "/b")
"""


def test_a_child_that_lives_on_does_not_hold_what_its_parent_recorded(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text(CART)
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LEAVES_A_CHILD, tmp_path], check=True, timeout=50
    )

    assert load(tmp_path / "b").workloads[0].episodes[0].seed == 1


def test_a_relative_staging_folder_stays_where_it_was(
    play: Played, walk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path)
    with Recorder(staging="s") as recorder:
        play(walk(), recorder.capture(model="m", env="e", cameras=[]), seeds=[1])
        monkeypatch.chdir(tmp_path / "there")
        play(walk(), recorder.capture(model="n", env="e", cameras=[]), seeds=[1])
        found = load(recorder.export(tmp_path / "b"))

    assert recorder.staging is None
    assert [workload.model for workload in found.workloads] == ["m", "n"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "there"]


def test_a_result_is_added_with_one_wait_for_the_disk_and_is_recovered(
    play: Played, walk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    fsync = os.fsync

    def counted(file: int) -> None:
        synced.append(file)
        fsync(file)

    monkeypatch.setattr(os, "fsync", counted)
    result = play(walk(), seeds=range(50))
    recorder = Recorder(staging=tmp_path / "s")
    recorder.add(result, model="before", env="e")
    play(walk(), recorder.capture(model="m", env="e", cameras=[]), seeds=[1])
    assert recorder.workloads
    synced.clear()

    recorder.add(result, model="after", env="e")

    assert len(synced) == 1
    recorder.close()
    with Recorder.recover(tmp_path / "s") as again:
        assert [len(one.episodes) for one in again.workloads] == [50, 1, 50]
        again.export(tmp_path / "b")

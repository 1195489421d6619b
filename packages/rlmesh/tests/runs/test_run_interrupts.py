"""Ctrl-C while a run plays, and once more while it ends."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import rlmesh
import rlmesh.numpy
from rlmesh.runs.journal import Journal, read_journal

HERE = Path(__file__).parent

SCRIPT = """
import json, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {here!r})
import rlmesh, rlmesh.numpy

class Told(rlmesh.RunHooks):
    def on_episode_start(self, *, episode, seed):
        if episode == 20:
            print("playing", flush=True)

try:
    rlmesh.run(
        rlmesh.numpy.Model(lambda observation: 1), {env!r}, seeds={seeds!r}, num_workers=2,
        hooks=Told(), progress=False,
    )
except rlmesh.RunInterrupted as error:
    found = error.partial
    print(json.dumps([episode.outcome.value for episode in found.episodes]), flush=True)
"""


def descendants(of: int) -> set[int]:
    found = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,stat="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split() for line in found.splitlines()]
    parents = {int(pid): int(parent) for pid, parent, state in rows if not state.startswith("Z")}
    known = {of}
    while fresh := {pid for pid, parent in parents.items() if parent in known} - known:
        known |= fresh
    return known - {of}


def is_running(pid: int) -> bool:
    try:
        return not Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].startswith(" Z")
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.slow
@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_leaves_a_partial_result_and_no_process(presses: int, tmp_path: Path) -> None:
    # Seed 2004 hangs, so that something is in a call when the end comes.
    script = tmp_path / "script.py"
    seeds = [1, 2, 3, 2004, *range(5, 900)] if presses == 2 else [*range(900)]
    script.write_text(SCRIPT.format(here=str(HERE), env="worker_envs:SlowWalk", seeds=seeds))
    child = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONFAULTHANDLER": "1"},
    )
    stdout: Any = child.stdout
    assert stdout.readline() == "playing\n"
    started = descendants(child.pid)
    assert started

    child.send_signal(signal.SIGINT)
    if presses == 2:
        time.sleep(0.3)  # the moment is the point: it is ending now
        child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=40)

    outcomes = json.loads(out.splitlines()[-1])
    assert outcomes.count("completed") >= 18
    assert set(outcomes) <= {"completed", "cancelled"}
    assert not any(is_running(pid) for pid in started)


def test_python_hears_ctrl_c_as_before_when_a_run_is_over(corridor: Any) -> None:
    during: list[object] = []

    def note(seed: int | None, step: int) -> None:
        during.append(signal.getsignal(signal.SIGINT))

    before = signal.getsignal(signal.SIGINT)
    rlmesh.run(rlmesh.RANDOM_SAMPLE, corridor(on_step=note))

    assert signal.getsignal(signal.SIGINT) is before
    assert (before is signal.default_int_handler) == (during[0] is not before)


def test_a_handler_of_the_callers_own_is_left_alone(corridor: Any) -> None:
    during: list[object] = []

    def own(number: int, frame: FrameType | None) -> None:
        raise AssertionError

    def note(seed: int | None, step: int) -> None:
        during.append(signal.getsignal(signal.SIGINT))

    before = signal.signal(signal.SIGINT, own)
    try:
        rlmesh.run(rlmesh.RANDOM_SAMPLE, corridor(on_step=note))
    finally:
        signal.signal(signal.SIGINT, before)

    assert during[0] is own


def test_ctrl_c_while_a_result_is_kept_leaves_it_in_the_journal_and_in_the_result(
    corridor: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Journal.append

    def interrupted(journal: Journal, result: Any) -> None:
        append(journal, result)
        if result.index == 1:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Journal, "append", interrupted)
    path = tmp_path / "journal.jsonl"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(rlmesh.RunInterrupted) as caught:
            rlmesh.run(
                rlmesh.numpy.Model(lambda observation: 1), corridor(), episodes=5, journal=path
            )
    finally:
        signal.signal(signal.SIGINT, before)

    partial: Any = caught.value.partial
    assert [episode.index for episode in partial.episodes] == [0, 1]
    assert partial.episodes == read_journal(path)[1]


def test_ctrl_c_does_not_wait_long_for_one_of_several_that_hangs(corridor: Any) -> None:
    released = threading.Event()
    pressed: list[float] = []

    def hang(seed: int | None, step: int) -> None:
        if seed == 1:
            pressed.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
            released.wait(30)

    model = rlmesh.numpy.Model(lambda observation: 1)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(rlmesh.RunInterrupted) as caught:
            rlmesh.run(model, [corridor(on_step=hang), corridor(on_step=hang)], episodes=99)
        took = time.monotonic() - pressed[0]
    finally:
        released.set()
        signal.signal(signal.SIGINT, before)

    partial: Any = caught.value.partial
    assert "cancelled" in [episode.outcome.value for episode in partial.episodes]
    assert took < 4

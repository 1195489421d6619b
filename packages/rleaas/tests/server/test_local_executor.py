"""Workers as real processes: started, found again by another executor, limited and ended."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import psutil
import pytest
from rleaas.server.children import Children
from rleaas.server.jobs.executor import Ended, Launch, Limits, Running, over_time
from rleaas.server.jobs.limits import limits_of
from rleaas.server.jobs.local_executor import LocalExecutor

SLEEP = "import time; print('up', flush=True); time.sleep(60)"
# A helper that leaves the group, as daemons and job runners do.
PARENT = (
    "import subprocess, sys, time; child = subprocess.Popen([sys.executable, '-c', "
    "'import time; time.sleep(60)'], start_new_session=True); print(child.pid, flush=True); "
    "time.sleep(60)"
)
HOARD = "import time; hoard = bytearray(120 * 2**20); print('up', flush=True); time.sleep(60)"


T = TypeVar("T")


class Place:
    """An executor with its directory, and what its workers wrote."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.children = Children()
        self.executor = LocalExecutor(self.children, root / "workers")
        self.handles: list[str] = []

    def start(self, code: str, *, attempt: int = 1, limits: Limits | None = None) -> str:
        launch = Launch(
            kind="training",
            job_id="job_1",
            attempt=attempt,
            command=[sys.executable, "-S", "-c", code],
            environment={},
            log=self.root / "logs" / "job_1.log",
            limits=limits or Limits(),
        )
        self.handles.append(self.executor.start(launch))
        return self.handles[-1]

    def said(self) -> str:
        return until(lambda: (self.root / "logs" / "job_1.log").read_text().strip())

    def end_of(self, handle: str, executor: LocalExecutor | None = None) -> Ended:
        def look() -> Ended | None:
            found = (executor or self.executor).look(handle)
            return found if isinstance(found, Ended) else None

        return until(look)


def until(look: Callable[[], T | None]) -> T:
    end = time.monotonic() + 20
    while not (found := look()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    for handle in made.handles:
        made.executor.kill(handle)
    made.children.close()


def test_a_worker_that_ends_by_itself_says_its_exit_code(place: Place) -> None:
    ended = place.end_of(place.start("raise SystemExit(3)"))

    assert ended == Ended(3, "ended by itself with exit code 3 before the job was done")
    assert list((place.root / "workers").iterdir()) == []


def test_a_polite_end_reaches_the_worker_alone_and_a_kill_all_that_it_started(
    place: Place,
) -> None:
    handle = place.start(PARENT)
    helper = psutil.Process(int(place.said()))

    place.executor.kill(handle)

    assert place.end_of(handle) == Ended(-9, "was killed by SIGKILL")
    until(lambda: not helper.is_running() or helper.status() == psutil.STATUS_ZOMBIE)


def test_sigterm_is_what_a_worker_hears_first(place: Place) -> None:
    handle = place.start(SLEEP)
    place.said()

    place.executor.terminate(handle)

    assert place.end_of(handle) == Ended(-15, "was killed by SIGTERM")


def test_another_executor_finds_the_worker_and_tells_it_where_its_server_is(place: Place) -> None:
    handle = place.start(SLEEP)
    later = LocalExecutor(place.children, place.root / "elsewhere")

    assert later.look(handle) == Running()
    later.announce(handle, "http://127.0.0.1:9")
    (directory,) = (place.root / "workers").iterdir()
    assert (directory / "server").read_text() == "http://127.0.0.1:9"
    later.kill(handle)
    ended = place.end_of(handle, later)
    assert (ended.code, ended.exceeded) == (None, None)


def test_a_number_that_another_process_has_by_now_is_left_alone(place: Place) -> None:
    handle = json.loads(place.start(SLEEP))
    stale = json.dumps({**handle, "began": "1"})
    later = LocalExecutor(place.children, place.root / "elsewhere")

    ended = later.look(stale)
    later.kill(stale)
    later.terminate(stale)

    assert isinstance(ended, Ended)
    assert psutil.Process(handle["pid"]).is_running()


def test_a_worker_of_another_machine_is_out_of_reach(place: Place) -> None:
    handle = json.loads(place.start(SLEEP))
    foreign = json.dumps({**handle, "host": "elsewhere/boot"})

    ended = place.executor.look(foreign)
    place.executor.kill(foreign)

    assert ended == Ended(None, "is out of reach: it ran on elsewhere")
    os.kill(handle["pid"], 0)


@pytest.mark.parametrize(
    ("code", "limits", "exceeded", "says"),
    [
        (HOARD, Limits(memory_bytes=64 * 2**20), "memory_bytes", "its limit is 64 MiB"),
        (SLEEP, Limits(wall_seconds=0.2), "wall_seconds", "its limit is 0.2 s"),
        (PARENT, Limits(processes=1), "processes", "it had 2 processes: its limit is 1"),
    ],
)
def test_a_worker_over_a_limit_is_ended_and_says_which(
    place: Place, code: str, limits: Limits, exceeded: str, says: str
) -> None:
    handle = place.start(code, limits=limits)

    ended = place.end_of(handle)

    assert ended.exceeded == exceeded
    assert says in ended.how
    assert not psutil.pid_exists(json.loads(handle)["pid"])


def test_a_worker_that_outlasts_its_quota_is_told_of_the_quota(place: Place) -> None:
    limits = limits_of({"config": {"compute_quota": {"max_wall_seconds": 15}}})
    assert (limits.wall_seconds, limits.stop_seconds) == (75.0, 60.0)

    handle = place.start(SLEEP, limits=Limits(wall_seconds=0.75, stop_seconds=0.5))

    ended = place.end_of(handle)
    assert ended.exceeded == "wall_seconds"
    assert "compute_quota.max_wall_seconds is 0.25, and it did not stop by itself" in ended.how
    assert over_time(75, 75.0, 60.0) == (
        "was ended after 75 s: compute_quota.max_wall_seconds is 15, and it did not stop by itself "
        "in 60 s more"
    )


def test_a_program_that_is_not_there_is_an_error_at_once(place: Place) -> None:
    launch = Launch(
        kind="training",
        job_id="job_1",
        attempt=1,
        command=[str(place.root / "nothing")],
        environment={},
        log=place.root / "logs" / "job_1.log",
    )

    with pytest.raises(FileNotFoundError):
        place.executor.start(launch)


def test_sigkill_is_told_by_its_name(place: Place) -> None:
    handle = place.start(SLEEP)
    os.kill(json.loads(handle)["pid"], signal.SIGKILL)

    assert place.end_of(handle).how == "was killed by SIGKILL"

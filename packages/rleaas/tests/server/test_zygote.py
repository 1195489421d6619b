"""Workers that are forked from a process that has imported what they need."""

from __future__ import annotations

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
from rleaas.server.jobs.executor import Ended, Launch, Running
from rleaas.server.jobs.local_executor import LocalExecutor
from rleaas.server.jobs.zygote import NotForked, Zygote

WORKER = """
import os, sys, time

IMPORTED_BY = os.getpid()

def main():
    print(sys.argv[1], IMPORTED_BY, os.getpid(), os.getpgid(0), os.environ["ASKED"], flush=True)
    print("to stderr", "OPENBLAS_NUM_THREADS" in os.environ, file=sys.stderr, flush=True)
    if sys.argv[1] == "stay":
        time.sleep(60)
    return 7
"""
THREADED = "import threading, time; threading.Thread(target=time.sleep, args=(60,), daemon=True)"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it looks into /proc")
T = TypeVar("T")


def until(look: Callable[[], T | None]) -> T:
    end = time.monotonic() + 50
    while not (found := look()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


class Place:
    """An executor with a zygote that has imported one small module."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = root / "job.log"
        self.children = Children()
        self.zygote = Zygote(self.children, root / "zygote.log", only=["forked_of_test"])
        self.executor = LocalExecutor(self.children, root / "workers", zygote=self.zygote)
        self.handles: list[str] = []

    def start(self, *arguments: str, log: Path | None = None) -> str:
        launch = Launch(
            kind="training",
            job_id="job_1",
            attempt=len(self.handles) + 1,
            command=[sys.executable, "-m", "forked_of_test", *arguments],
            environment={"ASKED": "for"},
            log=log or self.log,
        )
        self.handles.append(self.executor.start(launch))
        return self.handles[-1]

    def end_of(self, handle: str) -> Ended:
        def look() -> Ended | None:
            found = self.executor.look(handle)
            return found if isinstance(found, Ended) else None

        return until(look)

    def words(self) -> list[str]:
        return until(self._first_line)

    def _first_line(self) -> list[str]:
        text = self.log.read_text() if self.log.exists() else ""
        return text.partition("\n")[0].split() if "\n" in text else []

    def close(self) -> None:
        for handle in self.handles:
            self.executor.kill(handle)
        self.executor.close()
        self.children.close()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    (tmp_path / "forked_of_test.py").write_text(WORKER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = Place(tmp_path)
    made.zygote.warm()
    until(lambda: made.zygote.is_ready)
    yield made
    made.close()


def test_a_worker_is_forked_with_its_own_arguments_variables_output_and_group(
    place: Place,
) -> None:
    ended = place.end_of(place.start("go"))

    word, imported_by, pid, group, asked = place.words()
    assert (word, asked) == ("go", "for")
    assert imported_by != pid == group
    assert place.log.read_text().splitlines()[1:] == ["to stderr False"]
    assert ended == Ended(7, "ended by itself with exit code 7 before the job was done")


def test_a_fork_is_asked_to_end_and_killed_like_any_worker(place: Place) -> None:
    asked = place.start("stay")
    place.words()
    place.executor.terminate(asked)
    assert place.end_of(asked) == Ended(-15, "was killed by SIGTERM")

    killed = place.start("stay")
    place.executor.kill(killed)
    assert place.end_of(killed) == Ended(-9, "was killed by SIGKILL")


def test_forks_outlive_the_zygote_and_are_then_found_by_their_number(place: Place) -> None:
    handle = place.start("stay")
    pid = int(place.words()[2])
    place.executor.close()

    assert place.executor.look(handle) == Running()
    os.kill(pid, signal.SIGKILL)
    assert place.end_of(handle) == Ended(None, "ended while no server looked after it")


def the_zygote() -> psutil.Process:
    """Tests that ran in this process before may have left other children, also ended ones."""
    children = psutil.Process().children()
    living = [one for one in children if one.status() != psutil.STATUS_ZOMBIE]
    (found,) = [one for one in living if "zygote" in " ".join(one.cmdline())]
    return found


def test_a_zygote_that_is_gone_or_stopped_is_done_without(place: Place) -> None:
    zygote = the_zygote()
    zygote.kill()
    until(lambda: not place.zygote.is_alive)

    handle = place.start("stay")  # as a program, which does nothing here

    assert place.end_of(handle).code == 0
    with pytest.raises(NotForked):
        place.zygote.fork("forked_of_test", [], environment={}, log=place.log)


def test_nothing_is_forked_for_a_request_that_was_not_answered_in_time(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rleaas.server.jobs.zygote._ANSWER_SECONDS", 0.2)
    zygote = the_zygote()
    zygote.suspend()

    with pytest.raises(NotForked, match="does not answer"):
        place.zygote.fork("forked_of_test", ["go"], environment={"ASKED": "for"}, log=place.log)

    assert not zygote.is_running() or zygote.status() == psutil.STATUS_ZOMBIE
    assert not place.log.exists()


def test_a_second_thread_in_the_zygote_makes_it_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "forked_of_test.py").write_text(THREADED + ".start()")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    place = Place(tmp_path)
    try:
        place.zygote.warm()
        until(lambda: place.zygote.is_ready)
        with pytest.raises(NotForked, match="2 threads"):
            place.zygote.fork("forked_of_test", [], environment={}, log=place.log)
        assert place.end_of(place.start()).code == 0  # the slow way
    finally:
        place.close()

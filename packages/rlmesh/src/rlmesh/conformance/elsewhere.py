"""The same play in another process."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from rlmesh.conformance.keeper import GLANCE_SECONDS, Hung, Keeper
from rlmesh.conformance.lives import Life
from rlmesh.conformance.subject import Subject, subject_of
from rlmesh.conformance.watching import Watcher

START_SECONDS = 60.0
MARK = "rlmesh-conformance:"


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What became of the play.

    Attributes:
        digest: of its trajectory; None where it failed.
        problem: why there is none.
    """

    digest: str | None
    problem: str = ""


def play_elsewhere(
    subject: Subject,
    *,
    seed: int,
    steps: int,
    seconds: float,
    patience: float,
    on_glance: Callable[[], None],
) -> Elsewhere:
    """Play in a new process, and wait for it: a minute to start and `patience` to play."""
    order = {
        "source": subject.source,
        "path": sys.path,
        "seed": seed,
        "steps": steps,
        "seconds": seconds,
    }
    limit = START_SECONDS + patience
    process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        text, errors = _talk(process, json.dumps(order), limit, on_glance)
    except subprocess.TimeoutExpired:
        return Elsewhere(None, f"the other process had not ended after {limit:.0f} s")
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    for line in reversed(text.splitlines()):
        if line.startswith(MARK):
            answer = json.loads(line.removeprefix(MARK))
            return Elsewhere(answer["digest"], answer["problem"])
    told = (errors.strip().splitlines() or ["it said nothing"])[-1]
    return Elsewhere(None, f"the other process ended with {process.returncode}: {told}")


def main() -> None:
    """Read an order from standard input, play, and print what became of it."""
    order = json.loads(sys.stdin.read())
    sys.path[:] = order["path"]
    seconds: float = order["seconds"]
    keeper = Keeper(seconds, Watcher())
    problem, trajectory = "", None
    try:
        life = Life(subject_of(order["source"], seconds=seconds), keeper)
        trajectory = life.play(order["seed"], order["steps"]).digest
        life.close()
    except Hung as hung:
        problem = str(hung)
    answer = json.dumps({"digest": trajectory, "problem": problem})
    sys.stdout.write(f"\n{MARK}{answer}\n")
    sys.stdout.flush()


def _talk(
    process: subprocess.Popen[str], order: str, limit: float, on_glance: Callable[[], None]
) -> tuple[str, str]:
    began = time.monotonic()
    pending: str | None = order
    while True:
        try:
            return process.communicate(pending, timeout=GLANCE_SECONDS)
        except subprocess.TimeoutExpired:
            # What was handed over once is remembered by the process object.
            pending = None
            on_glance()
            if time.monotonic() - began > limit:
                raise


if __name__ == "__main__":
    main()

"""What jobs cost: python packages/rleaas/benchmarks/queue_of_jobs.py.

How many reported events a server takes per second, how long a queue of short jobs takes to drain,
and how long it takes from the request of a training to its first metric, with where the time goes.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from lean_client import Connection
from rlcore import Secret, mint_token
from rleaas.server.keys import ServerKeys
from served import ENGINES, Server, engine, machine, show

ENVIRONMENT: Final = "Queued"
_END_SECONDS: Final = 600.0
_BATCH: Final = 500
# Enough for a first episode and no more.
SHORT: Final = {
    "algorithm": "PPO",
    "num_episodes": 20,
    "max_steps": 64,
    "seed": 1,
    "config": {"n_steps": 64, "batch_size": 64, "num_envs": 1},
}


async def ask(port: int, key: str, method: str, path: str, body: Any = None) -> Any:
    """Return what the server answers.

    Raises:
        RuntimeError: it is not 200.
    """
    connection = await Connection.open(port, key)
    try:
        reply = await connection.ask(method, path, body)
    finally:
        connection.close()
    if reply.status != 200:
        raise RuntimeError(f"{method} {path}: {reply.status} {reply.body[:300]!r}")
    return reply.json


async def register(port: int, key: str) -> None:
    """Register the environment, and wait until it answers."""
    made = {"name": ENVIRONMENT, "source": "gym://CartPole-v1"}
    await ask(port, key, "POST", "/api/custom-environments", made)
    await ask(port, key, "GET", f"/api/environments/{ENVIRONMENT}/endpoint")


async def taken(server: Server, key: str, seconds: float, reporters: int) -> dict[str, object]:
    """Report metrics as fast as they are taken, for as many jobs as there are reporters."""
    port = server.port
    await register(port, key)
    signing = ServerKeys(server.data / "server.key").workers
    ids = [
        str((await ask(port, key, "POST", f"/train/{ENVIRONMENT}", SHORT))["job_id"])
        for _ in range(reporters)
    ]
    await until(port, key, lambda jobs: all(job["status"] == "running" for job in jobs))
    counts: Counter[str] = Counter()
    end = time.perf_counter() + seconds

    async def report(job_id: str) -> None:
        token = worker_token(signing, job_id)
        connection = await Connection.open(port, token)
        number = 0
        while time.perf_counter() < end:
            points = [
                {"type": "metric", "data": {"episode": number + i, "episode_reward": 1.0}}
                for i in range(1, _BATCH + 1)
            ]
            number += _BATCH
            # Far beyond what the light worker itself counts.
            body = {"seq": 10**6 + number, "reports": points}
            reply = await connection.ask("POST", f"/api/worker/training/{job_id}/reports", body)
            if reply.status != 200 or not reply.json["accepted"]:
                raise RuntimeError(f"reports: {reply.status} {reply.body[:300]!r}")
            counts["events"] += _BATCH
        connection.close()

    began = time.perf_counter()
    await asyncio.gather(*(report(job_id) for job_id in ids))
    spent = time.perf_counter() - began
    for job_id in ids:
        await ask(port, key, "POST", f"/api/training/jobs/{job_id}/cancel")
    return {
        "reporters": reporters,
        "batch": _BATCH,
        "events": counts["events"],
        "events_per_second": round(counts["events"] / spent),
    }


def worker_token(signing: Secret, job_id: str) -> str:
    """The token of the job's first attempt."""
    subject = f"worker:training:{job_id}:1"
    return mint_token(signing, subject=subject, expires_at=time.time() + 3600)


async def until(
    port: int, key: str, ready: Callable[[list[dict[str, Any]]], bool]
) -> list[dict[str, Any]]:
    """Wait until the jobs are so."""
    end = time.monotonic() + _END_SECONDS
    while True:
        jobs: list[dict[str, Any]] = (await ask(port, key, "GET", "/api/training/jobs"))["jobs"]
        if ready(jobs):
            return jobs
        if time.monotonic() > end:
            raise RuntimeError(f"jobs are {Counter(job['status'] for job in jobs)}")
        await asyncio.sleep(0.1)


async def drained(port: int, key: str, count: int) -> dict[str, object]:
    """Ask for many short jobs at once, and wait for all of them."""
    await register(port, key)
    began = time.perf_counter()
    for _ in range(count):
        await ask(port, key, "POST", f"/train/{ENVIRONMENT}", SHORT)
    asked = time.perf_counter() - began
    jobs = await until(port, key, lambda jobs: all(job["completed_at"] for job in jobs))
    spent = time.perf_counter() - began
    ends = Counter(str(job["status"]) for job in jobs)
    return {
        "jobs": dict(ends),
        "seconds_to_ask": round(asked, 2),
        "seconds_to_drain": round(spent, 1),
        "seconds_per_job": round(spent / count, 2),
        "problems": {} if ends == {"completed": count} else {str(dict(ends)): 1},
    }


async def started(port: int, key: str, times: int) -> dict[str, object]:
    """Ask for one job at a time, and see when each of its steps was told."""
    await register(port, key)
    stages: dict[str, list[float]] = {"launched": [], "started": [], "metric": []}
    for _ in range(times):
        job = await ask(port, key, "POST", f"/train/{ENVIRONMENT}", SHORT)
        job_id = str(job["job_id"])
        await until(port, key, lambda jobs: all(job["completed_at"] for job in jobs))
        path = f"/api/events?job={job_id}&after=0&limit=200"
        told = (await ask(port, key, "GET", path))["events"]
        asked = datetime.fromisoformat(job["created_at"])
        for kind, seconds in stages.items():
            first = next(event for event in told if event["kind"] == kind)
            at = datetime.fromisoformat(first["at"])
            seconds.append((at - asked).total_seconds())
    # The first worker of a server imports what the others are forked with.
    return {
        **{f"first_seconds_to_{kind}": round(seconds[0], 2) for kind, seconds in stages.items()},
        **{
            f"seconds_to_{kind}": round(sorted(seconds[1:])[(times - 1) // 2], 2)
            for kind, seconds in stages.items()
            if times > 1
        },
    }


def imports() -> float:
    """The seconds that a bare Python takes to import torch and the trainer's library."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch, stable_baselines3"], check=True)
    return round(time.perf_counter() - began, 2)


def run(asked: argparse.Namespace) -> dict[str, object]:
    """Measure on each engine what depends on it, and the rest on SQLite."""
    figures: dict[str, object] = {"machine": machine()}
    with tempfile.TemporaryDirectory(prefix="rleaas-queue-") as directory:
        for name in asked.engine or ENGINES:
            with engine(name) as make_place:
                place = Path(directory) / f"events-{name}"
                server = Server(
                    place,
                    make_place(),
                    workers=4,
                    runs=Path(directory) / "runs",
                    options=("--slow",),
                )
                key = server.bootstrap()
                with server:
                    figures[f"events_{name}"] = asyncio.run(
                        taken(server, key, asked.seconds, asked.reporters)
                    )
        if asked.jobs:
            server = Server(Path(directory) / "queue", workers=asked.max_jobs)
            key = server.bootstrap()
            with server:
                figures["queue"] = asyncio.run(drained(server.port, key, asked.jobs))
        if asked.starts:
            server = Server(Path(directory) / "starts", workers=1)
            key = server.bootstrap()
            with server:
                figures["start"] = {
                    **asyncio.run(started(server.port, key, asked.starts)),
                    "seconds_to_import_torch": imports(),
                }
    return figures


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code tells whether every job of the queue was completed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", action="append", choices=ENGINES)
    parser.add_argument("--seconds", type=float, default=10.0, help="of reporting")
    parser.add_argument("--reporters", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=50, help="in the queue; 0 leaves it out")
    parser.add_argument("--max-jobs", type=int, default=4)
    parser.add_argument(
        "--starts", type=int, default=5, help="jobs of their own; 0 leaves them out"
    )
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    asked = parser.parse_args(arguments)
    figures = run(asked)
    show(figures, as_json=asked.json)
    queue = figures.get("queue")
    return 1 if isinstance(queue, dict) and queue["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""Several servers on one PostgreSQL: python packages/rleaas/benchmarks/fleet.py.

Clients create jobs at all of them, a webhook hears of everything, and one of the servers is killed.
Then another one adopts its workers, every job is complete and each of its episodes counts once,
every event was delivered, twice only where a server died in the middle of it, and requests that
lost their server got the same answer from another.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from lean_client import Connection, ConnectionEnded, Reply
from served import Server, engine, lines, machine, show

ENVIRONMENT = "Shared"
_END_SECONDS = 150.0


class Receiver:
    """Where a webhook delivers to."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, int]] = []
        heard = self.heard

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                heard.append((int(body["id"]), int(body["delivery_id"])))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.place = f"127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Hear nothing more."""
        self._server.shutdown()
        self._server.server_close()


async def ask(port: int, key: str, method: str, path: str, body: object = None) -> Any:
    """Return a good answer."""
    connection = await Connection.open(port, key)
    try:
        reply = await connection.ask(method, path, body)
    finally:
        connection.close()
    if reply.status != 200:
        raise RuntimeError(f"{method} {path}: {reply.status} {reply.body[:300]!r}")
    return reply.json


async def create(
    number: int, servers: Sequence[Server], key: str, chance: random.Random
) -> tuple[str, int]:
    """Create a job at any server, and at another where that one is lost; also how often."""
    body = {"algorithm": "PPO", "num_episodes": 3, "run_name": f"run-{number}"}
    for attempt in range(1, 30):
        server = chance.choice(servers)
        try:
            connection = await Connection.open(server.port, key)
            reply: Reply = await connection.ask(
                "POST",
                f"/train/{ENVIRONMENT}",
                body,
                headers=[("idempotency-key", f"run-{number}")],
            )
            connection.close()
        except ConnectionEnded:
            await asyncio.sleep(0.1)
            continue
        if reply.status != 200:
            raise RuntimeError(f"create: {reply.status} {reply.body[:200]!r}")
        return str(reply.json["job_id"]), attempt
    raise RuntimeError(f"run-{number} was not taken by any server")


async def settled(port: int, key: str, hook: str, problems: Counter[str]) -> list[dict[str, Any]]:
    """Wait for the end of all jobs and deliveries; returns the jobs."""
    end = time.monotonic() + _END_SECONDS
    while True:
        jobs: list[dict[str, Any]] = (await ask(port, key, "GET", "/api/training/jobs"))["jobs"]
        told = await ask(port, key, "GET", f"/api/webhooks/{hook}/deliveries?limit=1000")
        open_jobs = sum(job["completed_at"] is None for job in jobs)
        undelivered = sum(one["status"] == "pending" for one in told["deliveries"])
        if not open_jobs and not undelivered:
            return jobs
        if time.monotonic() > end:
            problems["jobs without an end"] += open_jobs
            problems["deliveries without an end"] += undelivered
            return jobs
        await asyncio.sleep(0.3)


async def play(
    servers: Sequence[Server], key: str, receiver: Receiver, runs: Path, asked: argparse.Namespace
) -> dict[str, object]:
    """Create, kill, wait and compare; returns the figures."""
    chance = random.Random(asked.seed)
    problems: Counter[str] = Counter()
    first = servers[0].port
    made = {"name": ENVIRONMENT, "source": "gym://CartPole-v1"}
    await ask(first, key, "POST", "/api/custom-environments", made)
    for server in servers:
        await ask(server.port, key, "GET", f"/api/environments/{ENVIRONMENT}/endpoint")
    hook = await ask(first, key, "POST", "/api/webhooks", {"url": f"http://{receiver.place}/"})
    creating = [
        asyncio.create_task(create(number, servers, key, chance)) for number in range(asked.jobs)
    ]
    took_over: float | None = None
    if asked.kill:
        await asyncio.wait(creating, return_when=asyncio.FIRST_COMPLETED)
        await running_at(servers[-1], first, key)
        await asyncio.to_thread(servers[-1].kill)
        took_over = time.perf_counter()
    created = await asyncio.gather(*creating)
    jobs = await settled(first, key, str(hook["id"]), problems)
    if took_over is not None:
        took_over = round(time.perf_counter() - took_over, 1)
    ids = [job_id for job_id, _ in created]
    problems["one key, several jobs"] += len(ids) - len(set(ids))
    problems["jobs that nobody asked for, or lost"] += len({j["job_id"] for j in jobs} ^ set(ids))
    began = Counter(line.split()[1] for line in lines(runs) if line.startswith("began"))
    finished = Counter(line.split()[1] for line in lines(runs) if line.startswith("ended"))
    problems["jobs that came to their end twice"] += sum(n > 1 for n in finished.values())
    if not asked.kill:
        problems["jobs that ran twice"] += sum(count > 1 for count in began.values())
    ends = Counter(str(job["status"]) for job in jobs)
    for job in jobs:
        if job["status"] == "completed" and not began[job["job_id"]]:
            problems["completed without having run"] += 1
        if job["status"] != "completed":
            problems[f"{job['status']}: {job['error']}"] += 1
        path = f"/api/training/jobs/{job['job_id']}/metrics"
        points = (await ask(first, key, "GET", path))["metrics"]
        if [point["episode"] for point in points] != [2, 3, 4]:
            problems["curves with gaps or doubles"] += 1
    heard = Counter(event for event, _ in receiver.heard)
    told = await ask(first, key, "GET", f"/api/webhooks/{hook['id']}/deliveries?limit=1000")
    attempts = {int(one["id"]): int(one["attempts"]) for one in told["deliveries"]}
    repeated = Counter(receiver.heard)
    problems["delivered twice though nobody died"] += sum(
        count > 1 and attempts.get(delivery, 0) < count for (_, delivery), count in repeated.items()
    )
    problems["events with several deliveries"] += len(repeated) - len(heard)
    again = sum(count - 1 for count in heard.values())
    if again and not asked.kill:
        problems["delivered twice"] += again
    verified = await ask(first, key, "GET", "/api/audit/verify")
    problems["the audit chain is broken"] += not verified["valid"]
    return {
        "servers": len(servers),
        "killed": int(asked.kill),
        "jobs": dict(ends),
        "creates_sent_again": sum(attempt - 1 for _, attempt in created),
        "events_delivered": len(heard),
        "delivered_again_after_the_kill": again,
        "seconds_from_the_kill_to_the_end": took_over,
        "problems": {what: count for what, count in problems.items() if count},
    }


async def running_at(server: Server, port: int, key: str) -> None:
    """Wait until a worker of this server is at work, so that killing it leaves something behind."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = await ask(port, key, "GET", "/api/training/jobs?status=running")
        if found["count"] and server.process is not None and children_of(server.process.pid):
            return
        await asyncio.sleep(0.05)
    raise RuntimeError("the server that is to be killed has no job")


def children_of(pid: int) -> list[int]:
    """Return the worker processes that a server has started."""
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            stat = (place / "stat").read_text().rpartition(")")[2].split()
            command = (place / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended
        if int(stat[1]) == pid and b"/api/worker/" in command:
            found.append(int(place.name))
    return found


def run(asked: argparse.Namespace) -> dict[str, object]:
    """Play on one PostgreSQL."""
    with (
        engine("postgresql") as make_place,
        tempfile.TemporaryDirectory(prefix="rleaas-fleet-") as directory,
        ExitStack() as stack,
    ):
        receiver = Receiver()
        stack.callback(receiver.close)
        url = make_place()
        runs = Path(directory) / "runs"
        servers = [
            Server(
                Path(directory) / "data",
                url,
                options=("--allow-host", receiver.place),
                runs=runs,
            )
            for _ in range(asked.servers)
        ]
        key = servers[0].bootstrap()
        for server in servers:
            stack.enter_context(server)
        return {"machine": machine(), **asyncio.run(play(servers, key, receiver, runs, asked))}


def main(arguments: Sequence[str] | None = None) -> int:
    """Play and print; the exit code tells whether anything was done twice, or got lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--no-kill", dest="kill", action="store_false", help="kill none of them")
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    asked = parser.parse_args(arguments)
    figures = run(asked)
    show(figures, as_json=asked.json)
    return 1 if figures["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())

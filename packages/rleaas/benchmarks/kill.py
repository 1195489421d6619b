"""What is left after SIGKILL: python packages/rleaas/benchmarks/kill.py.

A real server is killed at random moments while several clients create things and one reads events.
After each restart, every answer that was given must still be true, requests without an answer are
sent again under their idempotency keys, and then there must be exactly one of everything, a whole
audit chain, the events as they were read, and an environment that answers. Workers go on meanwhile:
in the end every job is complete, and each episode counts once.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lean_client import Connection, ConnectionEnded, Reply
from served import ENGINES, MakePlace, Server, engine, lines, machine, show

ENVIRONMENT: Final = "Survivor"
FINISHED: Final = frozenset({"completed", "failed", "cancelled"})
# What the worker of `light_server` reports.
EPISODES_OF_LIGHT_JOBS: Final = [2, 3, 4]
_SETTLE_SECONDS: Final = 240.0


@dataclass(frozen=True, slots=True)
class Create:
    """One thing to make: what is sent, and how to find it afterwards."""

    kind: str
    number: int

    @property
    def name(self) -> str:
        """What it is called; no two are called the same."""
        return f"{self.kind}-{self.number}"

    @property
    def request(self) -> tuple[str, dict[str, object]]:
        """The path and the body."""
        if self.kind == "environment":
            return "/api/custom-environments", {"name": self.name, "vertical": "Kill"}
        if self.kind == "agent":
            return "/api/agents", {"name": self.name}
        if self.kind == "verifier":
            logic = {"conditions": ["score > 0.5"]}
            return "/api/verifiers", {"name": self.name, "type": "rule_based", "logic": logic}
        if self.kind == "scenario":
            return "/api/scenarios", {"name": self.name, "product": ENVIRONMENT}
        config = {"algorithm": "PPO", "num_episodes": 1, "max_steps": 16, "run_name": self.name}
        return f"/train/{ENVIRONMENT}", dict(config)

    def id_in(self, reply: Reply) -> str:
        """Return what the server called it."""
        body: dict[str, Any] = reply.json
        return str(body["job_id"] if self.kind == "job" else body["id"])


KINDS: Final = ("environment", "agent", "verifier", "scenario", "job")
LISTS: Final = {
    "environment": "/api/environments",
    "agent": "/api/agents",
    "verifier": "/api/verifiers",
    "scenario": "/api/scenarios",
    "job": "/api/training/jobs",
}


@dataclass(slots=True)
class Ledger:
    """What the server has promised, and what nobody knows."""

    made: dict[Create, str] = field(default_factory=dict[Create, str])
    in_doubt: set[Create] = field(default_factory=set[Create])
    events: list[tuple[int, str, str]] = field(default_factory=list[tuple[int, str, str]])
    audit_head: tuple[int, str] = (0, "")
    problems: Counter[str] = field(default_factory=Counter[str])
    counts: Counter[str] = field(default_factory=Counter[str])
    next_number: int = 0
    most_jobs: int = 0

    def next(self, chance: random.Random) -> Create:
        """Return something that nobody has asked for yet."""
        kind = chance.choice(KINDS)
        if kind == "job" and self.counts["jobs_asked"] >= self.most_jobs:
            kind = "agent"
        self.counts["jobs_asked"] += kind == "job"
        self.next_number += 1
        return Create(kind, self.next_number)


async def ask_for(connection: Connection, create: Create) -> Reply:
    """Send a create under its own idempotency key."""
    path, body = create.request
    return await connection.ask(
        "POST", path, body, headers=[("idempotency-key", f"key-{create.name}")], patience=30
    )


async def write(port: int, key: str, ledger: Ledger, chance: random.Random) -> None:
    """Create one thing after another until the server is gone."""
    try:
        connection = await Connection.open(port, key)
    except ConnectionEnded:
        return  # it was killed before this client had come that far
    while True:
        create = ledger.next(chance)
        ledger.in_doubt.add(create)
        try:
            reply = await ask_for(connection, create)
        except ConnectionEnded:
            ledger.counts["cut_off"] += 1
            return
        note(ledger, create, reply)


def note(ledger: Ledger, create: Create, reply: Reply) -> None:
    """Take an answer down; another one than before is a problem."""
    if reply.status == 503:
        ledger.counts["answered_503"] += 1
        return  # it stays in doubt and is asked for again
    if reply.status != 200:
        ledger.problems[f"{create.kind}: {reply.status} {reply.body[:160]!r}"] += 1
        return
    found = create.id_in(reply)
    if ledger.made.setdefault(create, found) != found:
        ledger.problems[f"{create.kind}: one key made two"] += 1
    ledger.in_doubt.discard(create)
    ledger.counts["acknowledged"] += 1


async def follow(port: int, key: str, ledger: Ledger) -> None:
    """Read events as they come until the server is gone."""
    try:
        connection = await Connection.open(port, key)
        while True:
            after = ledger.events[-1][0] if ledger.events else 0
            reply = await connection.ask("GET", f"/api/events?after={after}&wait_seconds=5")
            if reply.status != 200:
                ledger.problems[f"events: {reply.status}"] += 1
                return
            ledger.events += [(e["id"], e["kind"], e["subject"]) for e in reply.json["events"]]
    except ConnectionEnded:
        return


async def read(port: int, key: str, path: str) -> Any:
    """Return what the server says at a path."""
    connection = await Connection.open(port, key)
    try:
        reply = await connection.ask("GET", path)
    finally:
        connection.close()
    if reply.status != 200:
        raise RuntimeError(f"GET {path}: {reply.status} {reply.body[:300]!r}")
    return reply.json


async def settle(port: int, key: str, ledger: Ledger, chance: random.Random) -> None:
    """Ask again for what is in doubt, and for some of what was promised."""
    connection = await Connection.open(port, key)
    again = sorted(ledger.in_doubt, key=lambda one: one.number)
    ledger.counts["asked_again"] += len(again)
    made = list(ledger.made)
    again += chance.sample(made, min(10, len(made)))
    for create in again:
        note(ledger, create, await ask_for(connection, create))
    connection.close()
    if ledger.in_doubt:
        ledger.problems["still without an answer after the restart"] += len(ledger.in_doubt)


async def check(port: int, key: str, ledger: Ledger) -> None:
    """Compare the server with what it has promised."""
    for kind, path in LISTS.items():
        found = await read(port, key, path)
        rows: list[dict[str, Any]] = found if kind == "agent" else found[f"{kind}s"]
        ids = Counter(
            str(row["job_id"] if kind == "job" else row["id"])
            for row in rows
            if str(row.get("name") or row.get("run_name")).startswith(f"{kind}-")
        )
        wanted = Counter(id for create, id in ledger.made.items() if create.kind == kind)
        ledger.problems[f"{kind}: lost"] += (wanted - ids).total()
        ledger.problems[f"{kind}: doubled"] += (ids - wanted).total()
    await check_events(port, key, ledger)
    await check_audit(port, key, ledger)


async def check_events(port: int, key: str, ledger: Ledger) -> None:
    """Every event that was read is there, in its place; each job was created once."""
    events: list[tuple[int, str, str]] = []
    while True:
        after = events[-1][0] if events else 0
        page = (await read(port, key, f"/api/events?after={after}&limit=1000"))["events"]
        events += [(event["id"], event["kind"], event["subject"]) for event in page]
        if not page:
            break
    if ledger.events:
        # What was read is an unbroken part: nothing in it was lost, changed or added later.
        first, last = ledger.events[0][0], ledger.events[-1][0]
        if [event for event in events if first <= event[0] <= last] != ledger.events:
            ledger.problems["events: not as they were read"] += 1
    created = Counter(subject for _, kind, subject in events if kind == "created")
    jobs = Counter(f"job:{id}" for create, id in ledger.made.items() if create.kind == "job")
    ledger.problems["events: a job created once"] += created != jobs


async def check_audit(port: int, key: str, ledger: Ledger) -> None:
    """The chain is whole and longer than before, with one record of each creation."""
    verified = await read(port, key, "/api/audit/verify")
    if not verified["valid"]:
        ledger.problems[f"audit: {verified['problem']}"] += 1
    records = (await read(port, key, "/api/audit?limit=1000000"))["events"]
    by_number = {int(record["number"]): str(record["chain_hash"]) for record in records}
    number, digest = ledger.audit_head
    if number and by_number.get(number) != digest:
        ledger.problems["audit: the record that was last is another one"] += 1
    ledger.audit_head = (int(verified["records"]), str(verified["head"]))
    creations = Counter(
        str(record["subject"])
        for record in records
        if str(record["type"]).rpartition(".")[2] in ("created", "registered")
    )
    for create, id in ledger.made.items():
        if creations[f"{create.kind}:{id}"] != 1:
            ledger.problems[f"audit: a {create.kind} has not one creation"] += 1


async def reached(port: int, key: str, ledger: Ledger) -> None:
    """The environment is brought up again, as the same."""
    granted = await read(port, key, f"/api/environments/{ENVIRONMENT}/endpoint")
    digest = str(granted["contract_digest"])
    before = ledger.counts.get(f"digest {digest}", 0)
    if not before and any(name.startswith("digest ") for name in ledger.counts):
        ledger.problems["the environment is another one"] += 1
    ledger.counts[f"digest {digest}"] += 1


async def all_end(port: int, key: str, ledger: Ledger) -> Counter[str]:
    """Wait for every job to end, and return how they did."""
    end = time.monotonic() + _SETTLE_SECONDS
    while True:
        jobs = (await read(port, key, "/api/training/jobs"))["jobs"]
        left = [job["job_id"] for job in jobs if job["status"] not in FINISHED]
        if not left:
            break
        if time.monotonic() > end:
            ledger.problems["jobs did not end"] += len(left)
            break
        await asyncio.sleep(0.5)
    reasons = Counter(
        str(job["status"] if not job["error"] else f"{job['status']}: {job['error']}")[:60]
        for job in jobs
    )
    for job in jobs:
        if job["status"] != "completed":
            ledger.problems[f"a job is {job['status']}: {str(job['error'])[:120]}"] += 1
        ledger.counts["attempts"] += int(job["attempt"])
        path = f"/api/training/jobs/{job['job_id']}/metrics"
        points = (await read(port, key, path))["metrics"]
        rewarded = [point["episode"] for point in points if "reward" in point]
        if rewarded and rewarded != EPISODES_OF_LIGHT_JOBS:
            ledger.problems[f"a curve has the episodes {rewarded}"] += 1
    return reasons


def check_runs(runs: Path, jobs: Sequence[str], ledger: Ledger) -> None:
    """None is told to be complete that did not run, and each came to its end once."""
    began = Counter(line.split()[1] for line in lines(runs) if line.startswith("began"))
    ended = Counter(line.split()[1] for line in lines(runs) if line.startswith("ended"))
    ledger.problems["completed without having run"] += sum(not began[job] for job in jobs)
    ledger.problems["came to its end twice"] += sum(count > 1 for count in ended.values())
    ledger.counts["ran"] = len(began)
    ledger.counts["began_more_than_once"] = sum(count > 1 for count in began.values())


async def one_life(
    server: Server, key: str, ledger: Ledger, chance: random.Random, writers: int, longest: float
) -> None:
    """Load the server, and kill it at some moment."""
    rushing = [
        asyncio.create_task(write(server.port, key, ledger, random.Random(chance.random())))
        for _ in range(writers)
    ]
    rushing.append(asyncio.create_task(follow(server.port, key, ledger)))
    await asyncio.sleep(chance.uniform(0.05, longest))
    await asyncio.to_thread(server.kill)
    await asyncio.gather(*rushing)


async def play(
    server: Server, key: str, runs: Path | None, asked: argparse.Namespace
) -> dict[str, object]:
    """Kill and check as often as asked; returns the figures."""
    chance = random.Random(asked.seed)
    ledger = Ledger()
    restarts: list[float] = []
    connection = await Connection.open(server.port, key)
    made = await connection.ask(
        "POST",
        "/api/custom-environments",
        {"name": ENVIRONMENT, "source": "gym://CartPole-v1"},
        headers=[("idempotency-key", "key-survivor")],
    )
    connection.close()
    if made.status != 200:
        raise RuntimeError(f"no environment: {made.body!r}")
    for _ in range(asked.kills):
        ledger.most_jobs += asked.jobs
        await one_life(server, key, ledger, chance, asked.writers, asked.longest)
        began = time.perf_counter()
        await asyncio.to_thread(server.start)
        restarts.append(time.perf_counter() - began)
        await settle(server.port, key, ledger, chance)
        await check(server.port, key, ledger)
        await reached(server.port, key, ledger)
    ends = await all_end(server.port, key, ledger)
    await check(server.port, key, ledger)
    if runs is not None:
        jobs = (await read(server.port, key, "/api/training/jobs"))["jobs"]
        completed = [str(job["job_id"]) for job in jobs if job["status"] == "completed"]
        check_runs(runs, completed, ledger)
    # Without these, nothing was put to the test.
    ledger.problems["nothing was acknowledged"] += not ledger.counts["acknowledged"]
    ledger.problems["no event was read"] += not ledger.events
    return {
        "kills": asked.kills,
        "seed": asked.seed,
        "made": dict(Counter(create.kind for create in ledger.made)),
        "acknowledged": ledger.counts["acknowledged"],
        "cut_off": ledger.counts["cut_off"],
        "asked_again": ledger.counts["asked_again"],
        "answered_503": ledger.counts["answered_503"],
        "events_read": len(ledger.events),
        "audit_records": ledger.audit_head[0],
        "jobs": dict(ends),
        **({} if runs is None else {"jobs_that_ran": ledger.counts["ran"]}),
        "longest_restart_seconds": round(max(restarts), 2),
        "problems": {what: count for what, count in ledger.problems.items() if count},
    }


def run(make_place: MakePlace, name: str, asked: argparse.Namespace) -> dict[str, object]:
    """Play on one engine."""
    with tempfile.TemporaryDirectory(prefix="rleaas-kill-") as directory:
        place = Path(directory)
        runs = place / "runs" if asked.light else None
        server = Server(place / "data", make_place(), workers=2, runs=runs)
        key = server.bootstrap()
        began = time.perf_counter()
        with server:
            figures = asyncio.run(play(server, key, runs, asked))
        seconds = round(time.perf_counter() - began, 1)
        return {"engine": name, "machine": machine(), "seconds": seconds, **figures}


def at_least_one(text: str) -> int:
    """Read a number of kills; without any, nothing would be shown."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("it takes at least one kill")
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill, check and print; the exit code tells whether anything was lost or doubled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=[*ENGINES, "both"], default="both")
    parser.add_argument("--kills", type=at_least_one, default=20)
    parser.add_argument("--writers", type=int, default=8, help="clients that create at once")
    parser.add_argument("--jobs", type=int, default=1, help="at most, in each life; a job trains")
    parser.add_argument("--longest", type=float, default=2.0, help="seconds until a kill, at most")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--light", action="store_true", help="jobs that do next to nothing")
    parser.add_argument("--json", action="store_true", help="one line of JSON for each engine")
    asked = parser.parse_args(arguments)
    failed = False
    for name in ENGINES if asked.engine == "both" else (asked.engine,):
        with engine(name) as make_place:
            figures = run(make_place, name, asked)
        show(figures, as_json=asked.json)
        failed = failed or bool(figures["problems"])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""How fast and how steady the server answers: python packages/rleaas/benchmarks/load.py.

Real server processes with API keys, on loopback; everything is bounded in count and time. For each
engine: one client that reads an environment; a crowd of connections that stay open and read;
creates at once, of which several have the same idempotency key; and streams of events.
"""

import argparse
import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from lean_client import Connection, ConnectionEnded, Tally
from served import ENGINES, MakePlace, Server, engine, machine, show

NAME = "CartPole-Prod"
PATH = f"/api/environments/{NAME}"
_READ_BYTES = 65536
# What one client waits for an environment, in the middle, where nothing else wants the processor.
TARGET_P50_MS = 3.0


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is asked."""

    single: int
    clients: int
    seconds: float
    creates: int
    repeats: int
    streams: int


async def single(port: int, key: str, count: int) -> dict[str, object]:
    """One client, warm, one request after another."""
    connection = await Connection.open(port, key)
    for _ in range(min(200, count)):
        await connection.ask("GET", PATH)
    tally = Tally()
    for _ in range(count):
        began = time.perf_counter()
        reply = await connection.ask("GET", PATH)
        tally.seconds.append(time.perf_counter() - began)
        if reply.status != 200:
            tally.errors[f"status {reply.status}"] += 1
    tally.end()
    connection.close()
    return tally.figures()


async def crowd(port: int, key: str, clients: int, seconds: float) -> dict[str, object]:
    """Many connections at once, each kept open for one read after another."""
    tally = Tally()
    opened: list[Connection] = []

    async def open_one() -> None:
        try:
            opened.append(await Connection.open(port, key))
        except ConnectionEnded as error:
            tally.errors[str(error)] += 1

    await asyncio.gather(*(open_one() for _ in range(clients)))
    tally.began = time.perf_counter()
    end = tally.began + seconds
    answered = 0

    async def read(connection: Connection) -> None:
        nonlocal answered
        while True:
            began = time.perf_counter()
            try:
                reply = await connection.ask("GET", PATH)
            except ConnectionEnded as error:
                tally.errors[str(error)] += 1
                return
            now = time.perf_counter()
            tally.seconds.append(now - began)
            if reply.status != 200:
                tally.errors[f"status {reply.status}"] += 1
            if now >= end:
                answered += 1
                return

    await asyncio.gather(*map(read, opened))
    tally.end()
    for connection in opened:
        connection.close()
    return {"clients": clients, "clients_served_to_the_end": answered, **tally.figures()}


async def creates(port: int, key: str, distinct: int, repeats: int) -> dict[str, object]:
    """Creates at once, each of them asked for several times under one idempotency key."""
    tally = Tally()
    replies: dict[tuple[str, int], list[object]] = {}
    kinds = ("tool", "environment", "agent", "job")

    async def create(kind: str, number: int) -> None:
        path, body = _create(kind, number)
        began = time.perf_counter()
        try:
            connection = await Connection.open(port, key)
            reply = await connection.ask(
                "POST", path, body, headers=[("idempotency-key", f"{kind}-{number}")]
            )
            connection.close()
        except ConnectionEnded as error:
            tally.errors[str(error)] += 1
            return
        tally.seconds.append(time.perf_counter() - began)
        if reply.status != 200:
            tally.errors[f"{kind}: status {reply.status} {reply.body[:120]!r}"] += 1
            return
        replies.setdefault((kind, number), []).append(_made(kind, reply.json))

    asked = [(kinds[number % len(kinds)], number) for number in range(distinct)]
    await asyncio.gather(*(create(*one) for _ in range(repeats) for one in asked))
    tally.end()
    unequal = [one for one, made in replies.items() if len(set(made)) != 1]
    rows = {kind: await _rows(port, key, kind) for kind in kinds}
    wanted = {kind: sum(1 for one, _ in asked if one == kind) for kind in kinds}
    if unequal:
        tally.errors["one key, different answers"] += len(unequal)
    if rows != wanted:
        tally.errors[f"rows {rows} instead of {wanted}"] += 1
    return {"asked": distinct * repeats, "distinct": distinct, "rows": rows, **tally.figures()}


async def streams(port: int, key: str, count: int) -> dict[str, object]:
    """Event streams at once: how long after a change each of them has told of it."""
    tally = Tally()
    opened: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    head = (
        f"GET /api/events HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\n"
        "accept: text/event-stream\r\n\r\n"
    ).encode()

    async def listen() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
        opened.append((reader, writer))
        writer.write(head)
        first = await asyncio.wait_for(reader.readuntil(b"retry: "), 60)
        if b" 200 " not in first.split(b"\r\n", 1)[0]:
            tally.errors[first.split(b"\r\n", 1)[0].decode()] += 1

    async def hear(reader: asyncio.StreamReader, since: float) -> None:
        try:
            await asyncio.wait_for(reader.readuntil(b"event: webhook"), 60)
        except (TimeoutError, asyncio.IncompleteReadError) as error:
            tally.errors[type(error).__name__] += 1
            return
        tally.seconds.append(time.perf_counter() - since)

    results = await asyncio.gather(*(listen() for _ in range(count)), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            tally.errors[f"no stream: {type(result).__name__}"] += 1
    connection = await Connection.open(port, key)
    body = {"url": "http://127.0.0.1:9/", "events": ["job.completed"]}
    made = await connection.ask("POST", "/api/webhooks", body)
    tally.began = time.perf_counter()
    path = f"/api/webhooks/{made.json.get('id')}/test"
    hearing = [asyncio.create_task(hear(reader, tally.began)) for reader, _ in opened]
    asked = await connection.ask("POST", path)
    if asked.status != 200:
        tally.errors[f"test of the webhook: {asked.status} {asked.body[:100]!r}"] += 1
    await asyncio.gather(*hearing)
    tally.end()
    connection.close()
    for _, writer in opened:
        writer.close()
    return {"streams": count, **tally.figures()}


def _create(kind: str, number: int) -> tuple[str, dict[str, object]]:
    if kind == "tool":
        return "/api/tools", {"tools": [{"name": f"tool-{number}", "description": "of a load"}]}
    if kind == "environment":
        return "/api/custom-environments", {"name": f"env-{number}", "vertical": "Load"}
    if kind == "agent":
        return "/api/agents", {"name": f"agent-{number}"}
    return f"/train/{NAME}", {"algorithm": "PPO", "num_episodes": 1, "run_name": f"run-{number}"}


def _made(kind: str, body: dict[str, Any]) -> object:
    if kind == "tool":
        return body["tools"][0]["id"]
    return body["job_id"] if kind == "job" else body["id"]


async def _rows(port: int, key: str, kind: str) -> int:
    path, field = {
        "tool": ("/api/tools", "tools"),
        "environment": ("/api/environments", "environments"),
        "agent": ("/api/agents", "agents"),
        "job": ("/api/training/jobs", "jobs"),
    }[kind]
    connection = await Connection.open(port, key)
    reply = await connection.ask("GET", path)
    connection.close()
    found = reply.json
    rows = cast("list[dict[str, object]]", found if isinstance(found, list) else found[field])
    mine = {"tool": "tool-", "environment": "env-", "agent": "agent-", "job": "run-"}[kind]
    return sum(1 for row in rows if str(row.get("name") or row.get("run_name")).startswith(mine))


async def measure(server: Server, key: str, sizes: Sizes) -> dict[str, object]:
    """Do all of it against one server."""
    connection = await Connection.open(server.port, key)
    made = await connection.ask(
        "POST", "/api/custom-environments", {"name": NAME, "source": "gym://CartPole-v1"}
    )
    ready = await connection.ask("GET", f"{PATH}/endpoint")
    if made.status != 200 or ready.status != 200:
        raise RuntimeError(f"no environment: {made.body!r} {ready.body!r}")
    connection.close()
    gc.freeze()
    alone = await single(server.port, key, sizes.single)
    return {
        "get_environment_one_client": {**alone, **verdict(alone["p50_ms"])},
        "get_environment_crowd": await crowd(server.port, key, sizes.clients, sizes.seconds),
        "creates": await creates(server.port, key, sizes.creates, sizes.repeats),
        "event_streams": await streams(server.port, key, sizes.streams),
    }


def verdict(p50: object) -> dict[str, object]:
    """The target of the median, and whether it was met."""
    met = isinstance(p50, float | int) and p50 < TARGET_P50_MS
    return {"target_p50_ms": TARGET_P50_MS, "verdict": "met" if met else "missed"}


def run(make_place: MakePlace, name: str, sizes: Sizes) -> dict[str, object]:
    """Measure one engine."""
    with tempfile.TemporaryDirectory(prefix="rleaas-load-") as directory:
        # Jobs are created, not run: what they would do is not the server's.
        server = Server(
            Path(directory), make_place(), workers=1, options=("--allow-host", "127.0.0.1:9")
        )
        key = server.bootstrap()
        with server:
            return {
                "engine": name,
                "machine": machine(),
                **asyncio.run(measure(server, key, sizes)),
            }


def went_wrong(figures: dict[str, object], *, strict: bool) -> bool:
    """Whether any part of the load met an error, or missed its target, where that counts."""
    parts = [cast("dict[str, object]", part) for part in figures.values() if isinstance(part, dict)]
    missed = strict and any(part.get("verdict") == "missed" for part in parts)
    return missed or any(part.get("errors") for part in parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and tell by the exit code whether anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=[*ENGINES, "both"], default="both")
    parser.add_argument("--requests", type=int, default=3000, help="of the one client")
    parser.add_argument("--clients", type=int, default=1000, help="connections of the crowd")
    parser.add_argument("--seconds", type=float, default=10.0, help="that the crowd reads")
    parser.add_argument("--creates", type=int, default=50, help="different creates")
    parser.add_argument("--repeats", type=int, default=4, help="times that each is asked for")
    parser.add_argument("--streams", type=int, default=200, help="event streams at once")
    parser.add_argument(
        "--strict", action="store_true", help="a target that is missed is a failure"
    )
    parser.add_argument("--json", action="store_true", help="one line of JSON for each engine")
    asked = parser.parse_args(arguments)
    sizes = Sizes(
        single=asked.requests,
        clients=asked.clients,
        seconds=asked.seconds,
        creates=asked.creates,
        repeats=asked.repeats,
        streams=asked.streams,
    )
    failed = False
    for name in ENGINES if asked.engine == "both" else (asked.engine,):
        with engine(name) as make_place:
            figures = run(make_place, name, sizes)
        show(figures, as_json=asked.json)
        failed = failed or went_wrong(figures, strict=asked.strict)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

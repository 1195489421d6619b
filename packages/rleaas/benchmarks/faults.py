"""What a server does when things break: python packages/rleaas/benchmarks/faults.py.

PostgreSQL is ended at once and started again while clients create; a crowd comes to a server that
may open few files; hundreds of connections send half a request and wait. Everything is counted:
answers have to be 200 or 503 with a time to come back, and afterwards all is as it was promised.
"""

import argparse
import asyncio
import os
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

from lean_client import Connection, ConnectionEnded, Tally
from served import PostgreSQL, Server, machine, show

_FILES: Final = 256
_HALF: Final = b"POST /api/agents HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: "


async def lost_postgresql(
    server: Server, key: str, postgresql: PostgreSQL, seconds: float
) -> dict[str, object]:
    """End PostgreSQL in the middle of creates, and start it again."""
    answers: Counter[str] = Counter()
    made: dict[str, str] = {}
    ended = asyncio.Event()

    async def create(client: int) -> None:
        number = 0
        connection = await Connection.open(server.port, key)
        while not ended.is_set():
            name = f"agent-{client}-{number}"
            reply = await connection.ask(
                "POST", "/api/agents", {"name": name}, headers=[("idempotency-key", name)]
            )
            answers[str(reply.status)] += 1
            if reply.status == 200:
                if made.setdefault(name, reply.json["id"]) != reply.json["id"]:
                    answers["one key, two agents"] += 1
                number += 1
            elif reply.status != 503 or not reply.header("retry-after"):
                answers[f"{reply.status} {reply.body[:120]!r}"] += 1
            else:
                await asyncio.sleep(0.1)
        connection.close()

    clients = [asyncio.create_task(create(number)) for number in range(8)]
    await asyncio.sleep(seconds)
    await asyncio.to_thread(postgresql.crash)
    await asyncio.sleep(seconds)
    before = len(made)
    await asyncio.to_thread(postgresql.start)
    back = time.perf_counter()
    while len(made) == before and time.perf_counter() - back < 30:  # noqa: ASYNC110 - a count
        await asyncio.sleep(0.01)
    recovered = time.perf_counter() - back
    await asyncio.sleep(seconds)
    ended.set()
    await asyncio.gather(*clients)
    connection = await Connection.open(server.port, key)
    found = Counter(one["id"] for one in (await connection.ask("GET", "/api/agents")).json)
    chain = (await connection.ask("GET", "/api/audit/verify")).json
    connection.close()
    errors = Counter({what: n for what, n in answers.items() if what not in ("200", "503")})
    errors["lost"] += sum(found[id] == 0 for id in made.values())
    errors["doubled"] += sum(count > 1 for count in found.values())
    errors["audit chain broken"] += not chain["valid"]
    return {
        "answers": {status: answers[status] for status in ("200", "503")},
        "seconds_until_it_created_again": round(recovered, 2),
        "errors": {what: count for what, count in errors.items() if count},
    }


async def crowded(server: Server, key: str, clients: int) -> dict[str, object]:
    """More connections than the server may open files; those that it has are served."""
    answers: Counter[str] = Counter()
    gate = asyncio.Event()

    async def come() -> None:
        try:
            connection = await Connection.open(server.port, key)
            reply = await connection.ask("GET", "/api/agents")
        except ConnectionEnded:
            answers["closed"] += 1
            return
        answers[str(reply.status)] += 1
        await gate.wait()
        connection.close()

    coming = [asyncio.create_task(come()) for _ in range(clients)]
    while sum(answers.values()) < clients:  # noqa: ASYNC110 - a count
        await asyncio.sleep(0.05)
    gate.set()
    await asyncio.gather(*coming)
    errors = {} if await serves_again(server.port, key) else {"it does not serve afterwards": 1}
    odd = {what: n for what, n in answers.items() if what not in ("200", "503", "closed")}
    return {"files": _FILES, "clients": clients, "answers": dict(answers), "errors": errors | odd}


async def serves_again(port: int, key: str) -> bool:
    """Whether one more client is served; the server may hear of the others' end a little later."""
    for _ in range(100):
        try:
            connection = await Connection.open(port, key)
            reply = await connection.ask("POST", "/api/agents", {"name": "afterwards"})
            connection.close()
        except ConnectionEnded:
            await asyncio.sleep(0.1)
            continue
        if reply.status == 200:
            return True
    return False


async def slow(server: Server, key: str, count: int) -> dict[str, object]:
    """Connections that never finish their request, and one client beside them."""
    holding = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(count)]
    for one in holding:
        one.sendall(_HALF)
    connection = await Connection.open(server.port, key)
    tally = Tally()
    began = time.perf_counter()
    for _ in range(200):
        at = time.perf_counter()
        reply = await connection.ask("GET", "/api/agents")
        tally.seconds.append(time.perf_counter() - at)
        if reply.status != 200:
            tally.errors[str(reply.status)] += 1
    tally.end()
    connection.close()

    def told() -> tuple[Counter[str], float]:
        heard: Counter[str] = Counter()
        for one in holding:
            one.settimeout(60)
            heard[one.recv(64)[9:12].decode() or "closed"] += 1
            one.close()
        return heard, time.perf_counter() - began

    heard, seconds = await asyncio.to_thread(told)
    if set(heard) - {"408", "closed"}:
        tally.errors[f"slow ones were answered {dict(heard)}"] += 1
    return {
        "slow_connections": count,
        "were_told": dict(heard),
        "all_let_go_after_seconds": round(seconds, 1),
        **tally.figures(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Break things and print what came of it; the exit code tells whether anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="between two blows")
    parser.add_argument("--clients", type=int, default=400)
    parser.add_argument("--slow", type=int, default=300)
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    asked = parser.parse_args(arguments)
    figures: dict[str, object] = {"machine": machine()}
    with tempfile.TemporaryDirectory(prefix="rleaas-faults-") as directory:
        place = Path(directory)
        with PostgreSQL() as postgresql:
            server = Server(place / "postgresql", postgresql.make())
            key = server.bootstrap()
            with server:
                figures["postgresql_ended"] = asyncio.run(
                    lost_postgresql(server, key, postgresql, asked.seconds)
                )
        server = Server(place / "sqlite", open_files=_FILES)
        key = server.bootstrap()
        with server:
            figures["few_files"] = asyncio.run(crowded(server, key, asked.clients))
        server = Server(place / "sqlite")
        with server:
            figures["slow_requests"] = asyncio.run(slow(server, key, asked.slow))
    figures["load_average_afterwards"] = [round(value, 2) for value in os.getloadavg()]
    show(figures, as_json=asked.json)
    parts = [cast("dict[str, object]", one) for one in figures.values() if isinstance(one, dict)]
    return 1 if any(part.get("errors") for part in parts) else 0


if __name__ == "__main__":
    sys.exit(main())

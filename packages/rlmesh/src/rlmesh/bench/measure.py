"""Measures one cell, with processes that are started for it and ended after it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rlcore import Error

from rlmesh.bench.cells import Cell
from rlmesh.bench.counters import cpu_seconds, resident_bytes
from rlmesh.bench.drive import LONGEST_RUN, unpacked
from rlmesh.bench.measurements import Measurement, Missing, Record, percentiles
from rlmesh.bench.processes import START_SECONDS, ClientProcess, ServerProcess

# Many clients run for a time instead of a number of steps: all of them until the last has done.
WARM_UP_SECONDS = 0.3
# What a run takes beyond its time: the last step, and playing the run again to check its end.
GRACE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Settings:
    """How long, and how it is checked.

    Attributes:
        seconds: how long one run may take.
        rounds: how often each cell is measured.
        checked: the names of the subjects whose observations are compared with a local copy's.
        client: more options of the clients.
    """

    seconds: float
    rounds: int
    checked: frozenset[str]
    client: Mapping[str, object] = field(default_factory=dict[str, object])


def measure(cell: Cell, number: int, settings: Settings) -> Record:
    """Return what one run of a cell shows, or why it came to nothing."""
    try:
        with ExitStack() as stack:
            return _measure(cell, number, settings, stack)
    except Error as error:
        return Missing(cell, number, " ".join(str(error).split()))


def _measure(cell: Cell, number: int, settings: Settings, stack: ExitStack) -> Measurement:
    clients: list[ClientProcess] = []
    for _ in range(cell.clients):
        clients.append(ClientProcess(settings=cell.subject.address is not None))
        stack.callback(clients[-1].end)
    import_s = float(np.median([client.loaded() for client in clients]))
    server, address = _served(cell, stack)
    answered = _open(clients, cell, address, settings)
    many = cell.clients > 1
    if many:
        _run(clients, LONGEST_RUN, WARM_UP_SECONDS)
    cpu = None if server is None else cpu_seconds(server.pid)
    results = _run(clients, LONGEST_RUN if many else cell.subject.steps, settings.seconds)
    spent = None if server is None or cpu is None else cpu_seconds(server.pid)
    memory = None if server is None else resident_bytes(server.pid)
    steps = sum(int(result["steps"]) for result in results)
    p50, p90, p99 = percentiles(
        np.concatenate([unpacked(result["latencies_us"]) for result in results])
    )
    carried = [result["tcp_bytes"] for result in results]
    return Measurement(
        cell=cell,
        round=number,
        steps=steps,
        seconds=max(result["seconds"] for result in results),
        steps_per_s=sum(result["steps"] / result["seconds"] for result in results),
        p50_us=p50,
        p90_us=p90,
        p99_us=p99,
        client_cpu_us=sum(result["cpu_s"] for result in results) / steps * 1e6,
        server_cpu_us=None if spent is None or cpu is None else (spent - cpu) / steps * 1e6,
        server_memory_mb=None if memory is None else memory / 1e6,
        tcp_bytes=sum(carried) / steps if cell.carrier.is_tcp and None not in carried else None,
        payload_bytes=results[0]["payload_bytes"],
        startup_s=None if server is None else answered - server.started,
        client_import_s=import_s,
        limited=not many and any(result["limited"] for result in results),
        checked=sum(result["checked"] for result in results),
    )


def _served(cell: Cell, stack: ExitStack) -> tuple[ServerProcess | None, str | None]:
    if cell.carrier.lane is None:
        return None, None
    if cell.subject.source is None or cell.subject.address is not None:
        return None, cell.subject.address
    if cell.carrier.transport == "unix":
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="rlmesh-bench-"))
        where = f"unix://{Path(folder) / 'env.sock'}"
    else:
        where = "127.0.0.1:0"
    server = ServerProcess(cell.subject.source, where, "--max-sessions", str(cell.clients + 1))
    stack.callback(server.end)
    return server, server.address()


def _open(
    clients: Sequence[ClientProcess], cell: Cell, address: str | None, settings: Settings
) -> float:
    made_here = address is None
    subject, check = cell.subject, cell.subject.name in settings.checked
    # The lane is asked for by name, so that no other one is measured in its place.
    options = {} if made_here else {**settings.client, "lane": cell.carrier.lane}
    for client in clients:
        what = {"address": address, "source": subject.source, "lanes": subject.lanes}
        client.tell({"do": "open", "options": options, "check": check, **what})
    return max(float(client.answer(START_SECONDS)["answered_at"]) for client in clients)


def _run(
    clients: Sequence[ClientProcess], steps: int, seconds: float
) -> list[dict[str, Any]]:  # Any: what JSON holds
    for client in clients:
        client.tell({"do": "run", "steps": steps, "seconds": seconds})
    return [client.answer(seconds + GRACE_SECONDS) for client in clients]

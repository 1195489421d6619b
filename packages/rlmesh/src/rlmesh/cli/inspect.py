"""`rlmesh inspect ADDR`: what a server promises, and what it is doing."""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from rlcore import UnsupportedError
from rlcore.printable import printable

from rlmesh.cli.look import AddParser, add_address, positive_seconds

if TYPE_CHECKING:
    from rlmesh.client.visit import Visit

# Clears a terminal and starts again at its top.
CLEAR = "\033[H\033[2J"
Status = Mapping[str, Any]  # Any: plain data, by name


def add_inspect(add: AddParser) -> None:
    """Add `rlmesh inspect`."""
    parser = add(
        "inspect",
        help="print what a server promises, and what its sessions are doing",
        epilog="Latencies are the server's own: from a request's arrival to its answer.",
    )
    add_address(parser)
    parser.add_argument(
        "--watch",
        type=positive_seconds,
        nargs="?",
        const=1.0,
        metavar="SECONDS",
        help="print the sessions again and again, until Ctrl-C (every second)",
    )
    parser.set_defaults(command=inspect)


def inspect(options: argparse.Namespace) -> int:
    """Print what the server says; 1 when it is to be watched and does not tell."""
    from rlmesh.client.visit import Visit

    with Visit(
        options.address,
        connect_timeout_seconds=options.timeout,
        wait_for_server_seconds=options.wait,
        tls=options.tls,
    ) as visit:
        if options.watch is not None:
            _watch(visit, options)
        status, reason = _status(visit, options.timeout)
        contract = visit.env_contract
        if options.json:
            promised = {**contract.to_dict(), "digest": contract.digest}
            told = {"server": status} if reason is None else {"server": None, "reason": reason}
            print(json.dumps({**promised, **told}, default=str))
            return 0
        rows = {
            "environment": visit.identity,
            "address": visit.address,
            "server": visit.software,
            "observation": contract.observation_space,
            "action": contract.action_space,
            "render mode": contract.render_mode,
            "environments": contract.num_envs,
            "digest": contract.digest,
            **{
                f"metadata {printable(key)}": value
                for key, value in (contract.metadata or {}).items()
            },
        }
        width = max(map(len, rows))
        print("\n".join(f"{name.ljust(width)}  {printable(value)}" for name, value in rows.items()))
        print()
        print(printable(reason) if status is None else shown(status))
    return 0


def _watch(visit: "Visit", options: argparse.Namespace) -> None:
    """Print the sessions until Ctrl-C ends it."""
    in_place = sys.stdout.isatty() and not options.json
    while True:
        status = visit.status(timeout=options.timeout)
        text = json.dumps(status) if options.json else shown(status)
        print(f"{CLEAR if in_place else ''}{text}", flush=True)
        time.sleep(options.watch)


def _status(visit: "Visit", timeout: float) -> tuple[Status | None, str | None]:
    try:
        return visit.status(timeout=timeout), None
    except UnsupportedError as error:
        return None, str(error)


def shown(status: Status) -> str:
    """Return what a server is doing, for people."""
    private = "each with its own environment" if status["private_sessions"] else "one environment"
    head = [
        f"{printable(status['environment'])}, up {_age(status['uptime_seconds'])}",
        f"{status['places_taken']} of {status['places']} places taken ({private}), "
        f"{status['waiting']} waiting",
        f"all sessions so far: {_activity(status['total'])}",
    ]
    sessions = cast("Sequence[Status]", status["sessions"])
    if not sessions:
        return "\n".join([*head, "no sessions"])
    titles = ["session", "from", "lane", "state", "age", "lease", "steps", "episodes", "faults"]
    rows = [[*titles, "step p50", "p99"]]
    rows += [[printable(cell) for cell in _row(session)] for session in sessions]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([*head, "", *lines])


def _row(session: Status) -> list[str]:
    lease = session["lease_left_seconds"]
    return [
        session["id"] or "-",
        session["peer"] or "-",
        session["lane"],
        session["state"],
        _age(session["age_seconds"]),
        "-" if lease is None else f"{lease:.1f} s",
        f"{session['steps']:,}",
        f"{session['episodes']:,}",
        f"{session['faults']:,}",
        *_quantiles(session),
    ]


def _activity(total: Status) -> str:
    p50, p99 = _quantiles(total)
    counts = f"{total['steps']:,} steps, {total['episodes']:,} episodes, {total['faults']:,} faults"
    codes = ", ".join(
        f"{printable(name)} {count:,}" for name, count in total["faults_by_code"].items()
    )
    carried = [
        f"{sum(count.values()) / 1e6:,.1f} MB by {printable(kind)}"
        for kind, count in total["bytes"].items()
    ]
    step = "" if p50 == "-" else f", a step {p50} (p99 {p99})"
    return "; ".join([f"{counts}{f' ({codes})' if codes else ''}{step}", *carried])


def _quantiles(statistics: Status) -> tuple[str, str]:
    step = statistics["latency"].get("step")
    if step is None:
        return "-", "-"
    return _short(step["p50_seconds"]), _short(step["p99_seconds"])


def _short(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _age(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"

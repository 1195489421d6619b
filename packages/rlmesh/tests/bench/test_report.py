import json
from dataclasses import replace

import numpy as np
import pytest
from rlmesh.bench.cells import IN_PROCESS, Carrier, Cell, Subject
from rlmesh.bench.machine import machine
from rlmesh.bench.measure import Settings
from rlmesh.bench.measurements import Measurement, Missing, Record, percentiles, summaries
from rlmesh.bench.report import Report

NOOP = Subject("noop", 100, source="a:noop")
TCP, UNIX = Carrier("grpc", "tcp"), Carrier("grpc", "unix")


def measured(cell: Cell, number: int, rate: float, *, limited: bool = False) -> Measurement:
    served = cell.carrier != IN_PROCESS
    return Measurement(
        cell=cell,
        round=number,
        steps=100,
        seconds=100 / rate,
        steps_per_s=rate,
        p50_us=1e6 / rate,
        p90_us=2e6 / rate,
        p99_us=3e6 / rate,
        client_cpu_us=5.25,
        server_cpu_us=7.0 if served else None,
        server_memory_mb=40.0 + cell.clients if served else None,
        tcp_bytes=90.0 if cell.carrier == TCP else None,
        payload_bytes=24,
        startup_s=0.5 if served else None,
        client_import_s=0.2,
        limited=limited,
        checked=32,
    )


def report(*records: Measurement | Missing, rounds: int = 3) -> Report:
    cells = list(dict.fromkeys(one.cell for one in records))
    made = Report(machine(), Settings(1.0, rounds, frozenset({"noop"})), cells)
    made.records += records
    return made


def test_percentiles_are_of_single_steps() -> None:
    latencies = np.arange(1, 101, dtype=np.float32)

    assert percentiles(latencies) == pytest.approx((50.5, 90.1, 99.01))


def test_a_rate_is_the_median_of_its_rounds_and_its_ratio_that_of_the_rounds_ratios() -> None:
    base, mine = Cell(NOOP, TCP), Cell(NOOP, UNIX)
    records = [measured(base, n, rate) for n, rate in enumerate((100, 200, 400))]
    records += [measured(mine, n, rate) for n, rate in enumerate((300, 400, 4000))]

    found = {one.cell: one for one in summaries([base, mine], records)}

    assert (found[mine].steps_per_s, found[mine].slowest, found[mine].fastest) == (400, 300, 4000)
    # 3, 2 and 10: a round that is slow for both counts like any other.
    assert found[mine].ratio == 3
    assert found[base].ratio == 1


def test_without_tcp_rates_are_compared_with_grpc_over_unix_sockets() -> None:
    local = Cell(NOOP, Carrier("local", "unix"))
    base = Cell(NOOP, UNIX)

    found = summaries([local, base], [measured(local, 0, 900), measured(base, 0, 300)])

    assert [one.ratio for one in found] == [3, 1]


def test_what_failed_in_one_round_only_is_summed_up_from_the_others() -> None:
    cell = Cell(NOOP, TCP)
    records: list[Record] = [
        measured(cell, 0, 100),
        Missing(cell, 1, "it hung"),
        measured(cell, 2, 300),
    ]

    (summary,) = summaries([cell], records)

    assert (summary.rounds, summary.steps_per_s, summary.reason) == (2, 200, "it hung")


def test_tables_show_what_was_measured_and_what_was_not() -> None:
    shown = report(
        measured(Cell(NOOP, IN_PROCESS), 0, 1000),
        measured(Cell(NOOP, TCP), 0, 100, limited=True),
        Missing(Cell(NOOP, UNIX), 0, "no such socket"),
    ).tables()

    lines = shown.splitlines()
    assert lines[0].startswith(str(machine()["processor"]))
    assert "noop (24 bytes of action and observation)" in lines
    row = next(line for line in lines if line.startswith("gRPC over tcp")).split()[3:]
    assert row[:4] == ["100", "†", "100-100", "1.0"]
    assert row[4:] == ["10,000", "20,000", "30,000", "5.2", "7.0", "41", "90", "0.50"]
    assert any(line.startswith("† ended by the time limit of 1 s") for line in lines)
    assert "gRPC over unix  failed: no such socket" in lines
    # What is made in process cannot have lost anything on its way.
    assert "32 observations were equal to a local copy's." in lines


def test_clients_beside_each_other_have_a_table_of_their_own() -> None:
    one, four = Cell(NOOP, TCP, 1), Cell(NOOP, TCP, 4)
    shown = report(measured(one, 0, 100), measured(four, 0, 250)).tables()

    title = "noop, steps/s of all clients of one server together (its memory)"
    table = shown.splitlines()[shown.splitlines().index(title) + 1 :]
    assert table[0].split() == ["1", "client", "4", "clients"]
    assert table[1].split() == ["gRPC", "over", "tcp", "100", "(41.0", "MB)", "250", "(44.0", "MB)"]


def test_why_clients_beside_each_other_failed_is_said_below() -> None:
    two = Cell(NOOP, TCP, 2)
    shown = report(Missing(two, 0, "one session at a time")).tables()

    assert (
        "noop, gRPC over tcp x 2 clients failed in 1 of 1 rounds: one session at a time"
        in shown.splitlines()
    )


def test_what_failed_in_some_rounds_is_said_below() -> None:
    cell = Cell(NOOP, TCP)
    shown = report(measured(cell, 0, 100), Missing(cell, 1, "it hung")).tables()

    assert "noop, gRPC over tcp failed in 1 of 2 rounds: it hung" in shown.splitlines()


def test_a_server_that_was_there_before_is_not_called_one_of_the_benchs_own() -> None:
    there = replace(
        measured(Cell(Subject("tcp://a:1", 100, address="tcp://a:1"), TCP), 0, 100),
        startup_s=None,
        server_memory_mb=None,
    )
    own = measured(Cell(NOOP, TCP), 0, 100)

    assert "has a server and clients of its own" in report(own).notes()[0]
    assert "has clients of its own" in report(there).notes()[0]
    assert any(note.startswith("start: ") for note in report(own).notes())
    assert not any(note.startswith("start: ") for note in report(there).notes())


@pytest.mark.parametrize(("load", "said"), [(0.4, False), (3.0, True)])
def test_figures_of_a_busy_machine_say_so(load: float, said: bool) -> None:
    made = report(measured(Cell(NOOP, TCP), 0, 100))
    made.machine = {**made.machine, "load": load, "cpus": 2}

    assert ("The machine was busy at the start (load 3.0 on 2 CPUs)." in made.notes()) is said


def test_json_has_every_round_and_where_it_was_measured() -> None:
    made = report(measured(Cell(NOOP, TCP), 0, 100), measured(Cell(NOOP, TCP), 1, 300))
    made.interrupted = True

    said = json.loads(json.dumps(made.to_dict()))

    assert said["format"] == "rlmesh.bench.v1"
    assert said["interrupted"] is True
    assert "Interrupted: 2 of 3 measurements were made." in said["notes"]
    assert {"processor", "cpus", "system", "load", "versions"} <= said["machine"].keys()
    assert {"python", "rlmesh", "numpy", "grpcio"} <= said["machine"]["versions"].keys()
    assert [one["steps_per_s"] for one in said["measurements"]] == [100, 300]
    (summary,) = said["summaries"]
    assert (summary["environment"], summary["lane"], summary["transport"]) == (
        "noop",
        "grpc",
        "tcp",
    )
    assert summary["medians"]["p99_us"] == pytest.approx(3e6 * (1 / 100 + 1 / 300) / 2)

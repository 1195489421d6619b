import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from rleaas.server.run import serve

SERVE = """
import sys
from pathlib import Path
from rleaas.server.run import serve
sys.exit(serve(port=0, data_dir=Path(sys.argv[1]), worker_patience=float(sys.argv[2])))
"""


class Process:
    """A server in a process of its own."""

    def __init__(self, data: Path, worker_patience: float = 3600.0) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(data), str(worker_patience)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.popen.stdout is not None
        first = self.popen.stdout.readline()
        assert first.startswith("rleaas listens on http://127.0.0.1:"), self.popen.stderr
        self.said = [first, self.popen.stdout.readline()]
        self.http = httpx.Client(base_url=first.split()[-1], timeout=70, trust_env=False)

    def busy(self) -> list[int]:
        """Give it an environment and a job; returns the ids of their processes."""
        self.http.post(
            "/api/custom-environments", json={"name": "E", "source": "gym://CartPole-v1"}
        )
        assert self.http.get("/api/environments/E/endpoint").status_code == 200
        job = self.http.post("/train/E", json={"num_episodes": 10**6}).json()["job_id"]
        while self.http.get(f"/training/{job}").json()["status"] == "pending":
            pass
        children: list[int] = []
        while len(children) < 2:
            children = children_of(self.popen.pid)
        return children

    def end(self) -> None:
        self.http.close()
        self.popen.kill()
        self.popen.communicate()


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    one = Process(tmp_path / "data")
    yield one
    one.end()


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return found


def all_ended(descriptors: list[int], seconds: float) -> bool:
    """Whether the processes end in time; a descriptor of one is readable when it has."""
    waiting = set(descriptors)
    while waiting:
        ended, _, _ = select.select(list(waiting), [], [], seconds)
        if not ended:
            return False
        waiting -= set(ended)
    return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_with_every_process_it_started(
    process: Process, number: signal.Signals
) -> None:
    children = process.busy()
    descriptors = [os.pidfd_open(pid) for pid in children]

    process.popen.send_signal(number)
    _, errors = process.popen.communicate(timeout=30)

    assert process.popen.returncode == 0, errors
    assert all_ended(descriptors, 0.0)
    for descriptor in descriptors:
        os.close(descriptor)


def test_a_server_that_is_killed_takes_the_processes_with_it_that_do_not_wait_for_another(
    tmp_path: Path,
) -> None:
    process = Process(tmp_path / "data", worker_patience=0)
    children = process.busy()
    descriptors = [os.pidfd_open(pid) for pid in children]

    process.end()

    assert all_ended(descriptors, 30.0)
    for descriptor in descriptors:
        os.close(descriptor)


def test_it_says_where_it_listens_and_where_its_data_is(process: Process, tmp_path: Path) -> None:
    assert process.said[1] == f"its data is in {tmp_path / 'data'}\n"
    assert process.http.get("/api/health").status_code == 200


def test_a_port_in_use_is_an_error_that_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        assert serve(port=port, data_dir=tmp_path) == 1

    said = capsys.readouterr().err
    assert said.startswith(f"error: port {port} on '127.0.0.1' is in use already")
    assert "--port" in said


def test_a_data_directory_in_use_is_an_error(
    process: Process, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert serve(port=0, data_dir=tmp_path / "data") == 1

    assert f"pid {process.popen.pid}" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["0.0.0.0", "no.such.host.invalid"])
def test_a_host_that_is_public_or_unknown_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], host: str
) -> None:
    assert serve(host=host, port=0, data_dir=tmp_path) == 1

    assert f"host {host!r}" in capsys.readouterr().err


def test_an_event_stops_it_from_another_thread(tmp_path: Path) -> None:
    stop = threading.Event()
    ready = threading.Event()
    codes: list[int] = []
    thread = threading.Thread(
        target=lambda: codes.append(
            serve(port=0, data_dir=tmp_path, on_ready=lambda _: ready.set(), stop=stop)
        )
    )
    thread.start()
    assert ready.wait(30)

    stop.set()
    thread.join(30)

    assert codes == [0]

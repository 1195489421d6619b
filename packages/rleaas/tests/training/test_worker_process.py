# A lambda cannot say what it ignores.
# pyright: reportUnknownLambdaType=false

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import httpx
import pytest
from rlcore import Backoff, EnvironmentException, TrainingJobFailed
from rleaas.training.reporter import Pace, Reporter
from rleaas.training.stop_switch import StopOverdue, StopSwitch
from rleaas.training.worker_process import Ending, attempt, describe


class Server:
    def __init__(self, *, cancel: bool = False, up: bool = True) -> None:
        self.cancel = cancel
        self.up = up
        self.reports: list[dict[str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if not self.up:
            raise httpx.ConnectError("refused")
        self.reports += json.loads(request.content)["reports"]
        return httpx.Response(200, json={"cancel_requested": self.cancel})

    @property
    def last(self) -> tuple[str, dict[str, Any]]:
        return self.reports[-1]["type"], self.reports[-1]["data"]


def do(server: Server, work: Any, switch: StopSwitch | None = None) -> int:
    client = httpx.Client(base_url="http://server", transport=httpx.MockTransport(server))
    pace = Pace(patience=0.0, backoff=Backoff(first=0.001, cap=0.001))
    return attempt(work, Reporter(client, "training", "job_1", pace=pace), switch or StopSwitch())


def test_finished_work_is_reported_as_completed() -> None:
    server = Server()

    assert do(server, lambda *_: Ending({"results": {"total_steps": 5}})) == 0
    assert server.last == ("completed", {"results": {"total_steps": 5}})


def test_a_failure_is_reported_with_its_reason_and_its_remote_traceback() -> None:
    server = Server()

    def fail(*_: object) -> Ending:
        raise EnvironmentException("the pole broke", remote_traceback="File pole.py")

    assert do(server, fail) == 1
    kind, data = server.last
    assert kind == "failed"
    assert data["error"] == "the pole broke"
    assert data["failure_reason"] == "environment_failed"
    assert data["traceback"] == "File pole.py"


def test_a_defect_is_reported_with_its_traceback() -> None:
    server = Server()

    assert do(server, lambda *_: 1 / 0) == 1
    assert server.last[1]["failure_reason"] == "worker_defect"
    assert "ZeroDivisionError" in server.last[1]["traceback"]


def test_work_that_was_stopped_by_a_cancel_is_cancelled() -> None:
    server = Server(cancel=True)

    assert do(server, lambda *_: Ending({"results": {}}, stopped=True)) == 0
    assert server.last == ("cancelled", {"results": {}})


def test_work_that_was_stopped_by_a_signal_alone_is_given_back() -> None:
    server, switch = Server(), StopSwitch()
    switch.request("SIGTERM")
    switch.disarm()

    assert do(server, lambda *_: Ending({"results": {}}, stopped=True), switch) == 0
    assert server.last == ("interrupted", {"reason": "SIGTERM"})


def test_work_that_hung_and_was_interrupted_is_cancelled_too() -> None:
    server = Server(cancel=True)

    def hang(*_: object) -> Ending:
        raise StopOverdue

    assert do(server, hang) == 0
    assert server.last[0] == "cancelled"


def test_an_end_that_cannot_be_reported_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert do(Server(up=False), lambda *_: Ending({})) == 1
    assert "was not reported" in capsys.readouterr().err


SLEEPER = """
import sys, time
from rleaas.training.stop_switch import StopOverdue, StopSwitch
switch = StopSwitch(grace=0.2)
switch.install()
switch.follow_parent()
print("ready", flush=True)
try:
    time.sleep(60)
except StopOverdue:
    print(switch.reason, flush=True)
"""


@pytest.fixture
def sleeper() -> Any:
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPER], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_call_that_hangs_is_interrupted_after_the_grace(sleeper: Any, number: int) -> None:
    sleeper.send_signal(number)
    out, _ = sleeper.communicate(timeout=20)

    assert out == f"{signal.Signals(number).name}\n"
    assert sleeper.returncode == 0


def test_a_worker_does_not_outlive_its_parent() -> None:
    code = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {SLEEPER!r}], stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "print(child.pid)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    pid = int(out.stdout)

    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        if _is_zombie(pid):
            return
    pytest.fail(f"process {pid} is still there")


def _is_zombie(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:  # noqa: PTH123 - not a file
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("kind", ["training", "evaluation"])
def test_a_worker_without_its_token_says_what_is_missing(kind: str) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RLEAAS")}
    done = subprocess.run(
        [sys.executable, "-m", f"rleaas.{kind}.worker", "--server", "http://x", "--id", "job_1"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )

    assert done.returncode == 2
    assert "RLEAAS_WORKER_TOKEN" in done.stderr


def test_a_failed_jobs_error_is_the_reason_only() -> None:
    failed = TrainingJobFailed("job_1", "the quota is used up", hint="Raise it")

    assert describe(failed)["error"] == "the quota is used up. Raise it"

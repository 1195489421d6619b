"""`rlmesh bench`, with real servers and clients."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rlmesh import EnvServer
from rlmesh.bench.reference import noop
from rlmesh.cli.bench import Progress
from rlmesh.cli.main import main

pytestmark = pytest.mark.slow

QUICK = ["--rounds", "1", "--seconds", "0.1"]


def bench(tmp_path: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    path = tmp_path / "bench.json"
    code = main(["bench", *arguments, *QUICK, "--json", str(path)])
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return code, found


def test_a_reference_environment_is_measured_in_process_and_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = bench(tmp_path, "--envs", "noop", "--transports", "tcp", "--lanes", "grpc")

    assert code == 0
    here, served = said["summaries"]
    assert (here["carrier"], served["carrier"]) == ("in process", "gRPC over tcp")
    assert here["steps_per_s"] > served["steps_per_s"] > 10
    assert served["medians"]["p50_us"] <= served["medians"]["p90_us"] <= served["medians"]["p99_us"]
    assert served["medians"]["server_cpu_us"] > 0
    assert 10 < served["medians"]["server_memory_mb"] < 1000
    assert served["medians"]["tcp_bytes"] >= 24
    assert 0.05 < served["medians"]["startup_s"] < 60
    assert here["medians"]["server_cpu_us"] is here["medians"]["startup_s"] is None
    shown = capsys.readouterr()
    assert "noop (24 bytes of action and observation)" in shown.out
    assert shown.err.splitlines()[0] == "trying noop"
    assert shown.err.splitlines()[1] == "1/2  noop, in process"


def test_every_lane_is_measured_under_its_own_name(tmp_path: Path) -> None:
    code, said = bench(tmp_path, "--envs", "noop", "--steps", "40", "--transports", "tcp")

    assert code == 0
    assert [one["carrier"] for one in said["summaries"]] == [
        "in process",
        "local lane",
        "fast lane over tcp",
        "gRPC over tcp",
    ]
    _, local, tcp, grpc = said["measurements"]
    assert local["tcp_bytes"] is None
    assert 24 < tcp["tcp_bytes"] < grpc["tcp_bytes"]


def test_clients_at_once_share_one_server(tmp_path: Path) -> None:
    code, said = bench(
        tmp_path, "--envs", "noop", "--transports", "unix", "--lanes", "grpc", "--clients", "1,2"
    )

    assert code == 0
    assert [(one["clients"], one["transport"]) for one in said["measurements"]] == [
        (1, None),
        (1, "unix"),
        (2, "unix"),
    ]
    assert said["measurements"][2]["checked"] >= 2 * 31


def test_a_server_that_is_there_already_is_measured_unchecked(tmp_path: Path) -> None:
    with EnvServer(noop) as server:
        code, said = bench(tmp_path, server.address, "--lanes", "grpc", "--steps", "20")

    assert code == 0
    (one,) = said["measurements"]
    assert (one["carrier"], one["checked"], one["startup_s"]) == ("gRPC over tcp", 0, None)
    assert one["server_cpu_us"] is None
    assert any("no observation was checked" in note for note in said["notes"])


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_one_line_on_a_terminal_and_lines_elsewhere(terminal: bool) -> None:
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    stream = Stream()
    progress = Progress(stream)
    progress.show("1/2  noop, in process")
    progress.show("2/2  image")
    progress.end()

    lines = "1/2  noop, in process\n2/2  image\n"
    line = "\r1/2  noop, in process\r2/2  image           \r" + " " * 10 + "\r"
    assert stream.getvalue() == (line if terminal else lines)


def test_a_server_with_tls_and_a_token_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLMESH_TOKEN", "the-one-token-there-is")
    with EnvServer(noop, tls="auto") as server:
        assert server.tls_fingerprint is not None
        command = [server.address, "--lanes", "tcp", "--steps", "20"]
        code, said = bench(tmp_path, *command, "--tls", server.tls_fingerprint)

    assert code == 0
    assert said["measurements"][0]["carrier"] == "fast lane over tcp"


def test_variables_that_are_about_other_servers_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLMESH_NUM_ENVS", "3")
    monkeypatch.setenv("RLMESH_TLS", "system")
    monkeypatch.setenv("RLMESH_MAKE_KWARGS", '{"level": 3}')
    monkeypatch.setenv("RLMESH_LANE", "grpc")

    code, said = bench(tmp_path, "--envs", "noop", "--steps", "20", "--lanes", "local")

    assert code == 0
    assert said["measurements"][1]["payload_bytes"] == 8 + 16


def test_lanes_of_a_server_that_is_there_are_stepped_together(tmp_path: Path) -> None:
    with EnvServer([noop(), noop(), noop()]) as server:
        code, said = bench(tmp_path, server.address, "--lanes", "grpc", "--steps", "20")

    assert code == 0
    assert said["measurements"][0]["payload_bytes"] == 3 * (8 + 16)


def test_an_environment_of_the_user_is_a_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(
        "import gymnasium\n\n\ndef pole():\n    return gymnasium.make('CartPole-v1')\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)

    code, said = bench(tmp_path, "mine:pole", "--transports", "tcp", "--lanes", "grpc")

    assert code == 0
    assert [one["environment"] for one in said["measurements"]] == ["mine:pole"] * 2
    assert said["measurements"][1]["checked"] > 30


def test_a_measurement_that_fails_is_reported_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = (
        "import os\n\nfrom rlmesh.bench.reference import noop\n\n\ndef broken():\n"
        "    if 'rlmesh.bench.worker' not in ' '.join(os.sys.argv) and "
        "'serve' in os.sys.argv[0]:\n        raise OSError('no disk')\n    return noop()\n"
    )
    (tmp_path / "halting.py").write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    code, said = bench(tmp_path, "halting:broken", "--transports", "tcp", "--lanes", "grpc")

    assert code == 1
    assert [one.get("reason") is None for one in said["measurements"]] == [True, False]
    assert "the server ended with exit code 1: error: " in said["measurements"][1]["reason"]
    assert "OSError: no disk" in said["measurements"][1]["reason"]
    assert "gRPC over tcp  failed: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nowhere:env"], "nowhere:env cannot be measured: ConfigurationError: "),
        (["--envs", "noop", "--json", "no/such/folder.json"], "cannot be written"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *arguments, *QUICK]) == 1

    errors = capsys.readouterr().err.splitlines()
    assert text in errors[-1]
    assert errors[:-1] in ([], [f"trying {arguments[0]}"])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--envs", "nop"], "--envs has no 'nop'"),
        (["--lanes", "pigeon"], "--lanes has no 'pigeon'"),
        (["CartPole-v1", "--envs", "noop"], "--envs is given beside a target"),
        (["--lanes", "tcp", "--transports", "unix"], "the lane tcp is not to be had"),
        (["unix:///no/such", "--lanes", "local,tcp"], "the lane tcp is not to be had"),
        (["tcp://127.0.0.1:1", "--transports", "tcp"], "--transports is given beside an address"),
        (["--envs", "noop", "--tls", "system"], "no address is given"),
    ],
)
def test_options_that_contradict_each_other_are_a_usage_error_in_one_line(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *arguments, *QUICK]) == 2

    errors = capsys.readouterr().err
    assert text in errors
    assert errors.count("\n") == 1


def test_an_environment_that_is_random_is_measured_unchecked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "import numpy as np\nfrom rlmesh.bench.reference import Frames, noop\n\n\n"
        "class Dice(Frames):\n"
        "    def __init__(self):\n"
        "        super().__init__('dice', noop().observation_space)\n"
        "        self._frames = list(np.random.default_rng().random((4, 4), np.float32))\n"
    )
    (tmp_path / "dicing.py").write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    code, said = bench(tmp_path, "dicing:Dice", "--transports", "tcp", "--lanes", "grpc")

    assert code == 0
    assert [one["checked"] for one in said["measurements"]] == [0, 0]
    assert any("no observation was checked" in note for note in said["notes"])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--rounds", "0"], "'0' is no number of at least 1"),
        (["--clients", "1,x"], "'x' is no number of at least 1"),
        (["--seconds", "0"], "give more than 0 seconds"),
        (["--envs", ","], "',' names nothing"),
    ],
)
def test_options_that_make_no_sense_are_a_usage_error(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["bench", *arguments])

    assert caught.value.code == 2
    assert text in capsys.readouterr().err


def test_ctrl_c_leaves_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    command = ["bench", "--envs", "noop", "--lanes", "grpc", "--rounds", "500", "--seconds", "0.1"]
    with subprocess.Popen(
        [sys.executable, "-m", "rlmesh", *command, "--json", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stderr is not None
        while not process.stderr.readline().startswith("3/1500"):
            pass
        process.send_signal(signal.SIGINT)
        shown, _ = process.communicate(timeout=30)

    assert process.returncode == 130
    assert "Interrupted: 2 of 1500 measurements were made." in shown
    said = json.loads(path.read_text(encoding="utf-8"))
    assert said["interrupted"] is True
    assert len(said["measurements"]) == 2

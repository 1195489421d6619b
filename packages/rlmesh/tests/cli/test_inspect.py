"""`rlmesh inspect` and what is behind it, with real servers."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import gymnasium
import pytest
from rlcore import AccessDenied, EnvironmentException, UnsupportedError
from rlmesh import EnvServer, ServeOptions
from rlmesh.bench.reference import noop
from rlmesh.cli.main import main
from rlmesh.client.visit import Visit
from rlmesh.numpy import RemoteEnv


class Raising(gymnasium.Env[Any, Any]):
    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, **_: object) -> tuple[int, dict[str, Any]]:
        return 0, {}

    def step(self, action: Any) -> Any:
        raise RuntimeError("stuck")


@pytest.fixture
def server() -> Iterator[EnvServer]:
    with EnvServer(noop, options=ServeOptions(max_sessions=5)) as started:
        yield started


def status(server: EnvServer) -> dict[str, Any]:
    with Visit(server.address) as visit:
        return visit.status(timeout=10)


def test_a_server_with_no_sessions_says_so(server: EnvServer) -> None:
    said = status(server)

    assert said["environment"] == "rlmesh-bench/noop-v0"
    assert said["digest"] == server.env_contract.digest
    assert (said["places"], said["places_taken"], said["waiting"]) == (5, 0, 0)
    assert said["private_sessions"] is True
    assert said["lease_seconds"] == 20.0
    assert said["sessions"] == []
    assert said["total"]["requests"] == 0
    assert 0 <= said["uptime_seconds"] < 60


@pytest.mark.parametrize(("lane", "kind"), [("grpc", "grpc"), ("tcp", "tcp"), ("local", "unix")])
def test_a_session_is_told_with_what_it_has_done(server: EnvServer, lane: Any, kind: str) -> None:
    with RemoteEnv(server.address, lane=lane) as env:
        env.reset()
        for _ in range(7):
            env.step(1)
        said = status(server)

        (session,) = said["sessions"]
        assert session["id"] == env.env_id
    assert (session["lane"], session["state"]) == (kind, "attached")
    assert (session["steps"], session["episodes"], session["faults"]) == (7, 1, 0)
    assert session["latency"]["step"]["count"] == 7
    assert (
        0 < session["latency"]["step"]["p50_seconds"] <= session["latency"]["step"]["p99_seconds"]
    )
    assert session["lease_left_seconds"] == 20.0
    assert session["bytes"][kind]["sent"] > 7 * 16
    assert said["places_taken"] == 1


def test_looking_takes_no_place_and_is_no_session() -> None:
    with EnvServer(noop(), options=ServeOptions()) as server, RemoteEnv(server.address) as env:
        env.reset()
        assert status(server)["places_taken"] == 1
        assert len(status(server)["sessions"]) == 1
        assert env.step(1)[1] == 1.0


def test_no_secret_of_a_session_is_told(server: EnvServer) -> None:
    with RemoteEnv(server.address) as env:
        env.reset()
        (session,) = status(server)["sessions"]

    assert "secret" not in json.dumps(session)
    assert set(session) == {
        "id", "peer", "lane", "state", "resumable", "lease_left_seconds", "requests", "steps",
        "environments",
        "episodes", "faults", "faults_by_code", "repeated_answers", "resumed",
        "last_request_age_seconds", "age_seconds", "latency", "bytes",
    }  # fmt: skip


def test_faults_of_sessions_that_ended_are_in_the_total() -> None:
    with EnvServer(Raising) as server:
        with RemoteEnv(server.address) as env:
            env.reset()
            with pytest.raises(EnvironmentException):
                env.step(0)
        said = status(server)

    assert said["sessions"] == []
    assert said["total"]["faults_by_code"] == {"environment_failed": 1}
    assert said["total"]["latency"]["step"]["count"] == 1


class Escaping(Raising):
    def __init__(self) -> None:
        self.metadata = {"note": "\x1b]0;pwned\x07", "a\x1b[2Jb": "\nlane  tcp"}
        self.spec: Any = SimpleNamespace(id="Red\x1b[31m-v0")

    def step(self, action: Any) -> Any:
        raise RuntimeError("\x1b[31mstuck")


def test_what_a_server_says_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    with EnvServer(Escaping) as server:
        codes = [main([command, server.address]) for command in ("inspect", "ping")]
        codes.append(main(["run", "random", server.address, "--episodes", "1"]))
        codes.append(main(["check", server.address, "--seeds", "1", "--only", "reward"]))

    said = capsys.readouterr()
    assert codes[:2] == [0, 0]
    assert "\x1b" not in said.out + said.err
    assert "Red\\x1b[31m-v0" in said.out
    assert "metadata a\\x1b[2Jb" in said.out
    assert "\\x1b[31mstuck" in said.out + said.err
    assert not any(line.startswith("lane  tcp") for line in said.out.splitlines())


def test_whoever_has_no_token_is_told_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with EnvServer(noop, token="the-one-token-there-is") as server:
        with pytest.raises(AccessDenied):
            Visit(server.address)
        assert main(["inspect", server.address]) == 1
        assert "a token is required" in capsys.readouterr().err

        monkeypatch.setenv("RLMESH_TOKEN", "the-one-token-there-is")
        assert main(["inspect", server.address]) == 0
        assert "0 of 64 places taken" in capsys.readouterr().out


def test_the_call_itself_asks_for_the_token() -> None:
    import grpc

    with EnvServer(noop, token="the-one-token-there-is") as server:
        target = server.address.removeprefix("tcp://")
        with grpc.insecure_channel(target) as channel:
            call: grpc.UnaryUnaryMultiCallable[bytes, bytes]
            call = channel.unary_unary("/rlmesh.ops.v1.OpsService/Inspect")
            with pytest.raises(grpc.RpcError) as refused:
                call(b"", timeout=10)

    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_a_server_that_is_not_to_be_inspected_says_so_and_keeps_its_contract(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with EnvServer(noop, options=ServeOptions(inspectable=False)) as server:
        with Visit(server.address) as visit, pytest.raises(UnsupportedError) as refused:
            visit.status(timeout=10)
        assert refused.value.code == "not_inspectable"

        assert main(["inspect", server.address, "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert said["server"] is None
        assert "does not tell about its sessions" in said["reason"]
        assert said["id"] == "rlmesh-bench/noop-v0"

        assert main(["inspect", server.address]) == 0
        assert "does not tell about its sessions" in capsys.readouterr().out

        assert main(["inspect", server.address, "--watch"]) == 1
        assert "does not tell about its sessions" in capsys.readouterr().err


def test_inspect_prints_a_line_for_each_session(
    server: EnvServer, capsys: pytest.CaptureFixture[str]
) -> None:
    with RemoteEnv(server.address, lane="grpc") as env:
        env.reset()
        env.step(1)
        assert main(["inspect", server.address]) == 0
        lines = capsys.readouterr().out.splitlines()

        assert lines[0].startswith("environment   rlmesh-bench/noop-v0")
        assert any(line.startswith("1 of 5 places taken (each with its own") for line in lines)
        (row,) = (line.split() for line in lines if line.startswith(env.env_id))
    assert row[2:4] == ["grpc", "attached"]
    assert row[6:10] == ["s", "1", "1", "0"]


def test_several_lanes_can_be_looked_at_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    with EnvServer([noop(), noop()]) as server:
        assert main(["ping", server.address]) == 0
        assert main(["inspect", server.address]) == 0

    assert "environments  2" in capsys.readouterr().out


def test_watching_goes_on_until_ctrl_c(server: EnvServer) -> None:
    command = [sys.executable, "-m", "rlmesh", "inspect", server.address, "--json"]
    with subprocess.Popen(
        [*command, "--watch", "0.05"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        ages = [json.loads(process.stdout.readline())["uptime_seconds"] for _ in range(3)]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)

    assert process.returncode == 130
    assert ages[0] < ages[1] < ages[2]


def test_serve_has_metrics_on_a_port_and_may_be_left_uninspected() -> None:
    command = [sys.executable, "-m", "rlmesh", "serve", "rlmesh.bench.reference:noop"]
    with subprocess.Popen(
        [*command, "--address", "127.0.0.1:0", "--metrics-port", "0", "--no-inspect"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        metrics = process.stdout.readline().split()
        with Visit(address) as visit, pytest.raises(UnsupportedError):
            visit.status(timeout=10)
        process.terminate()
        process.communicate(timeout=30)

    assert metrics[:2] == ["metrics", "at"]
    assert metrics[2].startswith("http://127.0.0.1:")
    assert process.returncode == 0

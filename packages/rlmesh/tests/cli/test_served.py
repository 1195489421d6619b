"""The commands against a real server."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest
from rlmesh import EnvServer, RunResult
from rlmesh.cli.main import main


@pytest.fixture
def server() -> Iterator[EnvServer]:
    def make() -> Any:
        return gym.make("CartPole-v1")

    with EnvServer(make) as served:
        yield served


def test_ping_names_the_environment(server: EnvServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ping", server.address]) == 0
    assert capsys.readouterr().out.startswith(f"CartPole-v1 ({server.env_contract.digest[:19]}")

    assert main(["ping", server.address, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["environment"]["contract_digest"] == server.env_contract.digest
    assert said["address"] == server.address
    assert 0 < said["ms"] < 10_000


def test_inspect_prints_the_contract(server: EnvServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", server.address, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said.pop("digest") == server.env_contract.digest
    assert said.pop("server")["environment"] == "CartPole-v1"
    assert said == server.env_contract.to_dict()

    assert main(["inspect", server.address]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["action", "Discrete(2)"] for line in lines)
    assert any(line.startswith("metadata render_fps") for line in lines)


def test_run_takes_a_bare_host_and_port(
    server: EnvServer, capsys: pytest.CaptureFixture[str]
) -> None:
    address = server.address.removeprefix("tcp://")

    assert main(["run", "random", address, "--seeds", "0:3", "--max-steps", "4", "--json"]) == 0

    assert RunResult.from_json(capsys.readouterr().out).total_steps == 12


def test_run_waits_for_a_server_that_it_was_told_to_wait_for(
    server: EnvServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "random", server.address, "--max-steps", "2", "--wait", "5"]) == 0
    assert main(["ping", server.address, "--wait", "5"]) == 0


def test_serve_serves_until_it_is_told_to_stop() -> None:
    command = [sys.executable, "-m", "rlmesh", "serve", "CartPole-v1", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        address = next(word for word in line.split() if word.startswith("tcp://"))
        assert main(["ping", address]) == 0
    finally:
        process.send_signal(signal.SIGTERM)
        _, code = process.communicate(timeout=30), process.returncode
    assert code == 0

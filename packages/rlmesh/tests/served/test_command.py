"""`rlmesh serve` with a model: told apart from environments, real processes, real signals."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rlcore import ConfigurationError
from rlmesh.models.model import ModelTypeError
from rlmesh.models.sources import given_model, model_behind
from rlmesh.numpy import Model, RemoteEnv, RemoteModel

MODULE = """
import gymnasium
from rlmesh.numpy import Model

def act(observation):
    return 1

def acts_with_context(observation, context):
    return context["predict_index"] % 2

def world():
    return gymnasium.make("CartPole-v1")

def bent(gravity):
    env = world()
    env.unwrapped.gravity = gravity
    return env

class Policy:
    def __init__(self, action=0):
        self.action = action

    def predict(self, observation):
        return self.action

class Loaded(Model):
    def load(self, action: int = 0, broken: bool = False):
        if broken:
            raise RuntimeError("no weights")
        self.action = action

    def predict(self, observation):
        return self.action

    def close(self):
        print("closed", flush=True)

class Factory:
    def make(self):
        return world()

made = Loaded()
policy = Policy(1)
number = 7
"""

NAME = "models_for_serve"
Start = Callable[..., tuple["subprocess.Popen[str]", str]]
Bound = Callable[..., Any]  # Any: a policy


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / f"{NAME}.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("attribute", "kwargs", "name"),
    [
        ("act", {}, "act"),
        ("acts_with_context", {}, "acts_with_context"),
        ("Policy", {"action": 2}, "Policy"),
        ("policy", {}, "Policy"),
        ("Loaded", {"action": 3}, "Loaded"),
        ("made", {}, "Loaded"),
    ],
)
def test_what_acts_is_a_model(
    module: Path, attribute: str, kwargs: dict[str, Any], name: str
) -> None:
    model = model_behind(f"{NAME}:{attribute}", kwargs)

    assert model is not None
    assert model.name == name
    if kwargs:
        assert model.predict(np.ones(4, np.float32)) == kwargs["action"]


@pytest.mark.parametrize(
    ("source", "kwargs"),
    [
        (f"{NAME}:world", {}),
        (f"{NAME}:bent", {"gravity": 3.0}),
        (f"{NAME}:Factory", {}),
        ("CartPole-v1", {}),
        ("gym://CartPole-v1", {}),
    ],
)
def test_what_makes_environments_is_none(module: Path, source: str, kwargs: dict[str, Any]) -> None:
    assert model_behind(source, kwargs) is None


def test_one_can_insist_on_a_model(module: Path) -> None:
    for makes_environments in ("world", "Factory"):
        with pytest.raises(ModelTypeError, match="--env"):
            model_behind(f"{NAME}:{makes_environments}", {}, insist=True)
    with pytest.raises(ConfigurationError, match="not a model"):
        model_behind("CartPole-v1", {}, insist=True)


@pytest.mark.parametrize("attribute", ["act", "policy", "made"])
def test_what_is_made_already_takes_no_arguments(module: Path, attribute: str) -> None:
    with pytest.raises(ConfigurationError, match="made already"):
        model_behind(f"{NAME}:{attribute}", {"action": 1}, insist=True)


def three(observation: object) -> int:
    return 3


def test_a_model_can_be_given_as_it_is() -> None:
    class Loaded(Model[Any, Any]):
        def load(self, action: int = 0) -> None:
            self.action = action

        def predict(self, observation: Any) -> int:
            return self.action

    made = Loaded()
    assert given_model(made, {}) is made
    assert given_model(Loaded, {"action": 2}).predict(None) == 2
    assert given_model(three, {}).predict(None) == 3
    with pytest.raises(ModelTypeError):
        given_model(7, {})


def test_a_file_that_is_not_there_is_named(module: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        model_behind("nobodys_policy.zip", {})


@pytest.fixture
def start(module: Path) -> Iterator[Start]:
    """Start a server and return it with the address that it announced."""
    processes: list[subprocess.Popen[str]] = []

    def run(*arguments: str) -> tuple[subprocess.Popen[str], str]:
        reading, writing = os.pipe()
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "rlmesh", "serve", *arguments),
                *("--port", "0", "--ready-fd", str(writing)),
            ],
            cwd=module,
            pass_fds=[writing],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        os.close(writing)
        ready, _, _ = select.select([reading], [], [], 40)
        with os.fdopen(reading) as announced:
            address = announced.readline().strip() if ready else ""
        assert address, process.communicate(timeout=10) if process.poll() is not None else "late"
        return process, address

    yield run
    for process in processes:
        process.kill()
        process.communicate(timeout=10)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_model_is_served_until_a_signal_and_then_closed(
    start: Start, bound: Bound, number: int
) -> None:
    server, address = start(f"{NAME}:Loaded", "--kwargs-json", '{"action": 4}')

    policy = bound(address)
    assert policy.name == "Loaded"
    assert policy.predict(np.ones(4, np.float32), policy.begin("a", None)) == 4
    about = policy._link.answering.about
    assert '"kind"' in about["rlmesh.describe.v1"]
    assert float(about["rlmesh.startup.listen_ms"]) > 0

    server.send_signal(number)
    out, said = server.communicate(timeout=20)
    assert server.returncode == 0
    assert out == f"serving model Loaded at {address}\nclosed\n"
    assert said == (
        "note: the model Loaded has no spec: observations and actions are used as they are\n"
    )


def test_the_same_command_serves_an_environment_of_the_same_module(start: Start) -> None:
    _, address = start("--env", f"{NAME}:world")

    with RemoteEnv(address) as env:
        assert env.env_contract.id == "CartPole-v1"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((f"{NAME}:act", "--num-envs", "2"), 2, "--num-envs: given beside the model"),
        ((f"{NAME}:act", "--shared", "--device", "cpu"), 2, "--shared, --device"),
        ((f"{NAME}:act", "--model", f"{NAME}:act"), 2, "name one environment or model"),
        ((f"{NAME}:Loaded", "--kwargs-json", '{"broken": true}'), 1, "no weights"),
        ((f"{NAME}:Loaded", "--kwargs-json", '{"nope": 1}'), 1, "nope"),
        ((f"{NAME}:number",), 1, "makes no environment"),
        (("nobodys_policy.zip",), 1, "does not exist"),
        ((f"{NAME}:act", "--host", "0.0.0.0"), 1, "neither a token nor TLS"),
    ],
)
def test_what_cannot_be_served_is_said_in_the_last_line(
    module: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rlmesh.serve", *arguments, "--port", "0"],
        cwd=module,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert done.returncode == code, done.stderr
    assert says in done.stderr.splitlines()[-1]


def test_it_can_be_asked_before_it_is_there(start: Start, bound: Bound) -> None:
    _, address = start("--model", f"{NAME}:act")
    policy = bound(address, model=RemoteModel, wait_for_server_seconds=10)

    assert policy.predict(np.ones(4, np.float32), policy.begin("a", None)) == 1

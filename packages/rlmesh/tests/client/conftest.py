"""Environments that misbehave on demand, and servers on free ports."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from rlmesh.server.env_server import EnvServer


class ScriptedEnv(gymnasium.Env[Any, Any]):
    """Counts its steps; `on_step` may raise, wait, or replace what the step returns."""

    instances: list[ScriptedEnv]

    def __init__(self, on_step: Callable[[ScriptedEnv, Any], object] | None = None) -> None:
        self.observation_space = spaces.Box(-1e6, 1e6, (2,), np.float32)
        self.action_space = spaces.Discrete(3)
        self.on_step = on_step
        self.steps = 0
        self.resets: list[tuple[int | None, dict[str, Any] | None]] = []
        self.closed = 0
        self.threads: set[int] = set()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.threads.add(threading.get_ident())
        self.resets.append((seed, options))
        self.steps = 0
        return self.observation(), {}

    def step(self, action: Any) -> Any:
        self.threads.add(threading.get_ident())
        self.steps += 1
        replaced = None if self.on_step is None else self.on_step(self, action)
        if replaced is not None:
            return replaced
        return self.observation(), 1.0, False, False, {}

    def observation(self) -> Any:
        return np.array([self.steps, len(self.resets)], np.float32)

    def close(self) -> None:
        self.closed += 1


class Factory:
    """Makes scripted environments and remembers them; the first tells a server the contract."""

    def __init__(self, on_step: Callable[[ScriptedEnv, Any], object] | None = None) -> None:
        self.on_step = on_step
        self.probe: ScriptedEnv | None = None
        self.made: list[ScriptedEnv] = []

    def __call__(self) -> ScriptedEnv:
        env = ScriptedEnv(self.on_step)
        if self.probe is None:
            self.probe = env
        else:
            self.made.append(env)
        return env


@pytest.fixture
def scripted() -> type[ScriptedEnv]:
    return ScriptedEnv


@pytest.fixture
def factory() -> type[Factory]:
    return Factory


@pytest.fixture(params=["tcp", "unix"])
def either_address(request: pytest.FixtureRequest, folder: Path) -> str:
    """A free place to serve at, by both transports."""
    return "127.0.0.1:0" if request.param == "tcp" else f"unix://{folder}/env.sock"


@pytest.fixture(params=["local", "tcp", "grpc"])
def each_lane(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let clients of TCP addresses step by each way, one after another."""
    lane: str = request.param
    monkeypatch.setenv("RLMESH_LANE", lane)
    return lane


@pytest.fixture
def folder() -> Iterator[Path]:
    # Socket paths have to be short; pytest's own folders are not.
    with tempfile.TemporaryDirectory(prefix="rlm-") as made:
        yield Path(made)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What a hanging environment waits for; opened at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def hang(gate: threading.Event) -> Callable[..., Callable[[Any, Any], None]]:
    """A step that waits for the gate: at every action, or at one."""

    def hang_at(wanted: object = None) -> Callable[[Any, Any], None]:
        def on_step(env: Any, action: Any) -> None:
            if wanted is None or action == wanted:
                gate.wait(30)

        return on_step

    return hang_at


@pytest.fixture
def serve() -> Iterator[Callable[..., EnvServer]]:
    """Start a server that is shut down at the end of the test."""
    servers: list[EnvServer] = []

    def start(env: object, *arguments: Any, **options: Any) -> EnvServer:
        server = EnvServer(env, *arguments, **options)
        servers.append(server)
        server.start()
        return server

    yield start
    for server in servers:
        server.shutdown()


@pytest.fixture
def eventually() -> Callable[[Callable[[], object]], None]:
    """Wait until something is so that another thread brings about."""

    def wait(fact: Callable[[], object], seconds: float = 10.0) -> None:
        deadline = time.monotonic() + seconds
        while not fact():
            assert time.monotonic() < deadline, "it never came about"
            threading.Event().wait(0.01)

    return wait

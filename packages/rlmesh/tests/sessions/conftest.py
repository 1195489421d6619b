"""Environments that tell what was done to them, servers, and a network that breaks on demand."""

from __future__ import annotations

import contextlib
import hashlib
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from rlmesh.server.env_server import EnvServer

RESET = struct.pack("ii", 1, 0)
CHUNK = 65_536


class Counting(gymnasium.Env[Any, Any]):
    """Hashes every action it is stepped with, and shows the number of steps and the hash."""

    made: list[Counting]

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0, 1e9, (4,), np.float64)
        self.action_space = spaces.Discrete(1000)
        self.steps = 0
        self.resets = 0
        self.closed = 0
        self.threads = {threading.get_ident()}
        self.track = hashlib.sha256()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.threads.add(threading.get_ident())
        self.resets += 1
        return self.observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.threads.add(threading.get_ident())
        self.steps += 1
        self.track.update(int(action).to_bytes(4, "big"))
        noise = float(self.np_random.random())
        return self.observation(), noise, False, False, {"steps": self.steps}

    def observation(self) -> Any:
        digest = int.from_bytes(self.track.digest()[:4], "big") % 10**9
        return np.array([self.steps, self.resets, digest, float(self.np_random.random())])

    def close(self) -> None:
        self.threads.add(threading.get_ident())
        self.closed += 1


class Making:
    """Makes counting environments and remembers them."""

    def __init__(self, kind: type[Counting] = Counting) -> None:
        self.kind = kind
        self.made: list[Counting] = []

    def __call__(self) -> Counting:
        env = self.kind()
        self.made.append(env)
        return env


class Way:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self.proxy = proxy
        self.client = client
        self.server = server
        self.silent = False
        self.pumping = 2

    def start(self) -> None:
        for source, target in ((self.client, self.server), (self.server, self.client)):
            threading.Thread(target=self.pump, args=(source, target), daemon=True).start()

    def pump(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(CHUNK):
                if self.silent:
                    continue
                act = self.proxy.whim()
                if act is None:
                    target.sendall(data)
                elif act == "delay":
                    time.sleep(self.proxy.rng.uniform(0.001, 0.02))
                    target.sendall(data)
                else:
                    self.suffer(act, source, target, data)
            with contextlib.suppress(OSError):
                target.shutdown(socket.SHUT_WR)
        except OSError:
            self.drop()
        with self.proxy.lock:
            self.pumping -= 1
            is_last = self.pumping == 0
        if is_last:
            self.client.close()
            self.server.close()

    def suffer(self, act: str, source: socket.socket, target: socket.socket, data: bytes) -> None:
        if act == "truncate":
            target.sendall(data[: len(data) // 2])
            self.drop()
        elif act == "late":
            # It arrives, and the way back does not work any more.
            target.sendall(data)
            time.sleep(self.proxy.rng.uniform(0, 0.005))
            self.drop()
        elif act == "half-close":
            target.shutdown(socket.SHUT_WR)
        elif act == "half-close-back":
            source.shutdown(socket.SHUT_WR)
            with contextlib.suppress(OSError):
                target.sendall(data)
        else:
            self.drop()

    def drop(self) -> None:
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class Proxy:
    """Stands between clients and a server at one port, and breaks what goes through it.

    It listens at the same port of another loopback address, so that a server's second port can be
    stood before as well.
    """

    ACTS = ("drop", "truncate", "late", "half-close", "half-close-back")

    def __init__(self, host: str, port: int, target: str, *, seed: int = 0) -> None:
        self.rng = random.Random(seed)
        self.target = (target, port)
        self.ways: list[Way] = []
        self.connections = 0
        self.acts: dict[str, int] = {}
        self.between: tuple[int, int] | None = None
        self.left = 0
        self.lock = threading.Lock()
        self.listener = socket.create_server((host, port))
        threading.Thread(target=self.accept, daemon=True).start()

    def misbehave(self, least: int, most: int) -> None:
        """From now on, break or delay something every so many chunks."""
        with self.lock:
            self.between = (least, most)
            self.left = self.rng.randint(least, most)

    @property
    def cuts(self) -> int:
        return sum(count for act, count in self.acts.items() if act != "delay")

    def whim(self) -> str | None:
        with self.lock:
            if self.between is None:
                return None
            self.left -= 1
            if self.left > 0:
                return None
            self.left = self.rng.randint(*self.between)
            act = "delay" if self.rng.random() < 0.2 else self.rng.choice(self.ACTS)
            self.acts[act] = self.acts.get(act, 0) + 1
            return act

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.target, timeout=5)
            except OSError:
                client.close()
                continue
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                end.settimeout(None)
            self.connections += 1
            way = Way(self, client, server)
            # Before anything goes through: a cut may come as soon as the first answer has.
            self.ways.append(way)
            way.start()

    def fall_silent(self) -> None:
        """Keep every connection open, and let nothing through any more."""
        for way in self.ways:
            way.silent = True

    def cut(self) -> None:
        """Break every connection now."""
        for way in self.ways:
            way.drop()
        self.ways.clear()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()


@pytest.fixture
def making() -> type[Making]:
    return Making


@pytest.fixture
def counting() -> type[Counting]:
    return Counting


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
def proxy() -> Iterator[Callable[..., Proxy]]:
    """Put a proxy before a port of a server."""
    proxies: list[Proxy] = []

    def stand_before(port: int, host: str = "127.0.0.2", **options: Any) -> Proxy:
        made = Proxy(host, port, "127.0.0.1", **options)
        proxies.append(made)
        return made

    yield stand_before
    for made in proxies:
        made.close()


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Wait until something is so that another thread brings about."""

    def wait(fact: Callable[[], object], seconds: float = 10.0) -> None:
        deadline = time.monotonic() + seconds
        while not fact():
            assert time.monotonic() < deadline, "it never came about"
            threading.Event().wait(0.01)

    return wait

"""Many sessions on one server: every one is served, and none costs much."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rlmesh.numpy import RemoteEnv

SESSIONS = 512
# A server of its own, so that its memory is told apart from that of its clients.
SERVING = '''
import sys
import gymnasium
import numpy as np
from gymnasium import spaces
from rlmesh.server.env_server import EnvServer
from rlmesh.server.options import ServeOptions

class Adding(gymnasium.Env):
    """Adds up its actions from its seed on."""

    def __init__(self):
        self.observation_space = spaces.Box(0, 2**62, (1,), np.int64)
        self.action_space = spaces.Discrete(10**6)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.sum = seed or 0
        return np.array([self.sum]), {}

    def step(self, action):
        self.sum += int(action)
        return np.array([self.sum]), 1.0, False, False, {}

server = EnvServer(Adding, options=ServeOptions(max_sessions=%d))
server.start()
print(server.address, flush=True)
for line in sys.stdin:
    status = server.inspect()
    print(status["places_taken"], status["total"]["steps"], flush=True)
server.shutdown()
'''


def memory_of(pid: int) -> int:
    """Return the resident kilobytes of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("the process has no resident memory")


def reset(env: Any, seed: int) -> None:
    env.reset(seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize(("lane", "kilobytes"), [("local", 200), ("tcp", 200), ("grpc", 300)])
def test_512_sessions_on_one_server_are_all_served(
    lane: Any, kilobytes: int, record_property: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVING % SESSIONS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as serving:
        assert serving.stdin is not None
        assert serving.stdout is not None
        address = serving.stdout.readline().strip()
        with RemoteEnv(address, lane=lane) as env:
            env.reset(seed=1)
            env.step(1)
        before = memory_of(serving.pid)
        with ThreadPoolExecutor(16) as pool:
            envs: list[Any] = [*pool.map(partial(RemoteEnv, lane=lane), [address] * SESSIONS)]
            list(pool.map(reset, envs, range(SESSIONS)))
            each = (memory_of(serving.pid) - before) / SESSIONS
            ready = threading.Barrier(16)

            def play(share: int) -> list[list[int]]:
                ready.wait(30)
                mine = envs[share::16]
                return [[int(env.step(k)[0][0]) for env in mine] for k in range(1, 5)]

            shares = list(pool.map(play, range(16)))
            serving.stdin.write("\n")
            serving.stdin.flush()
            taken, steps = map(int, serving.stdout.readline().split())
            list(pool.map(RemoteEnv.close, envs))
        serving.stdin.close()
        assert serving.wait(20) == 0
    for share, answers in enumerate(shares):
        seeds = range(share, SESSIONS, 16)
        sums = (1, 3, 6, 10)
        assert answers == [[seed + done for seed in seeds] for done in sums]
    assert (taken, steps) == (SESSIONS, 1 + 4 * SESSIONS)
    record_property("kilobytes_per_idle_session", round(each, 1))
    with capsys.disabled():
        sys.stdout.write(f" [{lane}: {each:.0f} kB per idle session] ")
    assert each < kilobytes

"""Environments in processes of their own: they crash alone, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rlcore import ConfigurationError, EnvironmentException, InvalidActionError
from rlmesh.numpy import RemoteEnv
from rlmesh.server.env_server import EnvServer
from rlmesh.server.options import ServeOptions
from rlmesh.server.sources import load_factory

Serve = Callable[..., Any]  # servers, looked into
WORLD = '''
import os, signal, sys, threading, time
import gymnasium
import numpy as np
from gymnasium import spaces

class Strange:
    pass

class World(gymnasium.Env):
    """Step 1 dies by a signal, 2 exits, 3 raises, 4 hangs; the others tell where it is."""

    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, slow=0.0, render_mode="rgb_array"):
        time.sleep(slow)
        self.observation_space = spaces.Dict({
            "where": spaces.Box(0, 2**62, (3,), np.int64),
            "frame": spaces.Box(0, 255, (600, 600), np.uint8),
        })
        self.action_space = spaces.Discrete(9)
        self.render_mode = render_mode
        self.maker = threading.get_ident()
        self.steps = 0

    def look(self):
        is_main = threading.current_thread() is threading.main_thread()
        same = threading.get_ident() == self.maker
        return {"where": np.array([os.getpid(), self.steps, is_main and same]),
                "frame": np.full((600, 600), self.steps, np.uint8)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.look(), {"options": options or {}, "noise": float(self.np_random.random())}

    def step(self, action):
        self.steps += 1
        if action == 1:
            os.kill(os.getpid(), signal.SIGSEGV)
        if action == 2:
            os._exit(3)
        if action == 3:
            raise ZeroDivisionError("the wheel came off")
        if action == 4:
            time.sleep(600)
        info = {"array": np.arange(3), "odd": Strange(), "steps": self.steps}
        return self.look(), 1.0, action == 5, False, info

    def render(self):
        return np.full((4, 4, 3), self.steps, np.uint8)

def make():
    return World()

def broken():
    raise RuntimeError("no simulator on this machine")

def slow():
    return World(slow=600)

def dying():
    os._exit(7)
'''
OPTIONS = ServeOptions(isolation="process", lease_seconds=2.0)


@pytest.fixture(autouse=True)
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "isolated_world.py").write_text(WORLD)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return "isolated_world"


def pid_of(observation: Any) -> int:
    return int(observation["where"][0])


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A process that has ended and was not waited for does not run any more.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_each_session_has_a_process_of_its_own_that_ends_with_it(
    serve: Serve, eventually: Any
) -> None:
    server = serve(load_factory("isolated_world:make"), options=OPTIONS)
    with RemoteEnv(server) as first, RemoteEnv(server, lane="grpc") as second:
        one, info = first.reset(seed=3, options={"level": 2})
        other, _ = second.reset(seed=3)
        pids = [pid_of(one), pid_of(other)]
        assert len({os.getpid(), *pids}) == 3
        assert info["options"] == {"level": 2}
        for env in (first, second):
            observation, reward, *ends, told = env.step(0)
            assert (reward, ends, told["steps"]) == (1.0, [False, False], 1)
            assert observation["where"].tolist()[1:] == [1, 1]  # in the thread that made it
            assert (observation["frame"] == 1).all()
            np.testing.assert_array_equal(told["array"], [0, 1, 2])
            frame: Any = env.render()
            assert frame[0, 0].tolist() == [1, 1, 1]
        assert env.step(5)[2] is True
    eventually(lambda: not any(map(is_running, pids)))


@pytest.mark.parametrize(("action", "words"), [(1, "signal SIGSEGV"), (2, "exit code 3")])
def test_a_crash_is_a_fault_of_its_session_only(serve: Serve, action: int, words: str) -> None:
    server = serve(load_factory("isolated_world:make"), options=OPTIONS)
    with RemoteEnv(server) as env, RemoteEnv(server) as other:
        before, _ = env.reset(seed=5)
        other.reset()
        env.step(0)
        with pytest.raises(EnvironmentException, match=words) as caught:
            env.step(action)
        error = caught.value
        assert (error.code, error.operation, error.step, error.seed) == ("crashed", "step", 2, 5)
        assert other.step(0)[0]["where"][1] == 1
        after, _ = env.reset(seed=5)
        assert pid_of(after) != pid_of(before)
        assert env.step(0)[0]["where"][1] == 1


def test_a_process_that_is_killed_while_idle_is_noticed_at_the_next_step(
    serve: Serve, eventually: Any
) -> None:
    with RemoteEnv(serve(load_factory("isolated_world:make"), options=OPTIONS)) as env:
        pid = pid_of(env.reset()[0])
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not is_running(pid))
        with pytest.raises(EnvironmentException, match="signal SIGKILL"):
            env.step(0)
        assert pid_of(env.reset()[0]) != pid


def test_an_exception_arrives_whole_from_the_process(serve: Serve) -> None:
    with RemoteEnv(serve(load_factory("isolated_world:make"), options=OPTIONS)) as env:
        first = pid_of(env.reset()[0])
        with pytest.raises(EnvironmentException, match="the wheel came off") as caught:
            env.step(3)
        assert caught.value.remote_type == "ZeroDivisionError"
        assert "isolated_world.py" in (caught.value.remote_traceback or "")
        assert pid_of(env.reset()[0]) != first


def test_a_bad_action_does_not_end_the_process(serve: Serve) -> None:
    with RemoteEnv(serve(load_factory("isolated_world:make"), options=OPTIONS)) as env:
        pid = pid_of(env.reset()[0])
        with pytest.raises(InvalidActionError):
            env.step("up")
        assert pid_of(env.step(0)[0]) == pid


def test_a_step_that_was_given_up_on_is_ended_with_its_process(
    serve: Serve, eventually: Any
) -> None:
    server = serve(load_factory("isolated_world:make"), options=OPTIONS)
    with RemoteEnv(server) as env:
        pid = pid_of(env.reset()[0])
        with pytest.raises(TimeoutError), env.with_timeout(0.5):
            env.step(4)
        assert pid_of(env.reset()[0]) != pid
        eventually(lambda: not is_running(pid))


def test_a_shutdown_ends_what_hangs(eventually: Any) -> None:
    options = ServeOptions(isolation="process", drain_timeout_seconds=0.2)
    server: Any = EnvServer(load_factory("isolated_world:make"), options=options)
    server.start()
    env = RemoteEnv(server, resume_timeout_seconds=0)
    pid = pid_of(env.reset()[0])
    lost: list[Exception] = []

    def step() -> None:
        try:
            env.step(4)
        except Exception as error:
            lost.append(error)

    stepping = threading.Thread(target=step)
    stepping.start()
    eventually(lambda: server._service.busy())
    server.shutdown()
    stepping.join(10)
    assert len(lost) == 1
    assert not is_running(pid)
    env.close()


@pytest.mark.parametrize(
    ("source", "words"),
    [("broken", "RuntimeError: no simulator"), ("dying", "exit code 7"), ("slow", "within 1 s")],
)
def test_what_cannot_be_made_in_a_process_says_why(source: str, words: str) -> None:
    options = ServeOptions(isolation="process", env_start_seconds=1.0 if source == "slow" else 60)
    with pytest.raises(EnvironmentException, match=words) as caught:
        EnvServer(load_factory(f"isolated_world:{source}"), options=options)
    assert caught.value.operation == "make"


def test_what_cannot_be_sent_to_a_process_is_refused(
    counting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(ConfigurationError, match="cannot be sent to a process") as caught:
        EnvServer(lambda: counting(), options=OPTIONS)
    assert "install cloudpickle" in (caught.value.hint or "")
    with pytest.raises(ConfigurationError, match="one environment"):
        EnvServer(counting(), options=OPTIONS)


def test_lanes_live_in_one_process(serve: Serve) -> None:
    server = serve(load_factory("isolated_world:make"), options=OPTIONS, num_envs=3)
    from rlmesh.numpy import RemoteVectorEnv

    with RemoteVectorEnv(server) as env:
        observations, _ = env.reset(seed=[1, 2, 3])
        assert len({int(pid) for pid in observations["where"][:, 0]}) == 1
        stepped = env.step(np.array([0, 0, 0]))
        assert stepped[0]["where"][:, 1].tolist() == [1, 1, 1]
        with pytest.raises(EnvironmentException, match="signal SIGSEGV"):
            env.step(np.array([0, 1, 0]))
        observations, _ = env.reset(seed=[1, 2, 3])
        assert env.step(np.array([0, 0, 0]))[0]["where"][:, 1].tolist() == [1, 1, 1]


SERVING = """
import sys
from isolated_world import make
from rlmesh.server.env_server import EnvServer
from rlmesh.server.options import ServeOptions
server = EnvServer(make, options=ServeOptions(isolation="process"))
server.start()
print(server.address, flush=True)
sys.stdin.read()
"""


def test_processes_end_with_a_server_that_is_killed(tmp_path: Path, eventually: Any) -> None:
    script = tmp_path / "serving.py"
    script.write_text(SERVING)
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as serving:
        assert serving.stdout is not None
        env = RemoteEnv(serving.stdout.readline().strip())
        pid = pid_of(env.reset()[0])
        assert is_running(pid)
        serving.kill()
        eventually(lambda: not is_running(pid))
    started = time.monotonic()
    with pytest.raises(ConnectionError):
        env.step(0)
    assert time.monotonic() - started < 1.0
    env.close()

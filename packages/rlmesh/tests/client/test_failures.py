"""What a client sees when things go wrong, and that the server stays up."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from rlcore import (
    AddressError,
    BindError,
    CallTimeout,
    ConfigurationError,
    EnvironmentException,
    InvalidActionError,
    ProtocolException,
    ServerUnreachable,
    SessionBusy,
    SessionClosed,
    UnsupportedError,
)
from rlmesh.numpy import RemoteEnv
from rlmesh.server.env_server import EnvServer
from rlmesh.server.options import ServeOptions

Serve = Callable[..., EnvServer]


def crash_at_two(env: Any, _: object) -> None:
    if env.steps == 2:
        raise ZeroDivisionError("the wheel came off")


def test_an_environment_that_crashes_arrives_whole_and_can_be_reset(
    serve: Serve, factory: Any, either_address: str
) -> None:
    made = factory(crash_at_two)
    with RemoteEnv(serve(made, either_address)) as env:
        env.reset(seed=5)
        env.step(0)
        with pytest.raises(EnvironmentException, match="the wheel came off") as caught:
            env.step(0)
        error = caught.value
        assert (error.operation, error.seed, error.step, error.action) == ("step", 5, 2, "0")
        assert error.session_id == env.env_id
        assert error.remote_type == "ZeroDivisionError"
        assert error.episode_id == env.episode_id
        assert error.remote_traceback is not None
        assert "crash_at_two" in error.remote_traceback
        with pytest.raises(EnvironmentException, match=r"Call reset\(\) first"):
            env.step(0)
        observation, _ = env.reset(seed=6)
        assert observation.tolist() == [0, 1]
        env.step(0)
    assert [one.closed for one in made.made] == [1, 1]


class Speechless(RuntimeError):
    def __str__(self) -> str:
        raise KeyError("no")


class Shapeless:
    def __repr__(self) -> str:
        return "\udcff"


@pytest.mark.parametrize(
    ("on_step", "words"),
    [
        (Speechless(), r"Speechless: \(its text cannot be shown\)"),
        (RuntimeError("\udcff path"), r"RuntimeError: \\udcff path"),
        (Shapeless(), r"TypeError: step returned \\udcff"),
    ],
)
@pytest.mark.usefixtures("each_lane")
def test_a_failure_whose_text_cannot_travel_arrives_all_the_same(
    serve: Serve, scripted: Any, on_step: object, words: str
) -> None:
    def fail(env: object, action: object) -> object:
        if isinstance(on_step, Exception):
            raise on_step
        return on_step

    with RemoteEnv(serve(scripted(fail))) as env:
        env.reset()
        with pytest.raises(EnvironmentException, match=words):
            env.step(0)
        env.reset()


@pytest.mark.parametrize("reward", [float("nan"), float("inf")])
def test_a_reward_that_is_not_finite_is_the_environments_fault(
    serve: Serve, scripted: Any, reward: float
) -> None:
    def answer(env: Any, action: object) -> object:
        return env.observation(), reward, False, False, None

    with RemoteEnv(serve(scripted(answer))) as env:
        env.reset()
        with pytest.raises(EnvironmentException, match=f"reward is {reward}"):
            env.step(0)


@pytest.mark.usefixtures("each_lane")
def test_a_shared_environment_that_crashes_is_reset_by_the_same_client(
    serve: Serve, scripted: Any
) -> None:
    inner = scripted(crash_at_two)
    with RemoteEnv(serve(inner)) as env:
        for _ in range(3):
            env.reset()
            env.step(0)
            with pytest.raises(EnvironmentException):
                env.step(0)
    assert len(inner.resets) == 3


def test_an_environment_that_hangs_is_a_timeout_and_the_server_stays_up(
    serve: Serve, factory: Any, hang: Any, gate: threading.Event, either_address: str
) -> None:
    made = factory(hang(2))
    server = serve(made, either_address, options=ServeOptions(drain_timeout_seconds=0.1))
    with RemoteEnv(server, request_timeout_seconds=0.3) as env:
        env.reset()
        started = time.monotonic()
        with pytest.raises(CallTimeout, match=r"step at .* within 0\.3 s") as caught:
            env.step(2)
        assert time.monotonic() - started < 3
        assert (caught.value.layer, caught.value.seconds) == ("request", 0.3)
        with RemoteEnv(server) as other:
            other.reset()
            other.step(0)
        env.reset()
        assert env.step(0)[0].tolist() == [1, 1]
    gate.set()


@pytest.mark.usefixtures("each_lane")
def test_a_shared_environment_that_hangs_is_busy_until_it_returns(
    serve: Serve, scripted: Any, hang: Any, gate: threading.Event, eventually: Any
) -> None:
    inner = scripted(hang(2))
    with RemoteEnv(serve(inner), request_timeout_seconds=5.0) as waiting:
        waiting.reset()
        hung = RemoteEnv(waiting.address, request_timeout_seconds=1.0)
        waiting.close()
        hung.reset()
        with pytest.raises(CallTimeout):
            hung.step(2)
        with pytest.raises(SessionBusy, match="a step that a client gave up on is still running"):
            hung.reset()
        gate.set()
        eventually(lambda: _resets(hung))
        hung.close()


def _resets(env: RemoteEnv) -> bool:
    try:
        env.reset()
    except SessionBusy:
        return False
    return True


@pytest.mark.parametrize(
    ("action", "path"),
    [
        ([0.0, 1.0], "$.move"),
        (np.zeros((2, 3), np.float32), "$.move"),
        (np.array([0, np.nan, 0], np.float32), "$.move"),
        (np.array(["a", "b", "c"]), "$.move"),
        (None, "$.move"),
    ],
)
def test_an_action_that_does_not_fit_is_refused_before_it_is_sent(
    serve: Serve, scripted: Any, action: object, path: str
) -> None:
    inner = scripted()
    inner.action_space = spaces.Dict(move=spaces.Box(-1, 1, (3,), np.float32))
    with RemoteEnv(serve(inner)) as env:
        env.reset()
        with pytest.raises(InvalidActionError) as caught:
            env.step({"move": action})
        assert caught.value.path == path
        assert inner.steps == 0
        env.step({"move": np.zeros(3, np.float32)})
    assert inner.steps == 1


@pytest.mark.parametrize("action", [3, -1, 0.5, "left", [0, 1], {}])
def test_what_is_no_choice_of_a_discrete_space_is_refused(
    serve: Serve, scripted: Any, action: object
) -> None:
    with RemoteEnv(serve(scripted())) as env:
        env.reset()
        with pytest.raises(InvalidActionError):
            env.step(action)
        env.step(0)


@pytest.mark.parametrize(
    "returned",
    [
        (np.zeros(3, np.float32), 1.0, False, False, {}),
        (np.zeros(2, np.float32), "much", False, False, {}),
        (np.zeros(2, np.float32), 1.0, 1, False, {}),
        (np.zeros(2, np.float32), 1.0, False, False, ["info"]),
        (np.zeros(2, np.float32), 1.0),
        7,
    ],
)
@pytest.mark.usefixtures("each_lane")
def test_an_environment_that_returns_something_else_fails_by_name(
    serve: Serve, scripted: Any, returned: object
) -> None:
    def answer(env: object, action: object) -> object:
        return returned

    with RemoteEnv(serve(scripted(answer))) as env:
        env.reset()
        with pytest.raises(EnvironmentException, match="step failed") as caught:
            env.step(0)
        assert caught.value.remote_type in ("TypeError", "InvalidObservationError")
        env.reset()


def test_nothing_at_the_address_is_said_at_once(folder: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    for place in (address, f"unix://{folder}/none.sock"):
        started = time.monotonic()
        with pytest.raises(ServerUnreachable, match="nothing answers there") as caught:
            RemoteEnv(place)
        assert time.monotonic() - started < 5
        assert caught.value.address is not None
        assert place.removeprefix("unix://") in caught.value.address
        assert caught.value.address in str(caught.value)


def test_a_client_can_wait_for_a_server_that_comes_up(scripted: Any, folder: Path) -> None:
    address = f"unix://{folder}/late.sock"
    servers: list[EnvServer] = []

    def come_up() -> None:
        servers.append(EnvServer(scripted(), address))
        servers[0].start()

    timer = threading.Timer(0.3, come_up)
    timer.start()
    with RemoteEnv(address, wait_for_server_seconds=20) as env:
        env.reset()
    timer.join()
    servers[0].shutdown()


def test_something_that_never_answers_is_a_connect_timeout() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(CallTimeout, match=r"within 0\.3 s") as caught:
            RemoteEnv(address, connect_timeout_seconds=0.3)
    assert caught.value.layer == "connect"


def test_a_server_that_is_bound_but_not_started_is_a_timeout(scripted: Any) -> None:
    server = EnvServer(scripted())
    with pytest.raises(CallTimeout):
        RemoteEnv(server, connect_timeout_seconds=0.3)
    server.shutdown()


def test_a_port_in_use_cannot_be_bound_and_nothing_is_left_open(serve: Serve, factory: Any) -> None:
    first = serve(factory())
    second = factory()
    with pytest.raises(BindError, match="Address already in use") as caught:
        EnvServer(second, first.address)
    assert caught.value.address == first.address
    assert (second.probe.closed, second.made) == (1, [])


def test_a_stale_socket_file_is_replaced_and_only_ours_to_open(
    serve: Serve, scripted: Any, folder: Path
) -> None:
    path = folder / "env.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    server = serve(scripted(), f"unix://{path}")
    assert path.stat().st_mode & 0o777 == 0o600
    with RemoteEnv(server) as env:
        env.reset()
    server.shutdown()
    assert not path.exists()


def test_a_living_socket_or_another_file_is_left_alone(
    serve: Serve, scripted: Any, folder: Path
) -> None:
    living = serve(scripted(), f"unix://{folder}/living.sock")
    with pytest.raises(BindError, match="another server is listening"):
        EnvServer(scripted(), living.address)
    with RemoteEnv(living) as env:
        env.reset()
    (folder / "file").write_text("precious")
    with pytest.raises(BindError, match="not a socket"):
        EnvServer(scripted(), f"unix://{folder}/file")
    assert (folder / "file").read_text() == "precious"
    with pytest.raises(BindError, match="does not exist"):
        EnvServer(scripted(), f"unix://{folder}/nowhere/env.sock")


def test_an_observation_larger_than_messages_may_be_is_named(serve: Serve, scripted: Any) -> None:
    inner = scripted()
    inner.observation_space = spaces.Box(0, 255, (2_000_000,), np.uint8)
    inner.observation = inner.observation_space.sample
    server = serve(inner, options=ServeOptions(max_message_bytes=1_000_000))
    with RemoteEnv(server) as env, pytest.raises(EnvironmentException, match=r"limit is 1000000"):
        env.reset()


def test_an_action_larger_than_the_server_takes_is_named(serve: Serve, scripted: Any) -> None:
    inner = scripted()
    inner.action_space = spaces.Box(0, 255, (2_000_000,), np.uint8)
    server = serve(inner, options=ServeOptions(max_message_bytes=1_000_000))
    with RemoteEnv(server) as env:
        env.reset()
        with pytest.raises(ProtocolException, match="too large") as caught:
            env.step(np.zeros(2_000_000, np.uint8))
        assert caught.value.code == "message_too_large"
        env.reset()
    assert inner.steps == 0


def test_what_steps_many_and_does_not_say_what_a_lane_is_is_not_served(scripted: Any) -> None:
    vector = scripted()
    vector.num_envs = 2
    with pytest.raises(UnsupportedError, match="no single_observation_space"):
        EnvServer(vector)


@pytest.mark.parametrize("thing", [None, 7, "CartPole-v1", object()])
def test_what_is_no_environment_is_not_served(thing: object) -> None:
    with pytest.raises(TypeError, match="is not an environment"):
        EnvServer(thing)


def test_a_factory_that_raises_is_named_with_its_reason() -> None:
    def broken() -> object:
        raise RuntimeError("no simulator on this machine")

    with pytest.raises(EnvironmentException, match="RuntimeError: no simulator") as caught:
        EnvServer(broken)
    assert caught.value.operation == "make"


@pytest.mark.usefixtures("each_lane")
def test_a_factory_that_fails_later_fails_that_session_only(serve: Serve, factory: Any) -> None:
    made = factory()

    def once() -> object:
        if len(made.made) == 1:
            made.made.append(None)
            raise OSError("no more licences")
        return made()

    server = serve(once)
    with RemoteEnv(server) as first, RemoteEnv(server) as second:
        first.reset()
        with pytest.raises(EnvironmentException, match="make failed: OSError: no more licences"):
            second.reset()
        second.reset()
        first.step(0)


@pytest.mark.parametrize(
    "options",
    [
        {"request_timeout_seconds": -1},
        {"connect_timeout_seconds": float("inf")},
        {"wait_for_server_seconds": -1},
        {"workflow_edition": "2099.01"},
        {"host": "127.0.0.1"},
    ],
)
def test_options_that_make_no_sense_are_refused(options: Any) -> None:
    with pytest.raises(ConfigurationError):
        RemoteEnv("127.0.0.1:1", **options)


def test_what_has_no_address_cannot_be_dialled() -> None:
    with pytest.raises(AddressError, match="is not an address and has none"):
        RemoteEnv(7)


@pytest.mark.usefixtures("each_lane")
def test_two_threads_on_one_client_are_told(
    serve: Serve, scripted: Any, hang: Any, gate: threading.Event, eventually: Any
) -> None:
    inner = scripted(hang())
    with RemoteEnv(serve(inner)) as env:
        env.reset()
        thread = threading.Thread(target=env.step, args=(0,))
        thread.start()
        eventually(lambda: inner.steps == 1)
        with pytest.raises(ProtocolException, match="two threads"):
            env.step(0)
        gate.set()
        thread.join()


SERVER_PROGRAM = """
import sys, time
import gymnasium
from rlmesh.server.env_server import EnvServer

class Slow(gymnasium.Wrapper):
    def step(self, action):
        if action == 1:
            print("stepping", flush=True)
            time.sleep(60)
        return super().step(action)

server = EnvServer(lambda: Slow(gymnasium.make("CartPole-v1")), sys.argv[1])
server.start()
print(server.address, flush=True)
server.wait()
"""


@contextmanager
def process_serving(address: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER_PROGRAM, address], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_server_killed_in_the_middle_of_a_step_is_noticed_and_dialled_again(
    folder: Path,
) -> None:
    bind = f"unix://{folder}/env.sock"
    with process_serving(bind) as (process, address):
        env = RemoteEnv(address)
        env.reset(seed=1)
        failures: list[Exception] = []

        def step() -> None:
            try:
                env.step(1)
            except SessionClosed as error:
                failures.append(error)

        thread = threading.Thread(target=step)
        thread.start()
        assert process.stdout is not None
        assert process.stdout.readline() == "stepping\n"
        os.kill(process.pid, signal.SIGKILL)
        thread.join(timeout=20)
        assert len(failures) == 1
        assert "connection was lost" in str(failures[0])
    with pytest.raises(ServerUnreachable):
        env.reset()
    with process_serving(bind):
        observation, _ = env.reset(seed=1)
        assert observation.shape == (4,)
        env.close()

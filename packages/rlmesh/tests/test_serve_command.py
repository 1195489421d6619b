"""`python -m rlmesh.serve` as another program starts it: a real process, real signals."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rlcore import ConfigurationError
from rlcore.command_line import Misuse
from rlmesh.numpy import RemoteEnv, RemoteVectorEnv
from rlmesh.server.command import make_parser, read_command
from rlmesh.server.env_server import EnvServer
from rlmesh.server.options import ServeOptions
from rlmesh.server.sources import load_factory
from rlmesh.server.vector_sources import many_of

MODULE = """
import gymnasium

class Made(gymnasium.Wrapper):
    def __init__(self, gravity=9.8):
        super().__init__(gymnasium.make("CartPole-v1"))
        self.unwrapped.gravity = gravity

class Factory:
    def make(self, gravity=9.8):
        return Made(gravity)

class Hangs(Made):
    def step(self, action):
        import time
        print("stepping", flush=True)
        time.sleep(60)

class Torch(gymnasium.Env):
    observation_space = action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        return [0.0], {}

    def step(self, action):
        import torch
        framework = "torch" if isinstance(action, torch.Tensor) else "none"
        return [0.0], 0.0, False, False, {"framework": framework, "device": str(action.device)}

factory = Factory()
number = 7

def broken():
    raise RuntimeError("no simulator here")

def exits():
    raise SystemExit(3)

def slow():
    import time
    print("making", flush=True)
    time.sleep(60)
"""

Start = Callable[..., tuple[subprocess.Popen[str], str]]


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rlm-") as made:
        (Path(made) / "worlds_for_serve.py").write_text(MODULE)
        yield Path(made)


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Start a server and return it with the address that it announced."""
    processes: list[subprocess.Popen[str]] = []

    def run(*arguments: str, **environ: str) -> tuple[subprocess.Popen[str], str]:
        reading, writing = os.pipe()
        process = subprocess.Popen(
            [sys.executable, "-m", "rlmesh.serve", *arguments, "--ready-fd", str(writing)],
            cwd=folder,
            pass_fds=[writing],
            env={**os.environ, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        os.close(writing)
        with os.fdopen(reading) as ready:
            assert select.select([ready], [], [], 30)[0]
            return process, ready.readline().strip()

    yield run
    for process in processes:
        process.kill()
        process.communicate()


def fails(folder: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "rlmesh.serve", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.stdout == ""
    (line,) = done.stderr.strip().splitlines()
    return done.returncode, line


@pytest.mark.parametrize(
    "source",
    [
        "CartPole-v1",
        "gym://CartPole-v1",
        "worlds_for_serve:Made",
        "python://worlds_for_serve:factory",
        "worlds_for_serve:Factory",
    ],
)
def test_a_source_is_served_until_sigterm(start: Start, source: str) -> None:
    process, address = start(source, "--address", "127.0.0.1:0")
    with RemoteEnv(address) as first, RemoteEnv(address) as second:
        first.reset(seed=1)
        second.reset(seed=1)
        assert first.step(0)[0].tolist() == second.step(0)[0].tolist()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0


def test_variables_say_where_with_what_and_for_whom(start: Start, folder: Path) -> None:
    place = f"unix://{folder}/env.sock"
    process, address = start(
        "--env",
        "worlds_for_serve:Made",
        RLMESH_ADDRESS=place,
        RLMESH_MAKE_KWARGS='{"gravity": 0.0}',
        RLMESH_TOKEN="open sesame",
    )
    assert address == place
    with RemoteEnv(address, token="open sesame") as env:
        env.reset(seed=1)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130
    assert not (folder / "env.sock").exists()


def test_ctrl_c_while_an_environment_is_made_ends_in_a_line(folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "rlmesh.serve", "worlds_for_serve:slow", "--port", "0"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "making\n"
    process.send_signal(signal.SIGINT)

    _, said = process.communicate(timeout=20)

    assert process.returncode == 130
    assert said.strip() == "interrupted before anything was served"


@pytest.mark.slow
def test_a_framework_and_a_device_are_taken_from_variables(start: Start) -> None:
    _, address = start(
        "worlds_for_serve:Torch", "--port", "0", RLMESH_FRAMEWORK="torch", RLMESH_DEVICE="meta"
    )
    with RemoteEnv(address) as env:
        env.reset()
        assert env.step([0.5])[-1] == {"framework": "torch", "device": "meta"}


def test_an_argument_names_the_framework_before_a_variable_does() -> None:
    parsed = make_parser().parse_args(["CartPole-v1", "--framework", "np"])
    command = read_command(parsed, {"RLMESH_FRAMEWORK": "jax"})
    assert (command.framework, command.device) == ("numpy", None)


def test_a_hanging_environment_does_not_keep_the_process(start: Start) -> None:
    process, address = start(
        "worlds_for_serve:Hangs", "--address", "127.0.0.1:0", "--drain-timeout", "0.2"
    )
    env = RemoteEnv(address, request_timeout_seconds=0.5)
    env.reset()
    with pytest.raises(TimeoutError):
        env.step(0)
    env.close()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 1
    assert process.stderr is not None
    assert "error: 1 session(s)" in process.stderr.read()


def test_the_server_ends_with_its_parent(folder: Path) -> None:
    program = (
        "import subprocess, sys\n"
        "command = [sys.executable, '-m', 'rlmesh.serve', 'CartPole-v1', '--exit-with-parent']\n"
        "command += ['--address', '127.0.0.1:0']\n"
        "child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)\n"
        "print(child.stdout.readline().split()[-1], flush=True)\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    assert parent.stdin is not None
    address = parent.stdout.readline().strip()
    child = int(parent.stdout.readline())
    with RemoteEnv(address) as env:
        env.reset()
    descriptor = os.pidfd_open(child)
    parent.kill()
    parent.wait()
    parent.stdin.close()
    parent.stdout.close()
    assert select.select([descriptor], [], [], 20)[0], "the server outlived its parent"
    os.close(descriptor)


@pytest.mark.slow
def test_a_server_that_lingers_goes_on_until_its_last_client_has_left(folder: Path) -> None:
    program = (
        "import subprocess, sys\n"
        "command = [sys.executable, '-m', 'rlmesh.serve', 'CartPole-v1', '--exit-with-parent']\n"
        "command += ['--linger', '60', '--address', '127.0.0.1:0']\n"
        "child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)\n"
        "print(child.stdout.readline().split()[-1], flush=True)\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    assert parent.stdin is not None
    address = parent.stdout.readline().strip()
    child = os.pidfd_open(int(parent.stdout.readline()))
    with RemoteEnv(address) as env:
        env.reset(seed=1)
        parent.kill()
        parent.wait()
        assert not select.select([child], [], [], 4)[0], "it left a client alone"
        env.step(0)
    assert select.select([child], [], [], 20)[0], "it outlived its parent and all clients"
    parent.stdin.close()
    parent.stdout.close()
    os.close(child)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["CartPol-v1"], 1, "error: gymnasium has no environment 'CartPol-v1'"),
        (["gym://no such id"], 1, "error: gymnasium has no environment 'no such id'"),
        (
            ["worlds_for_serve:broken"],
            1,
            "error: python://worlds_for_serve:broken could not make an environment: "
            "RuntimeError: no simulator here",
        ),
        (["worlds_for_serve:exits"], 1, "error: python://worlds_for_serve:exits exited (3) "),
        (["worlds_for_serve:nothing"], 1, "has no attribute 'nothing'"),
        (["worlds_for_serve:number"], 1, "makes no environment"),
        (["no_such_module:x"], 1, "No module named 'no_such_module'"),
        (["CartPole-v1", "--address", "0.0.0.0:0"], 1, "error: tcp://0.0.0.0:0 can be reached"),
        (["CartPole-v1", "--linger", "5"], 2, "error: --linger 5 says how long to outlive"),
        (["CartPole-v1", "--address", "nowhere"], 2, "error: 'nowhere' is not a host and a port"),
        (["CartPole-v1", "--kwargs-json", '{"nosuch": 1}'], 1, "nosuch"),
        ([], 2, "name one environment"),
        (["a", "--env", "b"], 2, "name one environment"),
        (["CartPole-v1", "--kwargs-json", "{"], 2, "are not JSON"),
        (["CartPole-v1", "--kwargs-json", "[]"], 2, "not a JSON object"),
        (["CartPole-v1", "--address", "a:1", "--port", "1"], 2, "--address is given beside"),
        (["CartPole-v1", "--max-sessions", "0"], 2, "max_sessions is 0"),
        (["CartPole-v1", "--framework", "tensorflow"], 2, "framework is 'tensorflow'"),
        (["CartPole-v1", "--device", "cpu"], 1, "device is 'cpu', and no framework was named"),
        (["CartPole-v1", "--metrics-port", "99999"], 2, "--metrics-port is 99999"),
        (["CartPole-v1", "--shared", "--isolation", "process"], 2, "--shared is given beside"),
        (["CartPole-v1", "--tls-key", "x"], 2, "a key or client CA is given without --tls"),
        (["CartPole-v1", "--tls-client-ca", "x"], 2, "is given without --tls"),
        (["CartPole-v1", "--tls", "auto", "--tls-key", "x"], 2, "--tls-key is given beside"),
        (["CartPole-v1", "--port", "x"], 2, "argument --port: invalid int value: 'x'"),
        (["CartPole-v1", "--port", "99999"], 2, "no port between 0 and 65535"),
    ],
)
def test_what_cannot_be_served_is_one_line_and_an_exit_code(
    folder: Path, arguments: list[str], code: int, words: str
) -> None:
    found, line = fails(folder, *arguments)
    assert found == code
    assert words in line


@pytest.mark.parametrize("command", ["rlmesh.serve", "rlmesh serve"])
def test_both_commands_see_the_working_folder_and_name_themselves(
    folder: Path, command: str
) -> None:
    # Without -P, Python itself would add the folder; an installed script gets none.
    start = [sys.executable, "-P", "-m", *command.split()]

    def said(*arguments: str) -> str:
        done = subprocess.run(
            [*start, *arguments], cwd=folder, capture_output=True, text=True, timeout=50
        )
        (line,) = done.stderr.strip().splitlines()
        return line

    assert "has no attribute 'nothing'" in said("worlds_for_serve:nothing")
    own = "python -m rlmesh.serve" if command == "rlmesh.serve" else command
    assert said().startswith(f"{own}: error: name one environment")


@pytest.mark.parametrize(
    ("arguments", "environ", "address"),
    [
        ([], {}, "127.0.0.1:50051"),
        ([], {"RLMESH_PORT": "7"}, "127.0.0.1:7"),
        ([], {"RLMESH_ADDRESS": "tcp://h:1", "RLMESH_PORT": "7"}, "tcp://h:1"),
        (["--port", "0"], {"RLMESH_ADDRESS": "tcp://h:1"}, "127.0.0.1:0"),
        (["--host", "::1"], {}, "[::1]:50051"),
        (["--address", "unix:///x"], {"RLMESH_ADDRESS": "tcp://h:1"}, "unix:///x"),
    ],
)
def test_where_to_serve_is_argument_over_variable_over_default(
    arguments: list[str], environ: dict[str, str], address: str
) -> None:
    parsed = make_parser().parse_args(["CartPole-v1", *arguments])
    assert read_command(parsed, environ).address == address


def test_a_port_variable_that_is_no_port_is_misuse() -> None:
    with pytest.raises(Misuse):
        read_command(make_parser().parse_args(["CartPole-v1"]), {"RLMESH_PORT": "http"})


def test_an_id_of_gymnasium_is_looked_up_when_it_is_made() -> None:
    factory = load_factory("NoSuchEnv-v0")
    with pytest.raises(ConfigurationError) as caught:
        factory()
    assert caught.value.code == "unknown_environment"


def test_the_ways_beside_grpc_are_an_option() -> None:
    def options(*words: str) -> ServeOptions:
        return read_command(make_parser().parse_args(["X-v0", *words]), {}).options

    assert (options().lanes, options().lane_port) == (True, 0)
    assert options("--no-lanes").lanes is False
    assert options("--lane-port", "5556").lane_port == 5556
    with pytest.raises(Misuse, match="lane_port is 70000"):
        options("--lane-port", "70000")


def test_lanes_are_asked_for_by_arguments_and_by_variables() -> None:
    parser = make_parser("serve")
    environ = {"RLMESH_NUM_ENVS": "4", "RLMESH_VECTORIZATION_MODE": "sync"}
    many = read_command(parser.parse_args(["CartPole-v1"]), environ).many
    assert (many.num_envs, many.mode, many.autoreset_mode) == (4, "sync", None)
    arguments = ["CartPole-v1", "--num-envs", "2", "--vectorization-mode", "lanes"]
    arguments += ["--autoreset-mode", "same_step"]
    many = read_command(parser.parse_args(arguments), environ).many
    assert (many.num_envs, many.mode, str(many.autoreset_mode)) == (2, "lanes", "same_step")


@pytest.mark.parametrize(
    "environ",
    [{"RLMESH_NUM_ENVS": "some"}, {"RLMESH_NUM_ENVS": "0"}, {"RLMESH_VECTORIZATION_MODE": "sync"}],
)
def test_lanes_that_cannot_be_are_misuse(environ: dict[str, str]) -> None:
    with pytest.raises(Misuse, match=r"RLMESH_NUM_ENVS|num_envs"):
        read_command(make_parser("serve").parse_args(["CartPole-v1"]), environ)


@pytest.mark.parametrize(
    ("mode", "autoreset"),
    [("lanes", "disabled"), ("sync", "next_step"), ("vector_entry_point", "next_step")],
)
def test_an_id_of_gymnasium_is_served_as_many_lanes(mode: str, autoreset: str) -> None:
    factory = load_factory("CartPole-v1", {"sutton_barto_reward": True}, many_of(3, mode))
    with EnvServer(factory) as server, RemoteVectorEnv(server.address) as env:
        assert server.env_contract.num_envs == 3
        assert server.env_contract.autoreset_mode == autoreset
        env.reset(seed=0)
        rewards = env.step([1, 0, 1])[1]
    assert rewards.tolist() == [0.0, 0.0, 0.0]


def test_an_id_without_an_entry_point_for_vectors_is_named() -> None:
    factory = load_factory("Pendulum-v1", {}, many_of(2, "vector_entry_point"))
    with pytest.raises(ConfigurationError, match="vector entry point"):
        factory()

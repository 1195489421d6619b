"""The fixtures that this package gives to the tests of others, in a project of theirs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

BLOCKING = """
import os, rleaas, rlmesh

def test_a_client_reaches_the_platform(rleaas_client, rleaas_server):
    env = rleaas_client.Environment.create("CartPole", source="gym://CartPole-v1")
    assert (env.version, rleaas_client.base_url) == (1, rleaas_server.url)
    env.wait_until_ready()
    assert len(rlmesh.run(rlmesh.RANDOM_SAMPLE, "rleaas://CartPole", episodes=1).rewards) == 1
    assert os.environ["RLEAAS_BASE_URL"] == rleaas_server.url
    assert (rleaas_server.data_dir / "rleaas.db").exists()

def test_the_platform_is_that_of_the_test_before(rleaas_client):
    assert [env.name for env in rleaas_client.Environment.list()] == ["CartPole"]

def test_what_a_developer_has_set_leads_nowhere_else(rleaas_client):
    with rleaas.Client() as client:
        assert client.ping()
        assert client.base_url == rleaas_client.base_url
    assert os.environ["NO_PROXY"] == "example.com,127.0.0.1"

def test_the_variables_are_gone_with_the_client():
    assert "RLEAAS_BASE_URL" not in os.environ
    assert os.environ["RLEAAS_PROFILE"] == "of-another-server"
"""
OTHERS = """
import gymnasium, pytest
from rlcore import AuthenticationError, ConfigurationError
from rleaas import Client
from rlmesh.numpy import RemoteEnv

@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_an_async_client_reaches_it(rleaas_async_client, anyio_backend):
    name = f"of {anyio_backend}"
    env = await rleaas_async_client.Environment.create(name, source="gym://CartPole-v1")
    assert (env.name, env.version) == (name, 1)

def test_strangers_are_not_let_in(rleaas_client, rleaas_server):
    with Client("another", rleaas_server.url) as client, pytest.raises(AuthenticationError):
        client.Environment.list()

@pytest.mark.parametrize(
    "env", ["CartPole-v1", lambda: gymnasium.make("CartPole-v1"), gymnasium.make("CartPole-v1")]
)
def test_an_environment_is_served(rlmesh_env_server, env):
    with RemoteEnv(rlmesh_env_server(env).address) as remote:
        assert remote.reset(seed=1)[0].shape == (4,)

def test_the_environment_of_a_name_is_made_as_is_said(rlmesh_env_server):
    server = rlmesh_env_server("CartPole-v1", kwargs={"max_episode_steps": 1})
    with RemoteEnv(server.address) as remote:
        remote.reset(seed=1)
        assert remote.step(0)[3]

def test_wrong_arguments_are_errors_by_name(rlmesh_env_server):
    with pytest.raises(ConfigurationError, match="no environment 'Nothing-v1'"):
        rlmesh_env_server("Nothing-v1")
    with pytest.raises(TypeError, match="given by its name"):
        rlmesh_env_server(gymnasium.make("CartPole-v1"), kwargs={})
"""
IDLE = """
import sys

def test_nothing_was_imported_for_fixtures_that_nobody_uses(tmp_path_factory):
    heavy = {"rleaas.client", "rleaas.server", "httpx", "pydantic", "rlmesh", "numpy", "sqlalchemy"}
    assert not heavy & set(sys.modules)
"""
LACKING = """
import sys
import pytest

@pytest.fixture(scope="session", autouse=True)
def less():
    # What an import finds where it is not installed.
    sys.modules["fastapi"] = sys.modules["rlmesh"] = None

def test_it(rleaas_server): ...

def test_another(rlmesh_env_server): ...
"""
# It sleeps in slices: a signal that comes just before a wait for a lock wakes nobody.
WAITING = """
import time

def test_that_waits(rleaas_client, rlmesh_env_server):
    rlmesh_env_server("CartPole-v1")
    env = rleaas_client.Environment.create("CartPole", source="gym://CartPole-v1")
    env.wait_until_ready()
    job = rleaas_client.TrainingJob.run("CartPole", num_episodes=100000)
    while job.status == "pending":
        job.refresh()
    print("waiting", flush=True)
    while True:
        time.sleep(0.05)
"""
# Children get no variable that begins with RLEAAS_.
MARK = "MARK_OF_A_TEST"


@pytest.fixture(autouse=True)
def _as_at_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RLEAAS_BASE_URL", "RLEAAS_API_KEY", "PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.slow
def test_a_project_gets_a_platform_clients_and_served_environments(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(test_blocking=BLOCKING, test_others=OTHERS)
    nobody = "http://127.0.0.1:9"
    for name, value in {
        "RLEAAS_PROFILE": "of-another-server",
        "RLEAAS_TIMEOUT": "0.000001",
        "HTTP_PROXY": nobody,
        "http_proxy": nobody,
        "NO_PROXY": "example.com",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("no_proxy", raising=False)

    ran = pytester.runpytest_subprocess("-W", "error", "-p", "no:schemathesis")

    ran.assert_outcomes(passed=12)


def test_fixtures_that_nobody_uses_cost_no_import(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The other plugins that are installed here import some of it themselves.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(IDLE)

    ran = pytester.runpytest_subprocess("-p", "rleaas.pytest_plugin")

    ran.assert_outcomes(passed=1)


def test_what_is_not_installed_is_an_error_that_says_what_to_install(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(LACKING)

    ran = pytester.runpytest_subprocess("-p", "rleaas.pytest_plugin")

    ran.assert_outcomes(errors=2)
    told = ran.stdout.str().partition("ERROR at setup of test_it")[2].splitlines()
    assert told[1] == "the fixture rleaas_server needs 'fastapi': pip install \"rleaas[server]\""
    told = ran.stdout.str().partition("ERROR at setup of test_another")[2].splitlines()
    assert told[1] == "the fixture rlmesh_env_server needs 'rlmesh': pip install \"rleaas[mesh]\""


@pytest.fixture
def waiting(pytester: pytest.Pytester) -> Iterator[subprocess.Popen[str]]:
    """A pytest in which a test has started all there is to start, and waits."""
    path = pytester.makepyfile(WAITING)
    command = [sys.executable, "-m", "pytest", "-s", "-p", "rleaas.pytest_plugin", str(path)]
    environ = {**os.environ, MARK: str(path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environ
    ) as process:
        yield process
        process.kill()


# After how many seconds the second comes; after 200 ms, the teardown waits for the server to end.
@pytest.mark.parametrize("again", [None, 0, 0.2])
def test_ctrl_c_leaves_no_process_behind(
    waiting: subprocess.Popen[str], pytester: pytest.Pytester, again: float | None
) -> None:
    assert waiting.stdout is not None
    before: list[str] = []
    for line in waiting.stdout:
        before.append(line)
        if line.endswith("waiting\n"):
            break
    mark = f"{MARK}={next(pytester.path.glob('test_*.py'))}"
    end = time.monotonic() + 10
    while len(marked(mark)) <= 2:  # one may be between its fork and its exec
        assert time.monotonic() < end, before
        time.sleep(0.05)

    waiting.send_signal(signal.SIGINT)
    if again is not None:
        time.sleep(again)
        waiting.send_signal(signal.SIGINT)
    said = waiting.stdout.read()

    waiting.wait(20)
    assert "KeyboardInterrupt" in said
    assert marked(mark) == []


def marked(mark: str) -> list[int]:
    """The processes with this text in their environment."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            content = path.read_bytes()
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue  # it has ended, or is somebody else's
        if mark.encode() in content.split(b"\0"):
            found.append(int(path.parent.name))
    return found

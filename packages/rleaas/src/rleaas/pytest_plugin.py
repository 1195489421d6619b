"""Fixtures for tests that want a real platform, clients of it, or a served environment.

pytest finds them where `rleaas` is installed. Nothing is imported, started or written before a
test asks for one of them. The platform needs `rleaas[server]`, served environments `rleaas[mesh]`;
a test that asks without is an error that says so.

    def test_an_environment_gets_ready(rleaas_client):
        env = rleaas_client.Environment.create("CartPole", source="gym://CartPole-v1")
        assert env.wait_until_ready().status == "ready"

`-p no:rleaas` leaves the fixtures out.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from rlmesh import EnvServer

    from rleaas import AsyncClient, Client


@dataclass(frozen=True, slots=True)
class Platform:
    """A server that runs for the tests of one session.

    Attributes:
        url: where it answers.
        api_key: a key that may do everything there.
        data_dir: its database, checkpoints and logs; pytest keeps those of the last sessions.
    """

    url: str
    api_key: str
    data_dir: Path

    @property
    def environ(self) -> dict[str, str]:
        """The variables by which clients, commands and `rleaas://` addresses find it."""
        return {"RLEAAS_BASE_URL": self.url, "RLEAAS_API_KEY": self.api_key}


class ServeEnvironment(Protocol):
    """What `rlmesh_env_server` is."""

    def __call__(
        self,
        env: object,
        *,
        kwargs: Mapping[str, object] | None = None,
        **settings: Any,  # Any: what rlmesh.EnvServer takes
    ) -> EnvServer:
        """Serve an environment until the test ends, and return the server of it.

        Args:
            env: an environment, a list of them, a factory, or a name: `CartPole-v1`,
                `gym://CartPole-v1`, `module:attribute`. Clients share an environment; of a factory
                or a name, each gets one of its own.
            kwargs: what the environments of a name are made with.
            settings: those of `rlmesh.EnvServer`; without an address, it takes a free port.
        """
        ...


@pytest.fixture(scope="session")
def rleaas_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A real server on a free port: its `url`, `api_key`, `data_dir` and `environ`.

    It is started once a session, by the first test that asks (of each process of pytest-xdist,
    where there are several), and ends with it, with every process that it has started. Tests share
    what is registered there: give names of your own to what you register.

    Its environments and jobs run in processes of their own. For `python://module:attribute`, the
    module has to be one that `python` can import there: set `PYTHONPATH` before pytest starts.
    """
    with _needs("rleaas_server", "rleaas[server]"):
        from rleaas.server.local import LocalServer

    data_dir = tmp_path_factory.mktemp("rleaas")
    key = f"test_{secrets.token_hex(16)}"
    server = LocalServer(data_dir, api_key=key)
    server.start()  # after one Ctrl-C more, pytest may not come back here: it ends with the process
    try:
        yield Platform(server.url, key, data_dir)
    finally:
        server.stop(now=True)


@pytest.fixture
def rleaas_client(rleaas_server: Platform, monkeypatch: pytest.MonkeyPatch) -> Generator[Client]:
    """A `rleaas.Client` of `rleaas_server`.

    While the test runs, `RLEAAS_BASE_URL` and `RLEAAS_API_KEY` lead there too, past proxies and
    profiles: so do `rleaas://` addresses, commands, and clients that the code under test makes.
    """
    import httpx

    from rleaas import Client

    _lead_to(rleaas_server, monkeypatch)
    # A transport of its own asks no proxy for the way to this machine.
    transport = httpx.HTTPTransport()
    with Client(rleaas_server.api_key, rleaas_server.url, transport=transport) as client:
        yield client


@pytest.fixture
def rleaas_async_client(
    rleaas_server: Platform, monkeypatch: pytest.MonkeyPatch
) -> Generator[AsyncClient]:
    """A `rleaas.AsyncClient` of `rleaas_server`, for asyncio and trio, whatever runs the test.

    It sets the variables that `rleaas_client` sets.
    """
    import httpx
    from anyio.from_thread import start_blocking_portal

    from rleaas import AsyncClient

    _lead_to(rleaas_server, monkeypatch)
    # The loop of the test has ended when the client is closed here, so no connection may be left.
    transport = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_keepalive_connections=0))
    client = AsyncClient(rleaas_server.api_key, rleaas_server.url, transport=transport)
    yield client
    with start_blocking_portal() as portal:
        portal.call(client.aclose)


@pytest.fixture
def rlmesh_env_server() -> Generator[ServeEnvironment]:
    """Serve environments on free ports until the test ends: `rlmesh_env_server("CartPole-v1")`.

    What it returns is a `rlmesh.EnvServer`, whose `address` clients dial. See `ServeEnvironment`.
    """
    with _needs("rlmesh_env_server", "rleaas[mesh]"):
        from rlmesh import EnvServer
        from rlmesh.server.sources import load_factory

    with ExitStack() as servers:

        def serve(
            env: object, *, kwargs: Mapping[str, object] | None = None, **settings: Any
        ) -> EnvServer:
            if isinstance(env, str):
                env = load_factory(env, kwargs)
            elif kwargs is not None:
                raise TypeError("kwargs are for an environment that is given by its name")
            return servers.enter_context(EnvServer(env, **settings))

        yield serve


@contextmanager
def _needs(fixture: str, extra: str) -> Generator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "rleaas"):
            raise  # a fault of ours, and nothing to install
        raise pytest.fail.Exception(
            f'the fixture {fixture} needs {missing!r}: pip install "{extra}"', pytrace=False
        ) from None


def _lead_to(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in platform.environ.items():
        monkeypatch.setenv(name, value)
    # What a developer has set for another server, here and in the file of profiles, is not for it.
    for name in ("RLEAAS_PROFILE", "RLEAAS_TIMEOUT", "RLEAAS_RETRIES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RLEAAS_CONFIG", str(platform.data_dir / "config.toml"))
    # No proxy knows the way to this machine.
    host = urlsplit(platform.url).hostname or ""
    for name in ("NO_PROXY", "no_proxy"):
        others = os.environ.get(name)  # noqa: TID251 - proxies are no settings of ours
        if others != "*":
            monkeypatch.setenv(name, f"{others},{host}" if others else host)

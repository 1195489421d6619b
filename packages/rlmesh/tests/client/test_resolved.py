"""A client of a name comes back with a new token when the one it was given has ended."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rlcore import AccessDenied, Bearer, Endpoint, Secret, TokenRejected
from rlcore.resolvers import register, unregister
from rlmesh.numpy import RemoteEnv
from rlmesh.server.env_server import EnvServer

Serve = Callable[..., EnvServer]
NAME = "testing://Counter"
LONG_AGO = 1.0


class Registry:
    """Resolves a name to a server, each time with a new token: `token-1`, `token-2`, ..."""

    def __init__(self) -> None:
        self.address = ""
        self.server: Any = None
        self.expires_at: float | None = None
        self.given = 0
        self.ended: set[str] = set()

    def __call__(self, uri: str, *, timeout: float | None) -> Endpoint:
        self.given += 1
        token = Bearer(Secret(f"token-{self.given}"))
        return Endpoint(self.address, credential=token, expires_at=self.expires_at)

    def verify(self, key: Secret, token: str, *, subject: str | None, now: float) -> None:
        """Stand in for the server's check of a token."""
        if token in self.ended:
            raise TokenRejected("the token expired")


@pytest.fixture
def registry(serve: Serve, factory: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """What resolves NAME, to a server that believes it which tokens have ended."""
    made = Registry()
    monkeypatch.setattr("rlmesh.transport.access.verify_token", made.verify)
    made.server = serve(factory(), token_key="a key")
    made.address = made.server.address
    register("testing", made)
    yield made
    unregister("testing")


def test_a_token_that_ended_before_the_first_session_is_replaced(registry: Registry) -> None:
    with RemoteEnv(NAME) as env:
        registry.ended.add("token-1")
        env.reset()
        env.step(0)
    assert registry.given == 2


def test_a_token_known_to_have_ended_is_replaced_unasked(registry: Registry) -> None:
    registry.expires_at = LONG_AGO
    with RemoteEnv(NAME) as env:
        registry.expires_at = None
        env.reset()
        assert registry.given == 2
        env.reset()
    assert registry.given == 2


def test_a_session_outlives_the_token_it_was_opened_with(
    registry: Registry, eventually: Any
) -> None:
    with RemoteEnv(NAME, lane="local") as env:
        env.reset()
        env.step(0)
        registry.ended.add("token-1")
        (session,) = registry.server._service.sessions()
        session._carrier._end.socket.shutdown(socket.SHUT_RDWR)
        eventually(lambda: session.parked)
        assert env.step(0)[0].tolist() == [2, 1]
        assert registry.server._service.sessions() == [session]
    assert registry.given == 2


def test_one_new_token_is_tried_and_nobody_is_told_to_pass_another(registry: Registry) -> None:
    with RemoteEnv(NAME) as env:
        registry.ended |= {"token-1", "token-2"}
        with pytest.raises(AccessDenied, match="expired") as caught:
            env.reset()
        assert registry.given == 2
        assert "token=" not in str(caught.value)
        env.reset()
    assert registry.given == 3


def test_a_token_of_ones_own_is_not_replaced(registry: Registry) -> None:
    with RemoteEnv(NAME, token="mine") as env:
        registry.ended.add("mine")
        with pytest.raises(AccessDenied, match="Pass token="):
            env.reset()
    assert registry.given == 1

"""A socket on this machine that a server of another one might have named is not told the token."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rlcore import ServerUnreachable
from rlmesh.numpy import RemoteEnv
from rlmesh.server.env_server import EnvServer
from rlmesh.transport import frame_dial

Serve = Callable[..., EnvServer]


def somebody_else(_: object) -> int:
    return 4711


def test_another_users_socket_is_not_talked_to(
    monkeypatch: pytest.MonkeyPatch, serve: Serve, scripted: Any
) -> None:
    server = serve(scripted())
    with RemoteEnv(server, lane="local") as env:
        env.reset()
    monkeypatch.setattr(frame_dial, "_user_of", somebody_else)
    refused = pytest.raises(ServerUnreachable, match="another user's process answers there")
    with RemoteEnv(server, lane="local") as env, refused:
        env.reset()
    with RemoteEnv(server) as env:
        env.reset()


def test_a_socket_that_the_caller_named_is(
    monkeypatch: pytest.MonkeyPatch, serve: Serve, scripted: Any, folder: Path
) -> None:
    server = serve(scripted(), f"unix://{folder}/env.sock")
    monkeypatch.setattr(frame_dial, "_user_of", somebody_else)
    with RemoteEnv(server, lane="local") as env:
        env.reset()

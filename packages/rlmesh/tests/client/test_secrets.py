"""A token is in no text: not in an error with its causes, not in a log, not in a repr."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from rlcore import AccessDenied, ConfigurationError, Secret
from rlmesh.client.dialling import destination_of
from rlmesh.numpy import RemoteEnv
from rlmesh.server.env_server import EnvServer

Serve = Callable[..., EnvServer]
RIGHT = "the-right-token-of-the-server"
WRONG = "a-wrong-token-of-some-client"


def test_a_refused_token_is_in_no_error_and_no_log(
    serve: Serve, scripted: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server = serve(scripted(), token=RIGHT)
    with pytest.raises(AccessDenied) as caught:
        RemoteEnv(server, token=WRONG)
    with RemoteEnv(server, token=RIGHT) as env:
        env.reset()
        texts = [repr(server), repr(env), *map(repr, vars(env).values())]
    texts += ["".join(traceback.format_exception(caught.value)), caplog.text]
    for text in texts:
        assert RIGHT not in text
        assert WRONG not in text


def test_a_destination_shows_no_token() -> None:
    destination = destination_of(
        "127.0.0.1:1",
        host=None,
        port=None,
        path=None,
        transport=None,
        token=Secret(RIGHT),
        credential=None,
        expected_digest=None,
        declared_edition=None,
        connect_seconds=None,
        wait_seconds=0.0,
    )
    assert RIGHT not in repr(destination)


@pytest.mark.parametrize("token", ["with\nbreak", " sesame", "sesame ", "ü", "\x7f", "tab\t"])
def test_a_token_that_nobody_could_send_is_refused_without_being_shown(
    scripted: Any, token: str
) -> None:
    with pytest.raises(ConfigurationError, match="visible ASCII") as caught:
        EnvServer(scripted(), token=token)
    assert token not in "".join(traceback.format_exception(caught.value))


def test_the_variable_is_the_token_of_server_and_client(
    monkeypatch: pytest.MonkeyPatch, serve: Serve, scripted: Any
) -> None:
    monkeypatch.setenv("RLMESH_TOKEN", RIGHT)
    server = serve(scripted())
    with RemoteEnv(server) as env:
        env.reset()
    monkeypatch.delenv("RLMESH_TOKEN")
    with pytest.raises(AccessDenied, match="none was sent"):
        RemoteEnv(server)

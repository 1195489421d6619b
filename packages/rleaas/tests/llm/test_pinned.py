"""Chats with endpoints that somebody else named."""

from __future__ import annotations

import pytest
from rlcore import ModelFailed
from rleaas.llm import Chat, ModelEndpoint, Pinned, chat_of
from rleaas.llm import pinned as room

from .model_server import ModelServer, Said, model_server

ASKED = [{"role": "user", "content": "Hello?"}]
each_protocol = pytest.mark.parametrize("protocol", ["openai", "anthropic"])


def chat(server: ModelServer, protocol: str, host: str = "model.invalid") -> Chat:
    port = int(server.root.rpartition(":")[2])
    url = f"{protocol}:http://{host}:{port}" + ("/v1" if protocol == "openai" else "")
    pinned = Pinned("model.invalid", port, ("127.0.0.1",))
    return chat_of(ModelEndpoint(url=url, model="tiny"), pinned=pinned)


@each_protocol
def test_a_pinned_chat_reaches_the_address_that_was_looked_at(protocol: str) -> None:
    with model_server("Hello.") as server:
        # A name that nobody knows: it is not asked for again.
        assert chat(server, protocol).complete(ASKED, timeout=5).text == "Hello."
        assert server.requests[0].headers["Host"].startswith("model.invalid:")


@each_protocol
def test_a_pinned_chat_goes_nowhere_else(protocol: str) -> None:
    with model_server("Hello.") as server:
        with pytest.raises(ModelFailed):
            chat(server, protocol, "127.0.0.1").complete(ASKED, timeout=2)
        assert server.requests == []


@each_protocol
def test_a_pinned_chat_follows_no_redirect(protocol: str) -> None:
    with model_server("secret") as hidden:
        moved = Said(status=307, headers={"location": f"{hidden.root}/v1/chat/completions"})
        with model_server(moved) as server, pytest.raises(ModelFailed):
            chat(server, protocol).complete(ASKED, timeout=5)
        assert hidden.requests == []


@pytest.mark.parametrize(
    "said",
    [
        Said(body={"padding": "x" * 2_000}),
        Said("Hello.", headers={"content-encoding": "gzip"}),
    ],
)
def test_an_answer_that_is_too_large_or_compressed_is_not_read(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "LARGEST_REPLY", 1_000)
    with model_server(said) as server, pytest.raises(ModelFailed) as caught:
        chat(server, "openai").complete(ASKED, timeout=1)
    assert caught.value.reason in ("unreachable", "timeout")

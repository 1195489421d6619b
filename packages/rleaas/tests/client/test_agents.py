"""Agents: what is sent, what is made of the answers, and files that are really fetched."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from rlcore import (
    AgentNotFound,
    CheckpointCorrupted,
    ConfigurationError,
    UnexpectedReply,
)
from rleaas import AsyncClient, Client
from rleaas.models import Agent
from rleaas.resources.agent_handle import AgentResource
from rleaas.resources.agents import AgentsClient
from rleaas.testing import Answers, Offline, converse, reply

RECORD: dict[str, object] = {"id": "agent_1", "name": "a", "version": "v1"}


def agents() -> AgentsClient[Offline]:
    return AgentsClient(Offline())


def agent() -> AgentResource[Offline]:
    return AgentResource(Offline(), Agent.model_validate(RECORD))


def exporting(content: bytes, **told: object) -> Answers:
    url = "/api/checkpoints/c1/export?format=pytorch&sha256=x"
    return Answers(
        {
            "POST /api/agents/export": reply(
                {"download_url": url, "sha256": digest(b"weights"), **told}
            ),
            "GET /api/checkpoints/c1/export": reply(content),
        }
    )


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# defect: A-1
def test_registering_sends_every_field_as_json() -> None:
    talk = converse(
        agents().register("a", "", "registry/a:1", "custom", False, ["FinSim"], ["t1"]),
        [reply({**RECORD, "framework": "custom"})],
    )

    body: Any = talk.requests[0].json
    body.pop("id")
    assert body == {
        "name": "a",
        "base_model": "registry/a:1",
        "model_ref": "registry/a:1",
        "framework": "custom",
        "trainable": False,
        "compatible_categories": ["FinSim"],
        "tool_permissions": ["t1"],
    }
    assert talk.result.framework == "custom"


# defect: A-4
def test_one_agent_is_asked_for_by_its_own_path() -> None:
    talk = converse(agents().get("agent 1"), [reply(RECORD)])

    assert [request.path for request in talk.requests] == ["/api/agents/agent%201"]
    with pytest.raises(AgentNotFound) as caught:
        converse(agents().get("x"), [reply({"detail": "Agent not found", "kind": "agent"}, 404)])
    assert isinstance(caught.value, KeyError)


# defect: A-5
def test_an_envelope_is_opened_and_a_strange_answer_is_no_empty_list() -> None:
    assert len(converse(agents().list(), [reply([RECORD])]).result) == 1
    assert len(converse(agents().list(), [reply({"agents": [RECORD]})]).result) == 1
    for flow in (agents().list(), agents().list_versions("a"), agents().list_dry_runs("a")):
        with pytest.raises(UnexpectedReply):
            converse(flow, [reply({"items": []})])


def test_a_handle_follows_its_configuration() -> None:
    held = agent()

    converse(held.configure(temperature=0), [reply({**RECORD, "version": "v2", "temperature": 0})])
    assert (held.version, held["temperature"]) == ("v2", 0)
    talk = converse(held.rollback("v1"), [reply({**RECORD, "version": "v3"})])

    assert talk.requests[0].json == {"version": "v1"}
    assert held.version == "v3"


def test_a_format_or_framework_that_is_none_sends_nothing() -> None:
    for flow in (
        agents().export("c1", format="pickle"),
        agents().register("a", framework="home-made"),
    ):
        with pytest.raises(ConfigurationError, match="is not an"):
            converse(flow, [])


# defect: A-2
def test_an_export_is_downloaded_where_it_is_wanted(tmp_path: Path) -> None:
    answers = exporting(b"weights")
    with Client(base_url="http://localhost:1", transport=answers.transport) as client:
        in_directory = client.Agent.export("c1", format="pytorch", download_to=tmp_path)
        as_file = client.Agent.export("c1", download_to=tmp_path / "new" / "file.zip")

    assert in_directory.downloaded_to == str(tmp_path / "c1-pytorch.pt")
    for made in (in_directory, as_file):
        assert made.downloaded_to is not None
        assert Path(made.downloaded_to).read_bytes() == b"weights"
    assert answers.asked[1].url.params["sha256"] == "x"


@pytest.mark.anyio
async def test_awaiting_an_export_it_is_downloaded_too(tmp_path: Path) -> None:
    answers = exporting(b"weights")
    async with AsyncClient(base_url="http://localhost:1", transport=answers.transport) as client:
        made = await client.Agent.export("c1", download_to=tmp_path / "file.zip")

    assert made["downloaded_to"] == str(tmp_path / "file.zip")
    assert (tmp_path / "file.zip").read_bytes() == b"weights"


def test_other_bytes_than_were_promised_are_not_kept(tmp_path: Path) -> None:
    answers = exporting(b"something else")
    with (
        Client(base_url="http://localhost:1", transport=answers.transport) as client,
        pytest.raises(CheckpointCorrupted),
    ):
        client.Agent.export("c1", download_to=tmp_path / "file.zip")

    assert list(tmp_path.iterdir()) == []


def test_a_key_is_not_sent_to_another_host_for_a_file(tmp_path: Path) -> None:
    for told in ({"download_url": "https://elsewhere/file"}, {"sha256": None}):
        answers = exporting(b"weights", **told)
        with (
            Client(base_url="http://localhost:1", transport=answers.transport) as client,
            pytest.raises(UnexpectedReply, match="cannot be fetched and verified"),
        ):
            client.Agent.export("c1", download_to=tmp_path / "file.zip")
        assert len(answers.asked) == 1

"""Who may bring code into the server's account, and what that code is told."""

from __future__ import annotations

import socket

import httpx
import pytest
from rlcore import ConfigurationError, PermissionDeniedError
from rleaas.server.children import inherited
from rleaas.server.rules.sources import parse_source, require_permitted
from rleaas.server.settings import allows_code
from rleaas.server.store import environments
from rleaas.server.store.environments import Registration

from .conftest import Running, Start

TOP = "rleaas_sk_top_0123456789"
CODE = "python://subprocess:run"


def of_another_organisation(platform: Running) -> httpx.Client:
    body = {"name": "lab", "admin": "a@lab"}
    made = platform.ok(platform.http.post("/api/organisations", json=body))
    key = made["key"]
    assert isinstance(key, dict)
    bearer = str(key["key"])  # pyright: ignore[reportUnknownArgumentType]
    return httpx.Client(
        base_url=platform.server.url,
        headers={"Authorization": f"Bearer {bearer}"},
        trust_env=False,
        verify=False,
    )


@pytest.mark.parametrize(
    "source", [CODE, "gym://os:X-v0", "gym://GymV26Environment-v0", "unix:///run/e.sock"]
)
def test_code_is_taken_only_from_those_who_may_bring_it(source: str) -> None:
    require_permitted(parse_source(source), may_run_code=True)
    with pytest.raises(PermissionDeniedError) as caught:
        require_permitted(parse_source(source), may_run_code=False)

    assert caught.value.code == "code_not_allowed"
    assert "--allow-code" in str(caught.value.hint)


@pytest.mark.parametrize("source", [None, "gym://CartPole-v1", "gym://ALE/Pong-v5", "tcp://h:1"])
def test_what_is_no_code_is_taken_from_everybody(source: str | None) -> None:
    require_permitted(parse_source(source), may_run_code=False)


def test_another_organisation_can_neither_register_code_nor_turn_an_environment_into_it(
    start: Start,
) -> None:
    platform = start(api_key=TOP)
    with of_another_organisation(platform) as lab:
        made = lab.post("/api/custom-environments", json={"name": "E", "source": CODE})
        platform.ok(lab.post("/api/custom-environments", json={"name": "E"}))
        changed = lab.put("/api/custom-environments/E", json={"source": CODE})
        versions = lab.get("/api/environments/E/versions").json()["versions"]
    platform.register("Ours", source=CODE)

    refused = [(reply.status_code, reply.json()["code"]) for reply in (made, changed)]
    assert refused == [(403, "code_not_allowed")] * 2
    assert [one["source"] for one in versions] == [None]


def test_code_that_another_organisation_had_before_the_rule_is_not_started(start: Start) -> None:
    platform = start(api_key=TOP)
    with of_another_organisation(platform) as lab:
        organisation = platform.server.state.principals.find(
            lab.headers["authorization"].removeprefix("Bearer ")
        ).organisation_id
        with platform.server.state.database.write(organisation) as session:
            environments.upsert(session, Registration("Old", serves=True, source=CODE), None)
        reply = lab.get("/api/environments/Old/endpoint")
        shown = lab.get("/api/environments/Old").json()

    assert (reply.status_code, reply.json()["code"]) == (403, "code_not_allowed")
    assert platform.mesh.served == []
    assert shown["status"] == "registered"


def test_another_organisation_cannot_look_around_in_the_servers_network(start: Start) -> None:
    platform = start(api_key=TOP)
    told: list[str] = []
    with of_another_organisation(platform) as lab:
        for source in ("tcp://127.0.0.1:22", "tcp://[::1]:5000", "tcp://h"):
            lab.post("/api/custom-environments", json={"name": "Far", "source": source})
            told.append(lab.get("/api/environments/Far/endpoint").json()["detail"])
    platform.ready("Ours", source="tcp://127.0.0.1:22")

    assert "127.0.0.1, which is not a public address" in told[0]
    assert "::1, which is not a public address" in told[1]
    assert "names no port" in told[2]
    assert platform.mesh.dialled == ["tcp://127.0.0.1:22"]


def test_what_another_organisation_names_is_dialled_where_it_was_looked_at(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = start(api_key=TOP)
    resolved = socket.getaddrinfo
    public = "2606:4700::1111"

    def resolve(host: str, port: int, family: int = 0, type: int = 0) -> object:
        return resolved(public if host == "far.example" else host, port, family, type)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    source = "tcp://far.example:5000"
    with of_another_organisation(platform) as lab:
        lab.post("/api/custom-environments", json={"name": "Far", "source": source})
        grant = lab.get("/api/environments/Far/endpoint").json()

    assert grant["address"] == f"tcp://[{public}]:5000"
    assert platform.mesh.dialled == [grant["address"]]


def test_children_inherit_no_secret_of_the_server() -> None:
    secrets = ["RLEAAS_SERVER_API_KEY", "RLEAAS_DATABASE_URL", "RLEAAS_API_KEY", "RLMESH_TOKEN"]
    secrets += ["RLMESH_TOKEN_KEY", "PGPASSWORD"]

    assert inherited(dict.fromkeys([*secrets, "PATH", "RLEAAS_CACHE"], "x")) == {
        "PATH": "x",
        "RLEAAS_CACHE": "x",
    }


def test_the_operator_allows_code_by_argument_or_variable() -> None:
    assert allows_code(True, {})
    assert allows_code(False, {"RLEAAS_ALLOW_CODE": "1"})
    assert not allows_code(False, {"RLEAAS_ALLOW_CODE": "0"})
    with pytest.raises(ConfigurationError):
        allows_code(False, {"RLEAAS_ALLOW_CODE": "yes"})

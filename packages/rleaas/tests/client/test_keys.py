from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rlcore import AuthenticationError, ConfigurationError, ConflictError, NotFoundError
from rleaas import AsyncClient, Client
from rleaas.models.access import ApiKey, NewApiKey
from rleaas.resources.keys import KeysClient, ProfileClient
from rleaas.resources.organisations import OrganisationsClient
from rleaas.server.local import LocalServer
from rleaas.testing import Offline, converse, reply

TOP = "rleaas_sk_top_0123456789"
MADE = {"id": "7", "name": "ci", "prefix": "rleaas_sk_ab", "key": "rleaas_sk_abc"}


def test_a_key_is_asked_for_with_an_idempotency_key_and_only_what_was_said() -> None:
    talk = converse(KeysClient(Offline()).create("ci"), [reply(MADE)])

    (request,) = talk.requests
    assert (request.method, request.path, request.keyed) == ("POST", "/api/keys", True)
    assert request.json == {"name": "ci"}
    assert talk.result.key == "rleaas_sk_abc"
    assert "rleaas_sk_abc" not in repr(talk.result)


def test_everything_that_a_key_can_have_is_sent() -> None:
    ends = datetime(2030, 1, 1, tzinfo=UTC)
    keys = KeysClient(Offline())
    timed = keys.create(
        "ci", scopes=["read"], expires_in=timedelta(days=1), limits={"jobs": 2}, user="a@b"
    )
    talk = converse(timed, [reply(MADE)])
    assert talk.requests[0].json == {
        "name": "ci",
        "scopes": ["read"],
        "expires_in": 86_400.0,
        "limits": {"jobs": 2},
        "user": "a@b",
    }
    moment = converse(keys.create("ci", expires_at=ends), [reply(MADE)]).requests[0]
    assert moment.json == {"name": "ci", "expires_at": "2030-01-01T00:00:00+00:00"}
    with pytest.raises(ConfigurationError, match="time zone"):
        converse(keys.create("ci", expires_at=datetime(2030, 1, 1)), [])


# defect: S-1
def test_the_id_of_a_key_stays_one_segment() -> None:
    answer = reply({"revoked": True, "id": "a/b"})
    talk = converse(KeysClient(Offline()).revoke("a/b"), [answer])
    assert talk.requests[0].path == "/api/keys/a%2Fb"
    with pytest.raises(ConfigurationError):
        converse(KeysClient(Offline()).revoke(""), [])


# defect: F-22
def test_a_field_of_a_profile_can_be_emptied_and_left_alone() -> None:
    profile = ProfileClient(Offline())
    talk = converse(profile.update(title="", clear=["bio"]), [reply({"title": ""})])
    assert talk.requests[0].json == {"bio": None, "title": ""}
    with pytest.raises(ConfigurationError, match="'age' is not a field"):
        converse(profile.update(clear=["age"]), [])


@pytest.fixture
def server(tmp_path: Path, engine: str | None) -> Iterator[LocalServer]:
    with LocalServer(tmp_path, api_key=TOP, database_url=engine) as server:
        yield server


def test_a_key_is_made_used_and_revoked(server: LocalServer) -> None:
    with Client(TOP, server.url) as client:
        made = client.Keys.create("ci", idempotency_key="one")
        again = client.keys.create("ci", idempotency_key="one")
        with Client(again.key, server.url) as holder:
            me = holder.Keys.me()
            assert (me.key_id, me["org"], me.organisation) == (made.id, "default", "default")
            assert holder.profile.update(full_name="Ada").full_name == "Ada"
            assert holder.Profile.get()["full_name"] == "Ada"
            assert holder.Keys.sso_status().sso_enabled is False
            with pytest.raises(ConflictError):
                client.Keys.create("ci", idempotency_key="one")
            (listed,) = client.Keys.list()
            assert isinstance(listed, ApiKey)
            assert not isinstance(listed, NewApiKey)
            assert client.Keys.revoke(listed).revoked
            # defect: T-7
            with pytest.raises(AuthenticationError, match="revoked"):
                holder.Profile.get()
        with pytest.raises(NotFoundError) as missing:
            client.Keys.revoke("99")
    assert (missing.value.kind, missing.value.ref) == ("api_key", "99")


# defect: X-1
@pytest.mark.anyio
async def test_the_same_is_awaited(server: LocalServer) -> None:
    async with AsyncClient(TOP, server.url) as client:
        made = await client.keys.create("ci", scopes=["read"])
        assert [key.id for key in await client.Keys.list()] == [made.id]
        assert (await client.profile.get()).email == "operator@localhost"
        assert (await client.Keys.revoke(made.id)).revoked
        lab = await client.organisations.create("lab", admin="a@lab", limits={"jobs": 1})
        assert [one.email for one in await client.organisations.members(lab)] == ["a@lab"]


def test_an_organisation_is_run_by_its_admins(server: LocalServer) -> None:
    with Client(TOP, server.url) as client:
        made = client.organisations.create("a lab", admin="a@lab")
        assert client.organisations.get("a lab").id == made.id
        assert client.organisations.set_limits(made, {"jobs": 3}).limits == {"jobs": 3}
        with Client(made.key.key, server.url) as admin:
            assert [one.name for one in admin.organisations.list()] == ["a lab"]
            member = admin.organisations.put_member(made, "b@lab")
            assert (member.email, member.role) == ("b@lab", "member")
            theirs = admin.Keys.create("b", user="b@lab")
            admin.organisations.remove_member(made.id, member)
            with (
                Client(theirs.key, server.url) as gone,
                pytest.raises(AuthenticationError, match="revoked"),
            ):
                gone.Keys.me()
            with pytest.raises(NotFoundError):
                admin.organisations.get("default")


def test_the_path_of_a_member_is_escaped() -> None:
    flow = OrganisationsClient(Offline()).remove_member("a/b", "c/d")
    talk = converse(flow, [reply({"removed": True})])
    assert talk.requests[0].path == "/api/organisations/a%2Fb/members/c%2Fd"

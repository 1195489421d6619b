"""Keys and people at a server that asks for keys."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from rleaas.server.store.tables import ApiKeyRow
from sqlalchemy import update

from .conftest import Running, Start
from .test_events import until

TOP = "rleaas_sk_top_0123456789"


@pytest.fixture
def closed(start: Start) -> Running:
    return start(api_key=TOP)


def make(platform: Running, name: str = "k", **body: object) -> dict[str, object]:
    return platform.ok(platform.http.post("/api/keys", json={"name": name, **body}))


def with_key(platform: Running, key: object) -> httpx.Client:
    return httpx.Client(
        base_url=platform.server.url,
        headers={"Authorization": f"Bearer {key}"},
        trust_env=False,
    )


def test_a_new_key_opens_and_its_secret_is_never_told_again(closed: Running) -> None:
    made = make(closed, "ci")
    listing = closed.http.get("/api/keys")

    assert str(made["key"]).startswith("rleaas_sk_")
    assert made["scopes"] == ["read", "write"]
    (listed,) = listing.json()  # a bare array, which the published client wants
    assert listed == {name: value for name, value in made.items() if name != "key"}
    assert str(made["key"]) not in listing.text
    with with_key(closed, made["key"]) as http:
        assert http.get("/api/me").json() | {"limits": {}} == {
            "user_id": "operator",
            "email": "operator@localhost",
            "org": "default",
            "organisation_id": 1,
            "scopes": ["read", "write"],
            "key_id": made["id"],
            "limits": {},
            "expires_at": None,
        }
    (used,) = closed.http.get("/api/keys").json()
    assert used["last_used_at"] is not None


def test_a_revoked_key_is_refused_at_once(closed: Running) -> None:
    made = make(closed)
    with with_key(closed, made["key"]) as http:
        before = http.get("/api/environments")
        revoked = closed.ok(closed.http.delete(f"/api/keys/{made['id']}"))
        after = http.get("/api/environments")

    assert (before.status_code, after.status_code) == (200, 401)
    assert revoked == {"revoked": True, "id": made["id"]}
    assert "revoked" in after.json()["detail"]
    assert closed.http.get("/api/keys").json()[0]["is_active"] is False


def test_a_key_ends_when_it_expires(closed: Running) -> None:
    made = make(closed, expires_in=60)
    ends = datetime.fromisoformat(str(made["expires_at"]))
    assert 0 < (ends - datetime.now(UTC)).total_seconds() <= 60
    with with_key(closed, made["key"]) as http:
        assert http.get("/api/me").status_code == 200
        with closed.server.state.database.write() as session:
            # As if the minute had passed.
            sooner = ends - timedelta(seconds=60)
            session.execute(
                update(ApiKeyRow)
                .where(ApiKeyRow.id == int(str(made["id"])))
                .values(expires_at=sooner)
            )
        closed.server.state.principals.forget()
        after = http.get("/api/me")

    assert after.status_code == 401
    assert "expired" in after.json()["detail"]


def test_one_cannot_give_scopes_that_one_has_not(closed: Running) -> None:
    reader = make(closed, scopes=["read"])
    writer = make(closed, scopes=["write", "read"])
    with with_key(closed, reader["key"]) as http:
        assert http.post("/api/keys", json={"name": "x"}).status_code == 403
    with with_key(closed, writer["key"]) as http:
        refused = http.post("/api/keys", json={"name": "x", "scopes": ["admin"]})
        granted = http.post("/api/keys", json={"name": "x", "scopes": ["read"]})

    assert (refused.status_code, refused.json()["code"]) == (403, "scope_not_held")
    assert granted.json()["scopes"] == ["read"]


def test_a_key_gives_no_longer_life_and_no_wider_limits_than_its_own(closed: Running) -> None:
    made = make(closed, expires_in=600, limits={"environments": 3})
    with with_key(closed, made["key"]) as http:
        child = http.post("/api/keys", json={"name": "x", "expires_in": 86_400}).json()
        refused = http.post("/api/keys", json={"name": "x", "limits": {"environments": 9}})

    assert child["expires_at"] == made["expires_at"]
    assert child["limits"] == {"environments": 3.0}
    assert refused.status_code == 403


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": " "},
        {"name": "x", "scopes": []},
        {"name": "x", "scopes": ["everything"]},
        {"name": "x", "expires_in": 0},
        {"name": "x", "expires_at": "2020-01-01T00:00:00Z"},
        {"name": "x", "expires_at": "2099-01-01T00:00:00"},
        {"name": "x", "expires_in": 5, "expires_at": "2099-01-01T00:00:00Z"},
        {"name": "x", "limits": {"coffees": 1}},
        {"name": "x", "limits": {"environments": -1}},
    ],
)
def test_a_key_that_makes_no_sense_is_refused(closed: Running, body: dict[str, object]) -> None:
    reply = closed.http.post("/api/keys", json=body)

    assert reply.status_code in (400, 422), reply.text
    assert closed.http.get("/api/keys").json() == []


# defect: T-1
def test_repeating_a_request_for_a_key_makes_one_key(closed: Running) -> None:
    def ask(_: int) -> httpx.Response:
        return closed.http.post("/api/keys", json={"name": "x"}, headers={"Idempotency-Key": "i"})

    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(ask, range(16)))
    (only,) = closed.http.get("/api/keys").json()
    assert {reply.json()["id"] for reply in replies} == {only["id"]}
    # The last secret is the good one; nothing could be stored to tell the first again.
    secrets = {reply.json()["key"] for reply in replies}
    opened: list[str] = []
    for secret in secrets:
        with with_key(closed, secret) as http:
            if http.get("/api/me").status_code == 200:
                opened.append(secret)
    assert len(opened) == 1
    used = ask(0)
    assert (used.status_code, used.json()["code"]) == (409, "secret_was_told")


def test_a_member_sees_and_revokes_their_own_keys_only(closed: Running) -> None:
    closed.ok(closed.http.put("/api/organisations/default/members", json={"email": "a@lab"}))
    theirs = make(closed, "theirs", user="a@lab")
    mine = make(closed, "mine")
    with with_key(closed, theirs["key"]) as http:
        listed = [key["id"] for key in http.get("/api/keys").json()]
        refused = http.delete(f"/api/keys/{mine['id']}")
        own = http.delete(f"/api/keys/{theirs['id']}")

    assert listed == [theirs["id"]]
    assert (refused.status_code, refused.json()["detail"]) == (404, "Api key not found")
    assert own.status_code == 200


def test_of_several_fields_of_a_profile_each_is_kept_until_it_is_cleared(closed: Running) -> None:
    empty = closed.ok(closed.http.get("/api/profile"))
    closed.ok(closed.http.put("/api/profile", json={"full_name": "Ada", "bio": ""}))
    closed.ok(closed.http.put("/api/profile", json={"title": "Dr", "full_name": None}))
    kept = closed.ok(closed.http.get("/api/profile"))

    assert empty["full_name"] is None
    assert (kept["full_name"], kept["title"], kept["bio"]) == (None, "Dr", "")
    assert kept["email"] == "operator@localhost"


def test_it_says_plainly_that_nobody_signs_in_elsewhere(closed: Running) -> None:
    assert closed.ok(closed.http.get("/api/sso-status")) == {
        "sso_enabled": False,
        "provider": "",
        "domains": [],
    }


def test_what_is_done_with_keys_is_in_the_audit_chain(closed: Running) -> None:
    from rleaas.server.store import audit, audit_chain

    made = make(closed)
    closed.http.delete(f"/api/keys/{made['id']}")
    closed.http.delete(f"/api/keys/{made['id']}")

    with closed.server.state.database.read(1) as session:
        rows = audit.page(session, oldest_first=True)
        assert [row.action for row in rows] == ["key.created", "key.revoked"]
        assert str(made["key"]) not in repr([row.data for row in rows])
        assert audit_chain.verify(session) is None


def test_the_key_of_a_removed_member_ends_at_once(closed: Running) -> None:
    members = "/api/organisations/default/members"
    closed.ok(closed.http.put(members, json={"email": "a@lab", "role": "admin"}))
    key = make(closed, user="a@lab", scopes=["read", "admin"])["key"]
    closed.ok(closed.http.put(members, json={"email": "b@lab", "role": "admin"}))
    with with_key(closed, key) as http:
        assert http.get("/api/organisations").status_code == 200
        closed.ok(closed.http.put(members, json={"email": "a@lab", "role": "member"}))
        demoted = http.get("/api/organisations")
        last = closed.http.delete(f"{members}/b@lab")
        closed.ok(closed.http.delete(f"{members}/a@lab"))
        gone = http.get("/api/me")

    assert (demoted.status_code, gone.status_code) == (403, 401)
    assert (last.status_code, last.json()["code"]) == (409, "last_admin")


def test_an_organisation_begins_with_an_admin_who_sees_nothing_of_others(closed: Running) -> None:
    closed.register("Ours")
    made = closed.ok(closed.http.post("/api/organisations", json={"name": "lab", "admin": "a@lab"}))
    key = made["key"]
    assert isinstance(key, dict)
    with with_key(closed, key["key"]) as http:  # pyright: ignore[reportUnknownArgumentType]
        seen = http.get("/api/environments").json()["environments"]
        organisations = [
            one["name"] for one in http.get("/api/organisations").json()["organisations"]
        ]
        foreign = http.get("/api/organisations/default/members")
        create = http.post("/api/organisations", json={"name": "x", "admin": "x@x"})
        widen = http.put("/api/organisations/lab", json={"limits": {}})
        keys = http.get("/api/keys").json()

    assert (seen, organisations, len(keys)) == ([], ["lab"], 1)
    assert (foreign.status_code, create.status_code, widen.status_code) == (404, 403, 403)
    again = closed.http.post("/api/organisations", json={"name": "lab", "admin": "a@lab"})
    assert (again.status_code, again.json()["code"]) == (409, "name_taken")


def test_times_of_keys_are_told_with_their_zone(closed: Running) -> None:
    ends = datetime.now(UTC) + timedelta(days=3)
    made = make(closed, expires_at=ends.isoformat())

    assert datetime.fromisoformat(str(made["expires_at"])) == ends


ENDS = {
    "revoked": update(ApiKeyRow).values(is_active=False),
    "expired": update(ApiKeyRow).values(expires_at=datetime(2020, 1, 1, tzinfo=UTC)),
}


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("path", ["/api/events", "/api/training/jobs/{job}/log-page"])
def test_a_stream_ends_with_its_key_and_tells_nothing_more(
    start: Start, path: str, how: str
) -> None:
    closed = start(api_key=TOP, plan=[("until_cancelled", {})])
    closed.ready("A")
    path = path.format(job=closed.train("A"))
    accept = {"accept": "text/event-stream"}
    with (
        with_key(closed, make(closed)["key"]) as http,
        http.stream("GET", path, headers=accept, timeout=20) as reply,
    ):
        lines = reply.iter_lines()
        next(lines)
        with closed.server.state.database.write(1) as session:
            session.execute(ENDS[how])
        closed.server.state.principals.forget()
        make(closed, "secret happening")
        assert "secret happening" not in "".join(lines)


def test_a_stream_and_a_long_poll_end_when_the_member_is_removed(closed: Running) -> None:
    members = "/api/organisations/default/members"
    closed.ok(closed.http.put(members, json={"email": "a@lab"}))
    key = make(closed, user="a@lab")["key"]
    cursor = closed.ok(closed.http.get("/api/events"))["cursor"]
    waits = {"after": str(cursor), "wait_seconds": "25"}

    with (
        with_key(closed, key) as http,
        http.stream("GET", "/api/events", headers={"accept": "text/event-stream"}) as reply,
        ThreadPoolExecutor() as threads,
    ):
        lines = reply.iter_lines()
        next(lines)
        polled = threads.submit(http.get, "/api/events", params=waits, timeout=20)
        until(feed=closed.server.state.feed, waiting=2)
        closed.ok(closed.http.delete(f"{members}/a@lab"))
        assert not [line for line in lines if line.startswith("data:")]
        assert polled.result().status_code == 401

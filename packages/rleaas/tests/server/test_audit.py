import csv
import io
import json
from pathlib import Path
from typing import cast

import httpx
import pytest
from rleaas.server.denials import MOST_DIFFERENT, QUIET_SECONDS, Denial, Denials
from rleaas.server.store import audit
from rleaas.server.store.audit import ServerItself
from rleaas.server.store.audit_filters import Filters
from rleaas.server.store.database import Database

from .conftest import Running, Start

US = ServerItself(1, "me", "req_1")


def tell(running: Running, count: int, **facts: str) -> None:
    with running.server.state.database.write(1) as session:
        for number in range(count):
            audit.record(
                session, US, action="tool.registered", subject=f"tool:{number}", **facts, data={}
            )


def test_records_are_read_newest_first_in_pages(platform: Running) -> None:
    tell(platform, 5)
    before = audit_total(platform)

    first = platform.ok(platform.http.get("/api/audit", params={"limit": 2}))
    second = platform.ok(
        platform.http.get("/api/audit", params={"limit": 2, "cursor": str(first["cursor"])})
    )

    numbers = [one["number"] for one in Running.listed(first, "events")]
    numbers += [one["number"] for one in Running.listed(second, "events")]
    assert numbers == [before, before - 1, before - 2, before - 3]
    assert first["total"] == before


def audit_total(running: Running) -> int:
    with running.server.state.database.read(1) as session:
        return audit.count(session)


def test_a_limit_of_zero_is_every_record(platform: Running) -> None:
    tell(platform, 1203)

    everything = platform.ok(platform.http.get("/api/audit", params={"limit": 0}))
    rest = platform.ok(platform.http.get("/api/audit", params={"limit": 0, "offset": 1200}))

    assert len(Running.listed(everything, "events")) == audit_total(platform)
    assert [one["subject"] for one in Running.listed(rest, "events")][:2] == ["tool:2", "tool:1"]
    beyond = platform.ok(platform.http.get("/api/audit", params={"limit": 0, "offset": 9999}))
    assert beyond == {"events": []}


@pytest.mark.parametrize(
    ("params", "count"),
    [
        ({"environment_name": "a b/ü"}, 2),
        ({"event_types": "agent.deleted,tool"}, 2),
        ({"event_types": "agent"}, 0),
        ({"start_time": "2001-01-01T00:00:00Z", "subject": "tool:1"}, 1),
        ({"end_time": "2001-01-01T00:00:00"}, 0),
        ({"job_id": "job_1", "agent_id": "agent_1"}, 2),
        ({"actor": "me", "outcome": "allowed"}, 2),
        ({"outcome": "denied", "actor": "me"}, 0),
    ],
)
def test_records_are_filtered(platform: Running, params: dict[str, str], count: int) -> None:
    tell(platform, 2, environment_name="a b/ü", job_id="job_1", agent_id="agent_1")

    found = platform.ok(platform.http.get("/api/audit", params=params))

    assert len(Running.listed(found, "events")) == count


def test_records_about_an_environment_are_found_by_its_number(platform: Running) -> None:
    number = platform.register("Here")["id"]
    tell(platform, 2, environment_name="Here")

    found = platform.ok(
        platform.http.get("/api/audit", params={"environment_name": str(number), "actor": "me"})
    )

    assert len(Running.listed(found, "events")) == 2


def test_a_filter_that_is_no_time_is_refused(platform: Running) -> None:
    assert platform.http.get("/api/audit", params={"start_time": "soon"}).status_code == 422


# defect: A-3
def test_an_export_as_csv_is_csv_with_every_record_in_the_order_of_the_chain(
    platform: Running,
) -> None:
    """Defect A-3 is gone: the published export wrote JSON into a file called CSV."""
    tell(platform, 3, environment_name='=HYPERLINK("x")')

    reply = platform.http.get("/api/audit/export", params={"format": "csv", "actor": "me"})

    assert reply.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(reply.text)))
    assert [row["subject"] for row in rows] == ["tool:0", "tool:1", "tool:2"]
    assert json.loads(rows[0]["details"]) == {}
    assert rows[0]["environment_name"].startswith("'=")


def test_an_export_as_json_is_an_array_of_the_filtered_records(platform: Running) -> None:
    tell(platform, 2)

    reply = platform.http.get("/api/audit/export", params={"subject": "tool:1"})
    nothing = platform.http.get("/api/audit/export", params={"subject": "none"})

    assert [one["subject"] for one in reply.json()] == ["tool:1"]
    assert nothing.json() == []


def test_one_record_is_read_by_its_id_and_a_missing_one_is_said_to_be_missing(
    platform: Running,
) -> None:
    tell(platform, 1)
    listed = Running.listed(platform.ok(platform.http.get("/api/audit")), "events")[0]

    assert platform.ok(platform.http.get(f"/api/audit/{listed['id']}")) == listed
    missing = platform.http.get("/api/audit/evt_none")
    assert (missing.status_code, missing.json()["detail"]) == (404, "Audit event not found")


def test_the_chain_is_verified_and_a_change_in_the_database_shows(platform: Running) -> None:
    tell(platform, 3)
    good = platform.ok(platform.http.get("/api/audit/verify"))
    with platform.server.state.database.write(1) as session:
        row = audit.page(session, Filters(subject="tool:1"))[0]
        row.actor = "nobody"

    bad = platform.ok(platform.http.get("/api/audit/verify"))

    assert (good["valid"], good["problem"]) == (True, None)
    assert (bad["valid"], bad["number"], bad["problem"]) == (
        False,
        row.number,
        "its content does not have its digest",
    )


def test_a_request_without_a_valid_key_is_recorded_once_with_its_count(start: Start) -> None:
    running = start(api_key="right")
    for _ in range(5):
        reply = httpx.get(f"{running.server.url}/api/environments/E", trust_env=False)
        assert reply.status_code == 401
    running.server.state.denials.flush(everything=True)

    found = platform_denials(running)

    assert sum(times_of(one) for one in found) == 5
    assert len(found) <= 2
    assert found[0]["subject"] == "GET /api/environments/{env}"
    assert str(found[0]["actor"]).startswith("unknown at 127.0.0.1")


def platform_denials(running: Running) -> list[dict[str, object]]:
    reply = running.http.get("/api/audit", params={"outcome": "denied"})
    return Running.listed(Running.ok(reply), "events")


def times_of(event: dict[str, object]) -> int:
    details = cast("dict[str, int]", event["details"])
    return details["times"]


@pytest.fixture
def database(tmp_path: Path) -> Database:
    database = Database(tmp_path / "rleaas.db")
    database.migrate()
    return database


def denial(subject: str) -> Denial:
    return Denial(1, "unknown", subject, 401, "authentication", "no key")


def recorded(database: Database) -> list[tuple[str, object]]:
    with database.read(1) as session:
        return [(row.subject, row.data["times"]) for row in audit.page(session, limit=None)]


def test_a_flood_of_refusals_becomes_few_records(database: Database) -> None:
    now = 0.0
    denials = Denials(database, lambda: now)
    denials.note(denial("GET /a"), None)
    denials.flush()
    for _ in range(1000):
        denials.note(denial("GET /a"), None)
    denials.flush()
    assert recorded(database) == [("GET /a", 1)]

    now = QUIET_SECONDS
    denials.flush()
    assert recorded(database) == [("GET /a", 1000), ("GET /a", 1)]

    now = 3 * QUIET_SECONDS
    denials.flush()
    for number in range(MOST_DIFFERENT + 50):
        denials.note(denial(f"GET /{number}"), None)
    denials.flush()
    assert recorded(database)[0] == ("other requests", 50)
    assert len(recorded(database)) == 2 + MOST_DIFFERENT + 1


def test_refusals_that_could_not_be_recorded_are_recorded_later(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    denials = Denials(database, lambda: 0.0)
    denials.note(denial("GET /a"), None)

    def full(*_: object, **__: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(audit, "record", full)
        with pytest.raises(OSError, match="disk full"):
            denials.flush()
    denials.note(denial("GET /a"), None)
    denials.flush()

    assert recorded(database) == [("GET /a", 2)]

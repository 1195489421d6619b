"""What those who run a server see of it, and several servers of one database."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from rleaas.server.store import leases
from rleaas.server.store.tables import EventRow, JobRow, LeaseRow
from sqlalchemy import select

from .conftest import MakeDatabase, Running, Start

TOP = "rleaas_sk_top_0123456789"


def test_probes_need_no_key(start: Start) -> None:
    platform = start(api_key=TOP)
    for path in ("/healthz", "/readyz"):
        assert httpx.get(platform.server.url + path, trust_env=False).status_code == 200


def test_a_server_that_cannot_work_says_that_it_is_not_ready(platform: Running) -> None:
    platform.server.state.scheduler.stop()
    reply = platform.http.get("/readyz")

    assert (reply.status_code, reply.json()["code"]) == (503, "not_ready")
    assert "scheduler" in reply.json()["detail"]
    assert platform.http.get("/healthz").status_code == 200


def test_figures_name_routes_by_their_template_and_count_rows(platform: Running) -> None:
    platform.ready("E")
    platform.finished("training", platform.train("E"))
    platform.http.get("/nowhere/at/all")
    text = platform.http.get("/metrics").text

    assert 'rleaas_jobs{kind="training",status="completed"} 1.0' in text
    assert "rleaas_environments 1.0" in text
    line = 'rleaas_http_requests_total{method="GET",route="/api/environments/{env}",status="200"}'
    assert line in text
    assert 'route="none",status="404"} 1.0' in text
    assert "rleaas_http_request_seconds_bucket" in text


def test_the_figures_of_the_server_are_not_for_other_organisations(start: Start) -> None:
    platform = start(api_key=TOP)
    body = {"name": "lab", "admin": "a@lab"}
    made = platform.http.post("/api/organisations", json=body).json()
    headers = {"Authorization": f"Bearer {made['key']['key']}"}

    assert platform.http.get("/metrics", headers=headers).status_code == 403
    assert httpx.get(f"{platform.server.url}/metrics", trust_env=False).status_code == 401


def test_each_request_is_logged_with_its_id_and_without_its_key(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    platform = start(api_key=TOP)
    with caplog.at_level(logging.INFO, "rleaas.server.access"):
        platform.http.get(f"/api/environments/{TOP}", headers={"X-Request-Id": "mine"})
        platform.server.stop()

    (record,) = [one for one in caplog.records if getattr(one, "request_id", "") == "mine"]
    assert vars(record)["status"] == 404
    assert TOP not in record.getMessage()


@pytest.mark.parametrize("alive", [True, False])
def test_jobs_of_a_server_that_died_are_adopted_or_begun_again(start: Start, alive: bool) -> None:
    platform = start(plan=[("until_cancelled", {})])
    platform.ready("E")
    lost, mine = platform.train("E"), platform.train("E")
    for job in (lost, mine):
        platform.http.get(f"/api/training/jobs/{job}/log-page", params={"wait_seconds": 10})
    state = platform.server.state
    with state.database.write() as session:
        row = session.get_one(JobRow, lost)
        row.holder = "another"
        row.worker = (
            row.worker if alive else (row.worker or "").replace('"began": "', '"began": "1')
        )
        session.add(LeaseRow(name="server:another", holder="another", expires_at=_in(60)))

    state.scheduler.look_after_leases()
    assert _row(platform, lost).holder == "another"
    with state.database.write() as session:
        session.get_one(LeaseRow, "server:another").expires_at = _in(-1)
    state.scheduler.look_after_leases()

    while (row := _row(platform, lost)).holder != state.holder:
        time.sleep(0.02)
    assert (row.status, row.attempts) == ("running", 1 if alive else 2)
    assert _row(platform, mine).attempts == 1
    for job in (lost, mine):
        platform.http.post(f"/api/training/jobs/{job}/cancel")
        assert platform.finished("training", job) == "cancelled"


def _in(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def _row(platform: Running, job_id: str) -> JobRow:
    with platform.server.state.database.read() as session:
        return session.get_one(JobRow, job_id)


@pytest.mark.slow
def test_of_several_servers_of_one_database_one_runs_each_job(
    start: Start, postgresql: MakeDatabase
) -> None:
    url = postgresql()
    first = start(database_url=url, max_workers=1)
    second = start(database_url=url, max_workers=1)
    first.ready("E")
    second.ok(second.http.get("/api/environments/E/endpoint"))
    jobs = [(first, second)[number % 2].train("E") for number in range(8)]
    assert {second.finished("training", job) for job in jobs} == {"completed"}

    with first.server.state.database.read() as session:
        holders = {session.get_one(JobRow, job).holder for job in jobs}
        launched = session.scalars(select(EventRow).where(EventRow.kind == "launched")).all()
    assert sorted(event.subject for event in launched) == sorted(f"job:{job}" for job in jobs)
    assert holders <= {one.server.state.holder for one in (first, second)}

    second.server.stop()
    with first.server.state.database.read() as session:
        assert leases.alive(session) == {first.server.state.holder}

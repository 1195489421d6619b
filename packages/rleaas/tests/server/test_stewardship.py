"""What a server does with what it was entrusted: fields, files, secrets and tokens."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from rlcore import ConfigurationError, mint_token
from rleaas.server.job_logs import JobLogs
from rleaas.server.keys import ServerKeys
from rleaas.server.report_files import ReportFiles
from rleaas.server.retention import Retention
from rleaas.server.rules.worker_tokens import worker_subject
from rleaas.server.secret_check import require_own_secret
from rleaas.server.store import events, governance
from rleaas.server.store.database import Database
from rleaas.server.store.tables import JobRow, KpiRow, OrganisationRow, RolloutRow
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from .conftest import Running, Start

EPISODE: dict[str, object] = {
    "index": 0,
    "seed": 1,
    "reward": 2.0,
    "steps": 3,
    "outcome": "success",
    "info": {"email": "ada@lab.example", "step": [{"Email": "b@c"}]},
}
LONG_AGO = datetime.now(UTC) - timedelta(days=400)


def test_a_masked_field_of_an_episode_is_kept_nowhere(start: Start) -> None:
    plan = [
        ("checkpoint", {"episode": 1, "avg_reward": 1.0, "content": "x"}),
        ("completed", {"email": "ada@lab.example", "success_rate": 1.0}),
    ]
    platform = start(plan=plan)
    platform.ready("E")
    given = {"pii_fields": ["email"]}
    platform.ok(platform.http.post("/governance/configure", json=given))
    job = platform.train("E")
    assert platform.finished("training", job) == "completed"
    evaluation = evaluate(platform, f"ckpt_{job}_1")
    batch = {"seq": 1, "reports": [{"type": "episode", "data": EPISODE}]}
    with worker(platform, "evaluation", evaluation) as http:
        assert platform.ok(http.post("/reports", json=batch))["accepted"] is True

    with platform.server.state.database.read() as session:
        kept = [
            *(row.data for row in session.scalars(select(RolloutRow))),
            *(row.data for row in events.about(session, f"job:{evaluation}", ["episode"])),
        ]
        results = session.get_one(JobRow, job).results
    assert len(kept) == 2
    assert "ada@" not in repr(kept) + repr(results)
    assert "b@c" not in repr(kept)
    assert results["success_rate"] == 1.0
    told = platform.http.get(f"/api/evaluations/{evaluation}/report").text
    assert "[masked]" in told


def evaluate(platform: Running, checkpoint: str) -> str:
    """An evaluation that nothing works on but the test itself."""
    platform.server.state.scheduler.stop()
    body = {"agent_checkpoint_id": checkpoint, "environment_name": "E", "episodes": 1}
    evaluation = str(platform.ok(platform.http.post("/api/evaluations", json=body))["id"])
    with platform.server.state.database.write() as session:
        row = session.get_one(JobRow, evaluation)
        row.status, row.attempts = "running", 1
    return evaluation


def worker(platform: Running, kind: str, job_id: str) -> httpx.Client:
    token = mint_token(
        platform.server.state.keys.workers,
        subject=worker_subject(kind, job_id),
        expires_at=time.time() + 60,
    )
    return httpx.Client(
        base_url=f"{platform.server.url}/api/worker/{kind}/{job_id}",
        headers={"authorization": f"Bearer {token}"},
        trust_env=False,
    )


def test_the_token_of_a_worker_reads_and_ends_with_its_job(start: Start) -> None:
    platform = start(api_key="rleaas_sk_top_0123456789")
    platform.ready("E")
    job = platform.train("E")
    assert platform.finished("training", job) == "completed"
    here = platform.server.url
    with worker(platform, "training", job) as http:
        assert http.get(f"{here}/api/environments/E/endpoint").status_code == 200
        assert http.post(f"{here}/api/environments/E/stop").status_code in (401, 403)
        assert http.get(f"{here}/api/keys").status_code in (401, 403)
        with platform.server.state.database.write() as session:
            session.get_one(JobRow, job).completed_at = LONG_AGO
        platform.server.state.principals.forget()
        assert http.get(f"{here}/api/environments/E/endpoint").status_code == 401


def test_the_token_of_an_endpoint_is_for_one_version_and_soon_over(platform: Running) -> None:
    platform.ready("E")
    told = platform.ok(platform.http.get("/api/environments/E/endpoint"))

    assert isinstance(told["expires_at"], float)
    assert 0 < told["expires_at"] - time.time() <= 3600


def test_reports_and_figures_that_are_too_old_are_removed(
    database_place: Path | str, tmp_path: Path
) -> None:
    database = Database(database_place)
    database.migrate()
    reports = ReportFiles(tmp_path / "reports", lambda _: "unsigned")
    old, new = (reports.keep(1, "json", text) for text in (b"old", b"new"))
    other = reports.keep(2, "json", b"of another organisation")
    for one, organisation in ((old, 1), (other, 2)):
        then = LONG_AGO.timestamp()
        os.utime(reports.find(organisation, one.name), (then, then))
    with database.write() as session:
        session.add(OrganisationRow(id=2, name="lab", limits={}, created_at=LONG_AGO))
    with database.write(1) as session:
        governance.configure(session, None, {"data_retention_days": 30})
        for at in (LONG_AGO, datetime.now(UTC)):
            session.add(KpiRow(checkpoint_id=None, figures={}, at=at))
    retention = Retention(database, JobLogs(tmp_path / "logs"), reports)

    assert retention.step() is False

    with database.read() as session:
        assert [row.at.year for row in session.scalars(select(KpiRow))] == [datetime.now(UTC).year]
    left = sorted(path.name for path in (tmp_path / "reports").rglob("report_*"))
    assert left == sorted([new.name, other.name])
    database.close()


def test_servers_of_one_database_have_one_secret(
    database_place: Path | str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = Database(database_place)
    database.migrate()
    mine, other = ServerKeys(tmp_path / "a" / "server.key"), ServerKeys(tmp_path / "b" / "x.key")
    require_own_secret(database, mine)
    require_own_secret(database, mine)
    if database.is_sqlite:
        require_own_secret(database, other)
        assert "server.key is not the one" in caplog.text
    else:
        with pytest.raises(ConfigurationError) as refused:
            require_own_secret(database, other)
        assert refused.value.code == "another_secret"
    database.close()


def test_what_is_not_offered_is_no_error_of_the_server(
    platform: Running, caplog: pytest.LogCaptureFixture
) -> None:
    made = platform.ok(
        platform.http.post("/api/verifiers", json={"name": "v", "type": "human_evaluation"})
    )
    reply = platform.http.post(f"/api/verifiers/{made['id']}/test", json={})

    assert reply.status_code == 501
    assert [one for one in caplog.records if one.levelname == "ERROR"] == []


def test_a_statement_that_fails_does_not_tell_what_was_to_be_stored(
    database_place: Path | str,
) -> None:
    database = Database(database_place)
    database.migrate()
    with pytest.raises(IntegrityError) as failure, database.write() as session:
        session.add(OrganisationRow(id=1, name="hunter2", limits={}, created_at=LONG_AGO))
    database.close()

    assert "INSERT" in str(failure.value)
    assert "hunter2" not in str(failure.value)

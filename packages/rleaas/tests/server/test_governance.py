from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rlcore import InvalidRequestError
from rleaas.server.job_logs import JobLogs
from rleaas.server.retention import Retention
from rleaas.server.rules import governance as rules
from rleaas.server.store import audit, audit_chain, environments, events, governance, jobs
from rleaas.server.store.audit import ServerItself
from rleaas.server.store.audit_filters import Filters
from rleaas.server.store.database import Database
from rleaas.server.store.environments import Registration
from rleaas.server.store.tables import AuditRow, EventRow, JobRow, RolloutRow
from sqlalchemy import select, update

from .conftest import Running, Start

METRICS: tuple[tuple[str, dict[str, float]], ...] = (
    ("started", {}),
    ("metric", {"episode": 1, "avg_reward": 500.0}),  # one lucky episode is no peak
    ("metric", {"episode": 10, "avg_reward": 100.0}),
    ("metric", {"episode": 11, "avg_reward": 60.0}),
    ("metric", {"episode": 12, "avg_reward": 20.0}),
)
LONG_AGO = datetime.now(UTC) - timedelta(days=100)


def test_configuring_merges_and_null_takes_a_setting_back() -> None:
    first = rules.merged({}, {"data_retention_days": 30, "alert_thresholds": {"pass_rate_min": 1}})
    second = rules.merged(
        first, {"alert_thresholds": {"avg_reward_drop": 5}, "stop_on_alert": True}
    )
    third = rules.merged(
        second, {"data_retention_days": None, "alert_thresholds": {"pass_rate_min": None}}
    )

    assert second["alert_thresholds"] == {"pass_rate_min": 1, "avg_reward_drop": 5}
    assert third == {"alert_thresholds": {"avg_reward_drop": 5}, "stop_on_alert": True}


@pytest.mark.parametrize(
    "given",
    [
        {"data_retention_days": 0},
        {"data_retention_days": True},
        {"pii_fields": "email"},
        {"pii_fields": [1]},
        {"compliance_tags": {"a": 1}},
        {"alert_thresholds": [1]},
        {"alert_thresholds": {"unknown": 1}},
        {"alert_thresholds": {"pass_rate_min": "high"}},
        {"stop_on_alert": "yes"},
        {"anything": {"a": 1}},
        {"max_risk_threshold": float("nan")},
        {"max_risk_threshold": 2},
        {"override_actions": {"a": 1}},
        {"alert_thresholds": {"avg_reward_drop": -1}},
        {"alert_thresholds": {"pass_rate_min": 1.5}},
        {"pii_fields": [""]},
        {"pii_fields": [" "]},
        {"pii_fields": ["a" * 201]},
        {"pii_fields": [str(number) for number in range(100_000)]},
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_by_name(given: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError, match=next(iter(given))):
        rules.merged({}, given)


def test_an_environment_cannot_unmask_what_the_platform_masks() -> None:
    found = rules.effective({"pii_fields": ["email"]}, {"pii_fields": ["name", "email"]})

    assert found["pii_fields"] == ["email", "name"]
    assert rules.masked(
        {"Email": "a@b", "steps": [{"NAME": {"first": "A"}, "n": 1}]}, ["email", "name"]
    ) == {"Email": rules.MASK, "steps": [{"NAME": rules.MASK, "n": 1}]}


def test_the_share_of_failed_compliance_checks_counts_checks_only() -> None:
    checks = [
        {"type": "compliance", "passed": False},
        {"compliance_tags": ["aml"], "passed": True},
        {"type": "rule_based", "passed": False},
    ]

    assert rules.compliance_fail_rate(checks, ["AML"]) == 0.5
    assert rules.compliance_fail_rate(checks[2:], ["AML"]) is None
    alerts = rules.alerts_of_result(
        {"alert_thresholds": {"pass_rate_min": 0.9, "compliance_fail_rate_max": 0.1}}, 0.5, 0.5
    )
    assert [alert.threshold for alert in alerts] == ["pass_rate_min", "compliance_fail_rate_max"]
    assert [rules.stops({"compliance_hard_stop": True}, one) for one in alerts] == [False, True]


def test_governance_is_set_and_read_for_the_platform_and_for_an_environment(
    platform: Running,
) -> None:
    platform.register("A")
    ok, http = platform.ok, platform.http
    assert ok(http.get("/governance"))["data_retention_days"] is None
    ok(http.post("/governance/configure", json={"data_retention_days": 9, "pii_fields": ["a"]}))
    applied = ok(
        http.post("/governance/configure", json={"environment_name": "A", "pii_fields": ["b"]})
    )

    both = ok(http.get("/governance"))
    mine = ok(http.get("/governance", params={"environment_name": "A"}))

    assert (applied["success"], applied["config"]) == (True, {"pii_fields": ["b"]})
    assert (both["data_retention_days"], both["configs"]) == (9, {"A": {"pii_fields": ["b"]}})
    assert (mine["pii_fields"], mine["data_retention_days"]) == (["a", "b"], 9)
    assert http.post("/governance/configure", json={}).status_code == 200
    missing = http.post("/governance/configure", json={"environment_name": "None"})
    assert missing.status_code == 404
    recorded = Running.listed(ok(http.get("/api/audit?event_types=governance")), "events")
    assert len(recorded) == 3


def test_the_same_key_configures_once(platform: Running) -> None:
    for _ in range(2):
        reply = platform.http.post(
            "/governance/configure",
            json={"pii_fields": ["a"]},
            headers={"Idempotency-Key": "k"},
        )
        assert reply.json()["config"] == {"pii_fields": ["a"]}
    recorded = platform.ok(platform.http.get("/api/audit?event_types=governance"))
    assert recorded["total"] == 1


def test_governance_hides_nothing_of_what_is_audited(platform: Running) -> None:
    fields = {"pii_fields": ["given", "pii_fields", "n"]}
    platform.ok(platform.http.post("/governance/configure", json=fields))
    with platform.server.state.database.write(1) as session:
        row = audit.record(session, ServerItself(1), action="x.y", subject="x:1", data={"n": 1})
        first = audit.page(session, Filters(event_types=("governance",)))[0]

    assert row.data == {"n": 1}
    assert first.data == {"given": fields}


def test_governance_is_set_by_admins_only(start: Start) -> None:
    running = start(api_key="rleaas_sk_top_0123456789")
    key = running.ok(running.http.post("/api/keys", json={"name": "w", "scopes": ["write"]}))["key"]
    reply = running.http.post(
        "/governance/configure",
        json={"data_retention_days": 1},
        headers={"Authorization": f"Bearer {key}"},
    )

    assert (reply.status_code, reply.json()["code"]) == (403, "permission_denied")
    assert running.ok(running.http.get("/governance"))["data_retention_days"] is None


def test_a_reward_that_falls_raises_one_alert_and_stops_the_job(start: Start) -> None:
    running = start(plan=[*METRICS, ("until_cancelled", {})])
    running.ready()
    running.ok(
        running.http.post(
            "/governance/configure",
            json={
                "environment_name": "CartPole",
                "alert_thresholds": {"avg_reward_drop": 50},
                "stop_on_alert": True,
            },
        )
    )
    job_id = running.train()

    assert running.finished(jobs.TRAINING, job_id) == "cancelled"

    with running.server.state.database.read(1) as session:
        told = events.about(session, f"job:{job_id}", ["reward_collapse_alert"])
        recorded = audit.page(session, Filters(event_types=("alert",)))
    assert [one.data["value"] for one in told] == [80.0]
    assert [one.job_id for one in recorded] == [job_id]


def test_a_threshold_alone_raises_an_alert_and_stops_nothing(start: Start) -> None:
    running = start(plan=[*METRICS, ("completed", {"results": {"success_rate": 0.25}})])
    running.ready()
    running.ok(
        running.http.post(
            "/governance/configure",
            json={"alert_thresholds": {"avg_reward_drop": 30, "pass_rate_min": 0.5}},
        )
    )
    job_id = running.train()

    assert running.finished(jobs.TRAINING, job_id) == "completed"

    with running.server.state.database.read(1) as session:
        told = events.about(session, f"job:{job_id}", ["reward_collapse_alert", "alert"])
    assert [(one.data["threshold"], one.data["value"]) for one in told] == [
        ("avg_reward_drop", 40.0),
        ("pass_rate_min", 0.25),
    ]


def job_on(database: Database, name: str, status: str) -> str:
    with database.write(1) as session:
        version, _ = environments.upsert(session, Registration(name), None)
        row = jobs.create(
            session,
            audit.ServerItself(1),
            jobs.TRAINING,
            version,
            {},
            name=None,
            idempotency=None,
        )
        row.status, row.completed_at = status, LONG_AGO
        session.add(
            RolloutRow(
                id=f"roll_{name}",
                environment_id=version.environment_id,
                episode=0,
                status="completed",
                total_steps=1,
                data={},
                created_at=LONG_AGO,
            )
        )
        return row.id


def test_what_is_too_old_is_removed_and_the_rest_stays_with_a_chain_that_verifies(
    database: Database, tmp_path: Path
) -> None:
    logs = JobLogs(tmp_path / "logs")
    ended, kept, goes_on = (
        job_on(database, "Old", "completed"),
        job_on(database, "Kept", "completed"),
        job_on(database, "Busy", "running"),
    )
    for job_id in (ended, kept, goes_on):
        logs.append(job_id, ["a line"])
    with database.write(1) as session:
        events.add(session, "tool:1", "registered", {})
        for _ in range(3):
            audit.record(session, ServerItself(1), action="x.y", subject="x:1")
        for row in session.scalars(select(AuditRow).order_by(AuditRow.number)):
            row.at = LONG_AGO
            last = audit.page(session, limit=1, before=row.number)
            row.previous = last[0].digest if last else audit_chain.START
            row.digest = audit_chain.digest_of(row)
            session.flush()
        session.execute(update(EventRow).values(at=LONG_AGO))
        governance.configure(session, None, {"data_retention_days": 30})
        environment = environments.find(session, "Kept")
        governance.configure(session, environment, {"data_retention_days": 90})
    retention = Retention(database, logs)

    assert retention.step() is False
    with database.write(1) as session:
        governance.configure(session, environments.find(session, "Kept"), {"pii_fields": ["a"]})

    with database.read(1) as session:
        assert session.scalars(select(EventRow.subject)).all() == [f"job:{goes_on}"]
        assert session.scalars(select(RolloutRow.id)).all() == []
        assert len(session.scalars(select(JobRow.id)).all()) == 3
        actions = [row.action for row in audit.page(session, oldest_first=True)]
        assert actions == ["x.y", "audit.purged", "data.purged"]
        assert audit_chain.verify(session) is None
    assert [logs.exists(job_id) for job_id in (ended, kept, goes_on)] == [False, False, True]
    assert retention.step() is False


def test_an_environment_may_keep_for_longer_than_the_platform(
    database: Database, tmp_path: Path
) -> None:
    logs = JobLogs(tmp_path / "logs")
    kept = job_on(database, "Kept", "completed")
    logs.append(kept, ["a line"])
    with database.write(1) as session:
        session.execute(update(EventRow).values(at=LONG_AGO))
        governance.configure(session, None, {"data_retention_days": 30})
        environment = environments.find(session, "Kept")
        governance.configure(session, environment, {"data_retention_days": 365})

    Retention(database, logs).step()

    with database.read(1) as session:
        assert session.scalars(select(EventRow.subject)).all() == [f"job:{kept}"]
        assert session.scalars(select(RolloutRow.id)).all() == ["roll_Kept"]
    assert logs.exists(kept)

"""What a worker may report: what nobody could read is refused, and what was kept is not shown."""

from datetime import UTC, datetime, timedelta

import httpx
import pytest
from rleaas import Client
from rleaas.server.rules.cards import metrics_of
from rleaas.server.rules.json_values import number
from rleaas.server.rules.report_facts import problem_at, problem_in, sound
from rleaas.server.store import jobs
from rleaas.server.store.tables import JobRow

from .conftest import Running
from .test_worker_routes import at_work, put

__all__ = ["at_work"]
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "data", "field"),
    [
        ("metric", {"episode": 10**25}, "data.episode"),
        ("metric", {"episode": -1}, "data.episode"),
        ("metric", {"avg_reward": 1.0}, "data.episode"),
        ("metric", {"episode": 1, "avg_reward": "<script>"}, "data.avg_reward"),
        ("metric", {"episode": 1, "avg_reward": 10**400}, "data.avg_reward"),
        ("metric", {"episode": 1, "success_rate": 1.5}, "data.success_rate"),
        ("metric", {"episode": 1, "timestep": 10**40}, "data.timestep"),
        ("metric", {"episode": 1, "metrics": {"loss": "low"}}, "data.metrics"),
        ("metric", {"episode": 1, "verifier_scores": [1]}, "data.verifier_scores"),
        ("progress", {"progress": 9e99}, "data.progress"),
        ("progress", {"current_tier": {"a": 1}}, "data.current_tier"),
        ("started", {"episode": 0.5}, "data.episode"),
        ("log", {"lines": ["a", None]}, "data.lines"),
        ("failed", {"error": {"a": 1}}, "data.error"),
        ("failed", {"failure_reason": "x" * 2001}, "data.failure_reason"),
        ("episode", {"index": 0}, "data.outcome"),
        ("episode", {"index": 0, "outcome": "success", "success": "yes"}, "data.success"),
        ("completed", {"results": {"seed": True}}, "data.results.seed"),
        ("completed", {"results": {"human_decision": "yes"}}, "data.results.human_decision"),
        ("completed", {"report": {"success_interval": [0.1]}}, "data.report.success_interval"),
        ("completed", {"report": {"episodes": [{"index": 1}]}}, "data.report.episodes"),
        ("completed", {"results": 7}, "data.results"),
        ("cancelled", {"alerts": []}, "data.alerts"),
        ("alert", {"kind": 7}, "data.kind"),
    ],
)
def test_a_report_that_nobody_could_read_is_refused_by_its_field(
    kind: str, data: dict[str, object], field: str
) -> None:
    assert (problem_in(kind, data) or "").startswith(f"{field} is ")


def test_what_our_own_workers_report_is_taken() -> None:
    metric = {
        "episode": 3,
        "timestep": 40,
        "avg_reward": -1e6,
        "success_rate": None,
        "wall_seconds": 0.5,
        "current_tier": 2,
        "verifier_scores": {"v": 0.5},
        "metrics": {"loss": 1e200},
    }
    report = {
        "asked": 2,
        "success_interval": [0.0, 1.0],
        "stopped": "cancelled",
        "package_versions": {"python": "3.13"},
    }

    assert problem_in("metric", metric) is None
    assert problem_in("completed", {"results": report}) is None
    assert problem_in("heartbeat", {"episode": "anything"}) is None


def test_a_report_from_another_time_is_refused() -> None:
    assert problem_at(NOW + timedelta(hours=3), NOW) is None
    assert problem_at(datetime(2025, 12, 31), NOW) is None
    for moment in (datetime(9999, 12, 31, tzinfo=UTC), datetime(1999, 1, 1, tzinfo=UTC)):
        assert (problem_at(moment, NOW) or "").startswith("at is ")


def test_numbers_beyond_every_float_are_no_numbers() -> None:
    assert number(10**400) is None
    assert metrics_of({"metrics": {"a": 10**400, "b": 2, "n" * 201: 1}}) == {"b": 2}
    assert sound({"avg_reward": "x", "current_tier": 2, "mine": "y"}) == {
        "current_tier": 2,
        "mine": "y",
    }


def test_a_hostile_worker_breaks_no_list_of_its_organisation(
    at_work: tuple[Running, str, httpx.Client],
) -> None:
    platform, job_id, http = at_work
    bad: dict[str, object] = {"episode": 10**25, "avg_reward": "<script>", "timestep": 10**40}
    reply = http.post("/reports", json={"seq": 5, "reports": [{"type": "metric", "data": bad}]})
    late = {"type": "metric", "at": "9999-12-31T23:59:59Z", "data": {"episode": 1}}
    untimely = http.post("/reports", json={"seq": 6, "reports": [late]})
    facts = [put(http, job_id, avg_reward="1e300"), put(http, job_id, label="a\x1b[2J")]
    # As rows that were kept before reports were checked.
    with platform.server.state.database.write(1) as session:
        row = session.get_one(JobRow, job_id)
        row.results = {"avg_reward": "<script>", "current_tier": {"a": 1}, "total_steps": 3}
        jobs.tell(session, row, "metric", bad)
        jobs.tell(session, row, "metric", {"episode": 2, "avg_reward": "x"})
    with Client(base_url=platform.server.url) as client:
        (listed,) = client.TrainingJob.list()
        points = client.TrainingJob.get(job_id).list_metrics()

    assert (reply.status_code, untimely.status_code) == (422, 422)
    assert "data.episode is 1000" in reply.json()["detail"]
    assert "at is 9999" in untimely.json()["detail"]
    assert [one.status_code for one in facts] == [422, 422]
    assert (listed.results.avg_reward, listed.results.current_tier) == (None, None)
    assert listed.results.total_steps == 3
    assert [(one.episode, one.avg_reward) for one in points] == [(2, None)]

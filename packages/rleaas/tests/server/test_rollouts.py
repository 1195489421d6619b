import csv
import hashlib
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
from rlcore import InvalidRequestError, NotFoundError
from rleaas import AsyncClient, Client, verify_report
from rleaas.server.rules.governance import MASK
from rleaas.server.store import environments, jobs
from rleaas.server.store.tables import Base, KpiRow
from sqlalchemy import select

from .archives import pdf_text
from .conftest import Running, Start

STEPS: list[dict[str, object]] = [
    {"step": 0, "tool": "read", "reward": 1.0, "state_summary": {"email": "a@b"}},
    {"step": 1, "tool": "write", "reward": 2.0},
]


def episodes(*rewards: float | None) -> list[tuple[str, dict[str, object]]]:
    return [
        (
            "episode",
            {
                "index": index,
                "seed": index,
                "steps": 4 + index,
                "reward": reward,
                "outcome": "completed",
                "success": None if reward is None else reward > 5,
            },
        )
        for index, reward in enumerate(rewards)
    ]


@pytest.fixture
def evaluated(start: Start) -> tuple[Running, str, str]:
    """A server with two evaluations of one checkpoint: 4 and 10 on average."""
    trained = start(
        plan=[("checkpoint", {"episode": 5, "avg_reward": 1, "content": "p"}), ("completed", {})]
    )
    trained.ready()
    job_id = trained.train()
    trained.finished("training", job_id)
    trained.server.stop()
    ids: list[str] = []
    running = trained
    for rewards in ((2.0, 6.0, None), (10.0, 10.0, 10.0)):
        running.server.stop()
        known = [one for one in rewards if one is not None]
        mean = sum(known) / len(known)
        results = {"mean_return": mean, "overall_score": mean}
        running = start(plan=[*episodes(*rewards), ("completed", {"results": results})])
        body = {"agent_checkpoint_id": f"ckpt_{job_id}_5", "episodes": 3}
        ids.append(str(running.ok(running.http.post("/api/evaluations", json=body))["id"]))
        assert running.finished("evaluation", ids[-1]) == "completed"
    return running, ids[0], ids[1]


def store(running: Running, **fields: object) -> dict[str, object]:
    body = {"environment_name": "CartPole", "steps": STEPS, **fields}
    return running.ok(running.http.post("/api/rollouts", json=body))


def test_a_rollout_is_stored_read_and_listed_with_the_totals_of_its_steps(
    platform: Running,
) -> None:
    platform.register()
    stored = store(platform, success=True)

    assert (stored["success"], stored["environment_name"]) == (True, "CartPole")
    with Client(base_url=platform.server.url) as client:
        whole = client.Evaluation.get_rollout(str(stored["id"]), "CartPole")
        listed = client.Evaluation.list_rollouts("CartPole")
        everything = client.Evaluation.list_rollouts()
        with pytest.raises(NotFoundError):
            client.Evaluation.get_rollout("roll_none", "CartPole")
    assert (whole.total_reward, whole.score, whole.total_steps) == (3.0, 3.0, 2)
    assert [step["tool"] for step in whole.steps] == ["read", "write"]
    assert [one.id for one in listed] == [one.id for one in everything] == [whole.id]
    assert listed[0].steps == []


def test_personal_data_is_masked_before_a_rollout_is_stored(platform: Running) -> None:
    platform.register()
    platform.ok(platform.http.post("/governance/configure", json={"pii_fields": ["email"]}))
    stored = store(platform)

    with platform.server.state.database.read() as session:
        kept = [
            str(row)
            for table in Base.metadata.sorted_tables
            for row in session.execute(select(table))
        ]
    told = platform.ok(platform.http.get(f"/api/rollouts/CartPole/{stored['id']}"))

    assert any(str(stored["id"]) in row for row in kept)
    assert [row for row in kept if "a@b" in row] == []
    assert Running.listed(told, "steps")[0]["state_summary"] == {"email": MASK}


def test_the_same_key_stores_once_and_a_taken_id_is_a_conflict(platform: Running) -> None:
    platform.register()
    body: dict[str, object] = {"environment_name": "CartPole", "steps": [], "id": "roll_1"}
    replies = [
        platform.http.post("/api/rollouts", json=body, headers={"Idempotency-Key": "k"})
        for _ in range(2)
    ]

    assert replies[0].json() == replies[1].json()
    assert platform.http.post("/api/rollouts", json=body).status_code == 409
    assert platform.ok(platform.http.get("/api/rollouts-all"))["total"] == 1


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"environment_name": "none"}, 404),
        ({"steps": "x"}, 422),
        ({"job_id": "job_none"}, 422),
        ({"unknown": 1}, 422),
        ({"policy_name": "x" * 201}, 422),
        ({"scenario_name": "x" * 201}, 422),
        ({"status": "won"}, 422),
    ],
)
def test_a_rollout_that_cannot_be_stored_is_refused(
    platform: Running, fields: dict[str, object], status: int
) -> None:
    platform.register()
    body: dict[str, object] = {"environment_name": "CartPole", "steps": [], **fields}

    assert platform.http.post("/api/rollouts", json=body).status_code == status
    assert platform.ok(platform.http.get("/api/rollouts-all"))["rollouts"] == []


def test_the_episodes_of_an_evaluation_are_rollouts_and_its_figures_are_kept(
    evaluated: tuple[Running, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    running, first, second = evaluated
    with Client(base_url=running.server.url) as client:
        played = client.Evaluation.list_rollouts("CartPole")
        report = client.Evaluation.get_report(first)
        monkeypatch.setattr("rleaas.resources.pages.PAGE", 2)
        pages = [one.episode_number for one in client.Evaluation.rollouts(first, steps=True)]
        assert pages == [0, 1, 2]
        with pytest.raises(NotFoundError):
            next(iter(client.Evaluation.rollouts("eval_none")))
        now = client.Metrics.get_kpis("CartPole", refresh=True)
        history = client.Metrics.get_kpi_history("CartPole")
        assert client.Metrics.get_kpi_history("CartPole", limit=1, offset=1) == history[1:]
        assert client.Metrics.clear_kpi_history()["status"] == "cleared"
        assert client.Metrics.get_kpi_history() == []
        assert client.Metrics.get_kpis("CartPole").episodes == 6

    assert sorted(one.status for one in played) == ["completed"] * 5 + ["failed"]
    assert set(report.rollout_ids) == {one.id for one in played if one.job_id == first}
    assert (now.avg_reward, now.pass_rate) == (38 / 5, 4 / 5)
    assert (now.episodes, now.failed_episodes, now.aml_compliance_rate) == (6, 1, None)
    assert [(one.evaluation_id, one.avg_reward) for one in history] == [(second, 10), (first, 4)]
    assert history[0].avg_completion_steps == 5.0
    assert history[0].checkpoint is not None
    # All three have the same reward, which does not tell how much others would differ.
    assert history[0].intervals["avg_reward"] is None
    bounds = now.intervals["avg_reward"]
    assert bounds is not None
    assert bounds[0] <= 38 / 5 <= bounds[1]
    assert [(one["checkpoint_id"], one["episodes"]) for one in now.agents] == [
        (history[0].checkpoint, 6)
    ]


def test_what_is_judged_anew_or_played_once_more_counts_once_and_each_agent_has_its_figures(
    evaluated: tuple[Running, str, str],
) -> None:
    running, first, second = evaluated
    with running.server.state.database.write(1) as session:
        again = jobs.find(session, jobs.EVALUATION, second)
        again.request = {**again.request, "checkpoint_id": None, "agent": "random"}
    apart = running.ok(running.http.get("/kpis?environment_name=CartPole"))
    with running.server.state.database.write(1) as session:
        again = jobs.find(session, jobs.EVALUATION, second)
        again.request = {**again.request, "reproduces": first}
    alone = running.ok(running.http.get("/kpis?environment_name=CartPole"))

    agents = running.listed(apart, "agents")
    told = [(one["agent"], one["episodes"], one["avg_reward"]) for one in agents]
    assert told == [(None, 3, 4), ("random", 3, 10)]
    assert agents[0]["checkpoint_id"] is not None
    assert (apart["episodes"], alone["episodes"], alone["avg_reward"]) == (6, 3, 4)


def test_without_rollouts_figures_are_unknown_and_not_zero(platform: Running) -> None:
    platform.register()

    figures = platform.ok(platform.http.get("/kpis?environment_name=CartPole"))

    assert [figures[name] for name in ("avg_reward", "pass_rate", "avg_completion_steps")] == [
        None,
        None,
        None,
    ]
    assert platform.http.get("/kpis?environment_name=none").status_code == 404


def test_rates_of_tags_count_rollouts_in_which_every_tagged_verifier_passed(
    platform: Running,
) -> None:
    platform.register()
    for passed in (True, False):
        checks = [
            {"check": "a", "passed": True, "compliance_tags": ["AML"]},
            {"check": "b", "passed": passed, "compliance_tags": ["AML"]},
        ]
        store(platform, verifier_results=checks)

    figures = platform.ok(platform.http.get("/kpis"))

    assert (figures["aml_compliance_rate"], figures["kyc_check_rate"]) == (0.5, None)
    # By hand: 0.5 and 1.96 * sqrt(0.125 + 0.2401) / 2.9208 on both sides.
    found = cast("dict[str, list[float]]", figures["intervals"])["aml_compliance_rate"]
    assert [round(end, 4) for end in found] == [0.0945, 0.9055]


def test_an_evaluation_below_what_governance_asks_for_alerts_once_for_each_threshold(
    start: Start,
) -> None:
    trained = start(
        plan=[("checkpoint", {"episode": 5, "avg_reward": 1, "content": "p"}), ("completed", {})]
    )
    trained.ready()
    job_id = trained.train()
    trained.finished("training", job_id)
    trained.server.stop()
    failed = [{"passed": False, "compliance_tags": ["AML"]}]
    played = {"index": 0, "outcome": "failure", "reward": 2.0, "steps": 1, "success": False}
    episode = ("episode", {**played, "verifier_results": failed})
    running = start(plan=[episode, ("completed", {"results": {"success_rate": 0.0}})])
    limits = {"pass_rate_min": 0.9, "compliance_fail_rate_max": 0.1, "avg_reward_drop": 5}
    wanted = {
        "environment_name": "CartPole",
        "alert_thresholds": limits,
        "compliance_tags": ["aml"],
    }
    running.ok(running.http.post("/governance/configure", json=wanted))
    with running.server.state.database.write(1) as session:
        environment = environments.find(session, "CartPole").id
        earlier = {"avg_reward": 10.0, "evaluation_id": "eval_before"}
        at = datetime(2026, 1, 1, tzinfo=UTC)
        session.add(KpiRow(organisation_id=1, environment_id=environment, figures=earlier, at=at))
    body = {"agent_checkpoint_id": f"ckpt_{job_id}_5", "episodes": 1}

    evaluation = str(running.ok(running.http.post("/api/evaluations", json=body))["id"])

    assert running.finished("evaluation", evaluation) == "completed"
    asked: dict[str, str | int] = {"job": evaluation, "after": 0}
    told = running.listed(running.ok(running.http.get("/api/events", params=asked)), "events")
    alerts = [
        cast("dict[str, object]", one["data"])
        for one in told
        if one["kind"] in ("alert", "reward_collapse_alert")
    ]
    assert {str(one["threshold"]): one["value"] for one in alerts} == {
        "pass_rate_min": 0.0,
        "compliance_fail_rate_max": 1.0,
        "avg_reward_drop": 8.0,
    }
    page = running.ok(running.http.get("/api/audit", params={"job_id": evaluation}))
    types = [one["type"] for one in running.listed(page, "events")]
    assert types.count("alert.raised") == 3


def test_two_evaluations_are_compared_seed_by_seed(evaluated: tuple[Running, str, str]) -> None:
    running, first, second = evaluated
    with Client(base_url=running.server.url) as client:
        found = client.Evaluation.get_rollout_comparison("CartPole", first, second)
        same = client.Evaluation.get_rollout_comparison("CartPole", first, first)
        with pytest.raises(NotFoundError):
            client.Evaluation.get_rollout_comparison("CartPole", first, "eval_none")

    assert (found.delta, found.winner, found.winner_id) == (6.0, "inconclusive", None)
    assert [one["delta"] for one in found.per_scenario_diff] == [8.0, 4.0]
    assert (found.paired["pairs"], found.paired["mean_difference"]) == (2, 6.0)
    assert found.paired["verdict"] == "inconclusive"
    assert (same.delta, same.winner) == (0.0, "tie")


def test_a_report_is_a_file_whose_digest_is_that_of_its_bytes(
    evaluated: tuple[Running, str, str], tmp_path: Path
) -> None:
    running, first, _ = evaluated
    with Client(base_url=running.server.url) as client:
        told = client.Evaluation.export_audit_report(first, signature=True)
        path = client.Evaluation.download_report(told, tmp_path / "report.json")
        key = client.AuditLog.report_key()
        table = client.Evaluation.export_audit_report(format="csv")
        lines = client.Evaluation.download_report(table, tmp_path / "report.csv").read_text()
        short = client.Evaluation.export_audit_report(first, include_trajectory_summary=False)
        brief = json.loads(
            client.Evaluation.download_report(short, tmp_path / "short.json").read_text()
        )
        with pytest.raises(InvalidRequestError):
            client.Evaluation.export_audit_report(first, format="docx")
        with pytest.raises(NotFoundError):
            client.Evaluation.export_audit_report("eval_none")

    assert hashlib.sha256(path.read_bytes()).hexdigest() == told.sha256
    assert told.key_id == key.key_id
    verified = verify_report(path, told.signature, key.public_key, sha256=told.sha256)
    assert verified.sha256 == told.sha256
    assert table.signature is None
    (evaluation,) = json.loads(path.read_text())["evaluations"]
    assert len(evaluation["episodes"]) == 3
    assert len(list(csv.DictReader(io.StringIO(lines)))) == 6
    assert "episodes" not in brief["evaluations"][0]
    for name in ("report_none.json", "..%2F..%2Fserver.key"):
        assert running.http.get(f"/api/rollout-reports/{name}").status_code == 404


def test_a_report_is_exported_as_pdf_with_what_its_digest_is_of(
    evaluated: tuple[Running, str, str], tmp_path: Path
) -> None:
    running, first, _ = evaluated
    with Client(base_url=running.server.url) as client:
        told = client.Evaluation.export_audit_report(first, format="pdf")
        path = client.Evaluation.download_report(told, tmp_path / "report.pdf")
        brief = client.Evaluation.export_audit_report(
            first, format="pdf", include_trajectory_summary=False
        )
        short = client.Evaluation.download_report(brief, tmp_path / "short.pdf")

    content = path.read_bytes()
    assert content.startswith(b"%PDF-1.")
    assert content.rstrip().endswith(b"%%EOF")
    assert hashlib.sha256(content).hexdigest() == told.sha256
    text = pdf_text(content)
    for part in (first, "CartPole@1", "3 asked, 2 scored, 1 failed", "mean return", "outcome"):
        assert part in text
    assert "outcome" not in pdf_text(short.read_bytes())
    reply = running.http.get(told.report_url)
    assert reply.headers["content-type"] == "application/pdf"


# defect: F-15
def test_rollouts_of_a_job_are_a_list_or_an_error(start: Start) -> None:
    """Defect F-15 is gone: every error became an empty list."""
    running = start()
    running.ready()
    job_id = running.train()
    running.finished("training", job_id)
    store(running, job_id=job_id)
    with Client(base_url=running.server.url) as client:
        job = client.TrainingJob.get(job_id)
        assert [one.job_id for one in job.list_rollouts()] == [job_id]
        assert isinstance(running.http.get(f"/api/training/runs/{job_id}/rollouts").json(), list)
        running.register("Other")
        running.ok(running.http.delete("/api/custom-environments/CartPole"))
        with pytest.raises(NotFoundError):
            job.list_rollouts()


@pytest.mark.anyio
async def test_the_asynchronous_client_reads_rollouts_and_figures(platform: Running) -> None:
    platform.register()
    stored = store(platform)
    async with AsyncClient(base_url=platform.server.url) as client:
        assert (await client.Evaluation.get_rollout(str(stored["id"]), "CartPole")).score == 3.0
        assert len(await client.Evaluation.list_rollouts()) == 1
        assert (await client.metrics.get_kpis()).avg_reward == 3.0


def test_the_steps_of_a_rollout_come_in_pages(start: Start) -> None:
    platform = start()
    platform.register()
    steps = [{"tool": f"tool_{number}", "reward": 0.5} for number in range(1_203)]
    body = {"environment_name": "CartPole", "id": "roll_long", "steps": steps}
    platform.ok(platform.http.post("/api/rollouts", json=body))
    platform.register("Other")

    path = "/api/rollouts/CartPole/roll_long/steps"
    page = platform.ok(platform.http.get(path, params={"limit": 2, "offset": 1_201}))
    assert page == {
        "steps": [
            {"step": 1_201, "tool": "tool_1201", "reward": 0.5},
            {"step": 1_202, "tool": "tool_1202", "reward": 0.5},
        ],
        "total": 1_203,
        "offset": 1_201,
    }
    assert platform.ok(platform.http.get(path, params={"offset": 9_999}))["steps"] == []
    assert platform.http.get(path, params={"limit": -1}).status_code == 422
    assert platform.http.get("/api/rollouts/Other/roll_long/steps").status_code == 404
    assert platform.http.get("/api/rollouts/CartPole/roll_none/steps").status_code == 404
    with Client(base_url=platform.server.url) as client:
        played = [*client.Evaluation.rollout_steps("roll_long", "CartPole")]
    assert [one.step for one in played] == list(range(1_203))
    assert played[7].tool == "tool_7"


def test_the_rollouts_of_a_training_come_in_pages(start: Start) -> None:
    platform = start()
    platform.ready()
    job_id = platform.train()
    assert platform.finished("training", job_id) == "completed"
    for number in range(5):
        body: dict[str, object] = {"environment_name": "CartPole", "job_id": job_id, "steps": []}
        told = {**body, "id": f"roll_{number}", "episode_number": number}
        platform.ok(platform.http.post("/api/rollouts", json=told))

    path = f"/api/training/runs/{job_id}/rollouts"
    pages = [
        [one["id"] for one in platform.http.get(path, params={"limit": 2, "offset": at}).json()]
        for at in (0, 2, 4, 6)
    ]
    assert pages == [["roll_4", "roll_3"], ["roll_2", "roll_1"], ["roll_0"], []]
    assert len(platform.http.get(path).json()) == 5
    with Client(base_url=platform.server.url) as client:
        job = client.TrainingJob.get(job_id)
        assert len(job.list_rollouts()) == 5
        assert [one.id for one in job.list_rollouts(3)] == ["roll_4", "roll_3", "roll_2"]

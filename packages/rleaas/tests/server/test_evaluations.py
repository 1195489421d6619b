from pathlib import Path

import pytest
from rleaas import Client, verify_report
from rleaas.models import Evaluation, EvaluationReport
from rleaas.server.store import jobs
from rleaas.server.store.tables import RolloutRow
from sqlalchemy import select

from .archives import pdf_text
from .conftest import Running, Start

EPISODES: list[tuple[str, dict[str, object]]] = [
    ("episode", {"index": 0, "seed": 7, "steps": 9, "reward": 9.0, "outcome": "failure"}),
    ("episode", {"index": 1, "seed": 8, "steps": 3, "reward": None, "outcome": "env_error"}),
]
REPORT: dict[str, object] = {
    "asked": 2,
    "scored": 1,
    "failed": 1,
    "success_rate": 0.0,
    "success_interval": [0.0, 0.8],
    "mean_return": 9.0,
    "episodes": [data for _, data in EPISODES],
    "package_versions": {"python": "3.11"},
}


@pytest.fixture
def checkpoint(start: Start) -> tuple[Running, str]:
    """A checkpoint from a server that trains; evaluations follow on servers of their own."""
    platform = start(
        plan=[("checkpoint", {"episode": 5, "avg_reward": 1, "content": "p"}), ("completed", {})]
    )
    platform.ready()
    job_id = platform.train()
    assert platform.finished("training", job_id) == "completed"
    platform.server.stop()
    return platform, f"ckpt_{job_id}_5"


def evaluate(platform: Running, **body: object) -> Evaluation:
    return Evaluation.model_validate(platform.ok(platform.http.post("/api/evaluations", json=body)))


def report_of(platform: Running, evaluation_id: str) -> EvaluationReport:
    return EvaluationReport.model_validate(
        platform.ok(platform.http.get(f"/api/evaluations/{evaluation_id}/report"))
    )


def test_an_evaluation_runs_on_the_identity_that_the_checkpoint_was_trained_on(
    start: Start, checkpoint: tuple[Running, str]
) -> None:
    platform = start(plan=[*EPISODES, ("completed", {"report": REPORT})])
    platform.register(kwargs={"changed": True})

    asked = evaluate(platform, agent_checkpoint_id=checkpoint[1], seeds=[7, 8], name="nightly")
    assert platform.finished("evaluation", asked.id) == "completed"

    report = report_of(platform, asked.id)
    assert (report.environment, report.environment_version) == ("CartPole", 1)
    assert (report.asked, report.scored, report.failed) == (2, 1, 1)
    assert [episode.outcome for episode in report.episodes] == ["failure", "env_error"]
    assert report.success_interval == (0.0, 0.8)
    assert (report.name, report.seeds, report.episodes_done) == ("nightly", [7, 8], 2)
    assert report.checkpoint_sha256


def test_an_evaluation_whose_worker_died_is_played_again_and_counts_each_episode_once(
    start: Start, checkpoint: tuple[Running, str]
) -> None:
    first, second = EPISODES
    platform = start(
        plan=[first, ("crash_at_first", {}), second, ("completed", {"report": REPORT})]
    )
    platform.register()

    asked = evaluate(platform, agent_checkpoint_id=checkpoint[1], seeds=[7, 8])
    assert platform.finished("evaluation", asked.id) == "completed"

    report = report_of(platform, asked.id)
    assert report.episodes_done == 2
    assert (report.attempt, report.restarts) == (2, 1)
    assert [one["exit_code"] for one in report.attempts] == [3, None]
    with platform.server.state.database.read(1) as session:
        ends = [one["ended"] for one in jobs.find(session, jobs.EVALUATION, asked.id).history]
        assert ends == [
            "ended by itself with exit code 3 before the job was done",
            "reported completed",
        ]
        episodes = session.scalars(select(RolloutRow.data).where(RolloutRow.job_id == asked.id))
        assert sorted(str(one["seed"]) for one in episodes) == ["7", "8"]


def test_an_environment_named_explicitly_is_taken_in_its_newest_version(
    start: Start, checkpoint: tuple[Running, str]
) -> None:
    platform = start()
    platform.register(kwargs={"changed": True})

    newest = evaluate(
        platform, agent_checkpoint_id=checkpoint[1], episodes=2, environment_name="CartPole"
    )

    assert newest.environment_version == 2
    assert newest.seeds == [0, 1]


def test_a_cancelled_evaluation_keeps_the_episodes_it_has_and_every_report_says_it_is_partial(
    start: Start, checkpoint: tuple[Running, str], tmp_path: Path
) -> None:
    platform = start(plan=[EPISODES[0], ("log", {"line": "one done"}), ("until_cancelled", {})])
    asked = evaluate(platform, agent_checkpoint_id=checkpoint[1], seeds=[7, 8])
    while not report_of(platform, asked.id).episodes:
        pass

    cancelled = platform.ok(platform.http.post(f"/api/evaluations/{asked.id}/cancel"))

    assert cancelled["status"] == "cancelled"
    report = report_of(platform, asked.id)
    assert (report.asked, report.scored, report.failed) == (2, 1, 0)
    assert report.mean_return is None
    assert report["complete"] is False
    said = report.partial
    assert said is not None
    assert said.startswith("partial: 1 of 2 episodes, cancelled at 20")
    with Client(base_url=platform.server.url) as client:
        for format in ("json", "csv", "html", "pdf"):
            made = client.Evaluation.export_audit_report(asked.id, format, signature=True)
            path = client.Evaluation.download_report(made, tmp_path / f"report.{format}")
            written = pdf_text(path.read_bytes()) if format == "pdf" else path.read_text("utf-8")
            assert said in written
            assert verify_report(path, public_key=client.AuditLog.report_key().public_key)


def test_the_published_form_is_an_evaluation_and_is_read_as_a_rollout(
    start: Start, checkpoint: tuple[Running, str]
) -> None:
    platform = start(plan=[*EPISODES, ("completed", {"report": REPORT})])
    body = {
        "agent_checkpoint_id": checkpoint[1],
        "scenario_suite_id": "",
        "purpose": "evaluation",
        "environment_name": "CartPole",
        "episodes": 2,
        "max_steps": 50,
    }

    made = platform.ok(platform.http.post("/api/rollouts", json=body))
    platform.finished("evaluation", str(made["id"]))

    assert (made["environment"], made["max_episode_steps"]) == ("CartPole", 50)
    assert isinstance(made["status"], str)
    for path in (f"/api/rollouts/CartPole/{made['id']}", f"/api/rollouts//{made['id']}"):
        assert platform.ok(platform.http.get(path))["mean_return"] == 9.0
    platform.register("Other", source="custom")
    assert platform.http.get(f"/api/rollouts/Other/{made['id']}").status_code == 404


def test_evaluations_are_listed(start: Start, checkpoint: tuple[Running, str]) -> None:
    platform = start()
    made = [evaluate(platform, agent_checkpoint_id=checkpoint[1], episodes=1).id for _ in range(2)]

    page = platform.ok(platform.http.get("/api/evaluations"))

    assert [item["id"] for item in platform.listed(page, "evaluations")] == made[::-1]


def test_an_evaluation_is_not_a_training_job(start: Start, checkpoint: tuple[Running, str]) -> None:
    platform = start()
    made = evaluate(platform, agent_checkpoint_id=checkpoint[1], episodes=1)

    assert platform.http.get(f"/training/{made.id}").status_code == 404
    assert platform.ok(platform.http.get("/api/training/jobs"))["count"] == 1


@pytest.mark.parametrize(
    ("route", "body", "says"),
    [
        ("/api/evaluations", {"seeds": [1, 1]}, "more than once"),
        ("/api/evaluations", {"seeds": []}, "seeds"),
        ("/api/evaluations", {"seeds": [-1]}, "seeds"),
        ("/api/evaluations", {"seeds": [1], "episodes": 3}, "contradict"),
        ("/api/evaluations", {"episodes": 2, "base_seed": 2**32 - 1}, "no room"),
        ("/api/evaluations", {"episode": 2}, "did you mean 'episodes'"),
        ("/api/rollouts", {"scenario_suite_id": "s", "scenario_ids": ["t"]}, "both are given"),
        ("/api/evaluations", {"agent": "random"}, "both are given"),
        ("/api/evaluations", {"agent_checkpoint_id": ""}, "neither is given"),
        ("/api/evaluations", {"repetitions": 0}, "repetitions"),
        ("/api/evaluations", {"num_workers": 65}, "num_workers"),
        ("/api/rollouts", {"comparison": True, "agent_checkpoints": ["a"]}, "of two"),
    ],
)
def test_a_request_with_a_mistake_is_refused_by_name(
    platform: Running, route: str, body: dict[str, object], says: str
) -> None:
    reply = platform.http.post(route, json={"agent_checkpoint_id": "ckpt_x", **body})

    assert reply.status_code == 422
    assert says in reply.json()["detail"]


def test_a_checkpoint_that_does_not_exist_is_not_found(platform: Running) -> None:
    reply = platform.http.post("/api/evaluations", json={"agent_checkpoint_id": "ckpt_x"})

    assert (reply.status_code, reply.json()["code"]) == (404, "checkpoint_not_found")


def test_a_repeated_request_is_answered_when_the_environment_is_gone_by_then(
    start: Start, checkpoint: tuple[Running, str]
) -> None:
    platform = start()
    platform.ready()
    body = {"agent_checkpoint_id": checkpoint[1], "seeds": [1]}
    headers = {"Idempotency-Key": "k1"}
    one = platform.http.post("/api/evaluations", json=body, headers=headers)
    platform.ok(platform.http.post("/api/environments/CartPole/deprovision"))
    refused = platform.http.post("/api/evaluations", json=body)

    two = platform.http.post("/api/evaluations", json=body, headers=headers)

    assert refused.status_code == 409
    assert platform.ok(one)["id"] == platform.ok(two)["id"]


def test_a_reproduction_draws_the_randomness_of_policies_as_its_original_did(
    start: Start, checkpoint: tuple[Running, str]
) -> None:
    platform = start(plan=[*EPISODES, ("completed", {"report": REPORT})])
    new = evaluate(platform, agent_checkpoint_id=checkpoint[1], seeds=[7, 8]).id
    old = evaluate(platform, agent_checkpoint_id=checkpoint[1], seeds=[7, 8], name="of before").id
    assert {platform.finished("evaluation", one) for one in (new, old)} == {"completed"}
    database = platform.server.state.database
    with database.write(1) as session:
        row = jobs.find(session, jobs.EVALUATION, old)
        row.request = {key: said for key, said in row.request.items() if key != "seeding"}

    again = [
        str(platform.ok(platform.http.post(f"/api/evaluations/{one}/reproduce", json={}))["id"])
        for one in (new, old)
    ]

    with database.read(1) as session:
        told = [jobs.find(session, jobs.EVALUATION, one).request["seeding"] for one in again]
    assert told == [2, 1]


@pytest.mark.parametrize("threshold", [-0.1, 1.5, 90.0])
def test_a_threshold_that_no_score_can_be_is_refused(
    start: Start, checkpoint: tuple[Running, str], threshold: float
) -> None:
    platform = start(plan=[*EPISODES, ("completed", {"report": REPORT})])
    rule = {"id": "r", "name": "r", "type": "rule_based", "logic": {"conditions": ["1 < 2"]}}
    platform.ok(platform.http.post("/api/verifiers", json=rule))
    body = {"agent_checkpoint_id": checkpoint[1], "seeds": [1], "pass_threshold": threshold}

    judged = platform.http.post("/api/evaluations", json={**body, "verifier_ids": ["r"]})
    by_return = platform.http.post("/api/evaluations", json=body)

    assert judged.status_code == 422
    assert f"pass_threshold is {threshold:g}, and scores are from 0 to 1" in judged.text
    assert by_return.status_code == 200


def test_an_evaluation_on_another_version_than_the_training_says_so(
    start: Start, checkpoint: tuple[Running, str]
) -> None:
    platform = start(plan=[*EPISODES, ("completed", {"report": REPORT})])
    platform.register(kwargs={"changed": True})
    there = evaluate(platform, agent_checkpoint_id=checkpoint[1], seeds=[7])
    here = evaluate(
        platform, agent_checkpoint_id=checkpoint[1], environment_name="CartPole", seeds=[7]
    )

    told = [platform.ok(platform.http.get(f"/api/evaluations/{one.id}")) for one in (there, here)]

    assert told[0]["warnings"] == []
    assert "trained on CartPole@1 and plays on CartPole@2" in str(told[1]["warnings"])


def test_a_threshold_of_governance_that_could_not_be_checked_is_a_warning(
    start: Start, checkpoint: tuple[Running, str]
) -> None:
    platform = start(plan=[*EPISODES, ("completed", {"report": REPORT})])
    wanted: dict[str, object] = {
        "environment_name": "CartPole",
        "alert_thresholds": {"compliance_fail_rate_max": 0.1},
        "compliance_tags": ["AML"],
    }
    platform.ok(platform.http.post("/governance/configure", json=wanted))

    asked = evaluate(platform, agent_checkpoint_id=checkpoint[1], seeds=[7, 8])
    assert platform.finished("evaluation", asked.id) == "completed"

    (warning,) = report_of(platform, asked.id).warnings
    assert "compliance_fail_rate_max was not checked" in warning
    assert "(AML)" in warning

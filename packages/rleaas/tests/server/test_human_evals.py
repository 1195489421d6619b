import pytest
from rlcore import ConfigurationError
from rleaas import AsyncClient, Client, HumanEvalStepScore
from rleaas.server.job_reports import asks_people
from rleaas.server.rules.webhooks import kinds_of
from rleaas.server.store.tables import JobRow

from .conftest import Running, Start


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    assert isinstance(request.param, str)
    return request.param


@pytest.fixture
def judged(platform: Running) -> str:
    """A job that is complete only when somebody has judged it."""
    platform.ready()
    asked = {"environment_name": "CartPole", "human_in_the_loop": True}
    platform.ok(platform.http.post("/governance/configure", json=asked))
    job_id = platform.train()
    assert platform.finished("training", job_id) == "awaiting_human_eval"
    return job_id


def test_a_job_that_people_judge_is_complete_with_the_verdict(
    platform: Running, judged: str
) -> None:
    scores: list[HumanEvalStepScore | dict[str, object]] = [
        {"step_index": 0, "score": "correct"},
        HumanEvalStepScore(step_index=3, score="flawed"),
    ]
    with Client(base_url=platform.server.url) as client:
        job = client.TrainingJob.get(judged)
        assert job.wait_until_complete(timeout=5).status == "awaiting_human_eval"
        told = job.submit_human_eval("yes", "good enough", scores)
        job.refresh()
        kinds = [event.kind for event in job.events(timeout=5)]
        kept = client.AuditLog.query(event_types=["human_eval"])

    assert (told.success, told.training_completed, told.total_evaluations) == (True, True, 1)
    assert (told.evaluation.decision, told.evaluation.comments) == ("yes", "good enough")
    assert [one.step_index for one in told.evaluation.step_scores] == [0, 3]
    assert (job.status, job.results["human_decision"]) == ("completed", "yes")
    assert kinds[-3:] == ["awaiting_human_eval", "human_eval", "completed"]
    assert [one.job_id for one in kept] == [judged]


def test_a_job_that_people_reject_has_failed_with_their_reason(
    platform: Running, judged: str
) -> None:
    with Client(base_url=platform.server.url) as client:
        job = client.TrainingJob.get(judged)
        told = job.submit_human_eval("no", "it cheats")
        job.refresh()
        last = [*job.events(timeout=5)][-1]
        (kept,) = client.AuditLog.query(event_types=["human_eval"])

    assert (told.success, told.training_completed) == (True, False)
    assert job.status == "failed"
    row = platform.ok(platform.http.get(f"/training/{judged}"))
    assert row["error"] == "it was rejected in its human evaluation: it cheats"
    assert job.results["failure_reason"] == "human_rejected"
    assert (last.kind, last.data["human_decision"]) == ("failed", "no")
    assert kept.details.get("rejected") is True
    assert last.kind in (kinds_of(["job_complete"]) or ())  # webhooks hear of it


@pytest.mark.parametrize("how", ["config", "verifier"])
def test_a_job_asks_people_when_its_request_says_so(platform: Running, how: str) -> None:
    platform.ready()
    made: dict[str, object] = {"name": "People", "type": "human_evaluation"}
    verifier = platform.ok(platform.http.post("/api/verifiers", json=made))["id"]
    request: dict[str, object] = {"verifier_config": {"type": "human_evaluation"}}
    if how == "verifier":
        request = {"verifier_ids": [verifier]}
    state = platform.server.state
    state.scheduler.stop()
    job_id = platform.train()
    with state.database.write() as session:
        row = session.get_one(JobRow, job_id)
        row.request = {**row.request, "config": request}
        assert asks_people(session, row)
        row.request = {**row.request, "config": {}}
        assert not asks_people(session, row)


def test_a_verdict_on_a_job_that_waits_for_none_is_added(platform: Running) -> None:
    platform.ready()
    job_id = platform.train()
    assert platform.finished("training", job_id) == "completed"
    with Client(base_url=platform.server.url) as client:
        job = client.TrainingJob.get(job_id)
        first = job.submit_human_eval("no", idempotency_key="once")
        again = job.submit_human_eval("no", idempotency_key="once")
        second = job.submit_human_eval("yes")

    assert first == again
    assert (first.training_completed, second.total_evaluations) == (False, 2)


def test_what_is_no_verdict_is_refused(platform: Running, judged: str) -> None:
    with Client(base_url=platform.server.url) as client:
        job = client.TrainingJob.get(judged)
        with pytest.raises(ConfigurationError, match="maybe"):
            job.submit_human_eval("maybe")
        with pytest.raises(ConfigurationError, match="score"):
            job.submit_human_eval("yes", step_scores=[{"step_index": 1, "score": 0.5}])
        assert job.refresh().status == "awaiting_human_eval"
    refused = platform.http.post(f"/human-eval/{judged}", json={"decision": "maybe"})
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_decision")
    assert "maybe" in refused.json()["detail"]


def test_only_the_verdict_that_a_job_waits_for_is_its_decision(start: Start) -> None:
    platform = start(plan=[("until_cancelled", {})])
    platform.ready()
    job_id = platform.train()
    early = platform.ok(platform.http.post(f"/human-eval/{job_id}", json={"decision": "no"}))
    before = platform.ok(platform.http.get(f"/training/{job_id}"))
    state = platform.server.state
    state.scheduler.stop()
    with state.database.write(1) as session:
        session.get_one(JobRow, job_id).status = "awaiting_human_eval"
    for decision in ("yes", "no"):
        platform.ok(platform.http.post(f"/human-eval/{job_id}", json={"decision": decision}))
    after = platform.ok(platform.http.get(f"/training/{job_id}"))

    assert early["total_evaluations"] == 1
    assert "human_decision" not in str(before["results"])
    assert after["status"] == "completed"
    assert isinstance(after["results"], dict)
    assert after["results"]["human_decision"] == "yes"


@pytest.mark.anyio
async def test_the_same_is_awaited(platform: Running, judged: str) -> None:
    async with AsyncClient(base_url=platform.server.url) as client:
        job = await client.TrainingJob.get(judged)
        told = await job.submit_human_eval("yes")
    assert told.training_completed
    reply = platform.http.post("/human-eval/job_none", json={"decision": "yes"})
    assert (reply.status_code, reply.json()["code"]) == (404, "training_job_not_found")


def test_other_environments_do_not_ask_people(start: Start) -> None:
    running = start()
    running.ready("A")
    running.ready("B")
    asked = {"environment_name": "A", "human_in_the_loop": True}
    running.ok(running.http.post("/governance/configure", json=asked))

    assert running.finished("training", running.train("B")) == "completed"

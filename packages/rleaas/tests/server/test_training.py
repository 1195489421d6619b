import pytest
from rlcore import AgentNotFound
from rleaas import Client
from rleaas.models import Checkpoint, LogPage, MetricPage, TrainingJob
from rleaas.server.jobs.patience import Patience

from .archives import digest_of, policy_file
from .conftest import FakeMesh, Running, Start

POINT: dict[str, object] = {
    "episode": 5,
    "timestep": 100,
    "avg_reward": 21.5,
    "success_rate": None,
    "loss": 0.25,
}
LEARNS: list[tuple[str, dict[str, object]]] = [
    ("metric", POINT),
    ("log", {"line": "episode 5 done"}),
    ("checkpoint", {"episode": 5, "avg_reward": 21.5, "content": "policy-5"}),
    ("metric", {**POINT, "episode": 10, "avg_reward": 40.0}),
    ("checkpoint", {"episode": 10, "avg_reward": 40.0, "content": "policy-10"}),
    ("completed", {"results": {"avg_reward": 40.0, "total_steps": 300, "current_episode": 10}}),
]


@pytest.fixture
def trained(start: Start) -> tuple[Running, str]:
    platform = start(plan=LEARNS)
    platform.ready()
    platform.ok(platform.http.post("/api/agents", json={"id": "agent_1", "name": "mine"}))
    job_id = platform.train(
        num_episodes=10, config={"checkpoint_interval": 5}, run_name="first", model="mine"
    )
    assert platform.finished("training", job_id) == "completed"
    return platform, job_id


def job_of(platform: Running, job_id: str) -> TrainingJob:
    return TrainingJob.model_validate(platform.ok(platform.http.get(f"/training/{job_id}")))


def test_a_job_of_an_agent_that_is_not_there_never_starts(start: Start) -> None:
    platform = start()
    platform.ready()
    with (
        Client(base_url=platform.server.url) as client,
        pytest.raises(AgentNotFound, match="no such agent"),
    ):
        client.TrainingJob.run("CartPole", agent_id="no such agent")

    assert platform.ok(platform.http.get("/api/training/jobs"))["jobs"] == []


def test_a_job_runs_in_a_worker_and_ends_completed_with_what_it_reported(
    trained: tuple[Running, str],
) -> None:
    job = job_of(*trained)

    assert (job.status, job.progress) == ("completed", 100)
    assert (job.results.avg_reward, job.results.total_steps) == (40.0, 300)
    assert (job.run_name, job.model, job.algorithm) == ("first", "agent_1", "PPO")
    assert job.config["checkpoint_interval"] == 5
    assert job.identity is not None
    assert (job.identity.name, job.identity.version) == ("CartPole", 1)


def test_metrics_come_in_order_and_continue_after_a_cursor(trained: tuple[Running, str]) -> None:
    platform, job_id = trained
    url = f"/api/training/jobs/{job_id}/metrics"

    first = MetricPage.model_validate(platform.ok(platform.http.get(url, params={"limit": 1})))
    rest = MetricPage.model_validate(
        platform.ok(platform.http.get(url, params={"after": first.cursor}))
    )

    assert [point.episode for point in first.metrics] == [5]
    assert [point.avg_reward for point in rest.metrics] == [40.0]
    assert first.metrics[0]["loss"] == 0.25


def test_checkpoints_carry_identity_and_the_digest_of_their_file(
    trained: tuple[Running, str],
) -> None:
    platform, job_id = trained
    listed = platform.ok(platform.http.get(f"/api/training/jobs/{job_id}/checkpoints"))
    early, late = map(Checkpoint.model_validate, platform.listed(listed, "checkpoints"))

    reply = platform.http.get(late.download_url or "")

    assert reply.content == policy_file("policy-10")
    assert late.sha256 == digest_of("policy-10")
    assert reply.headers["x-content-sha256"] == late.sha256
    assert (early.episode, late.episode) == (5, 10)
    assert late.identity is not None
    assert late.identity.name == "CartPole"


def test_the_last_checkpoint_is_also_the_final_one(trained: tuple[Running, str]) -> None:
    platform, job_id = trained

    final = platform.ok(platform.http.get(f"/api/checkpoints/ckpt_{job_id}_final"))

    assert final["id"] == f"ckpt_{job_id}_10"


@pytest.mark.parametrize(
    "route", ["/api/training/jobs/{}/logs", "/api/training/runs/{}/logs", "/training/{}/logs"]
)
def test_the_log_has_the_workers_output_and_its_reports(
    trained: tuple[Running, str], route: str
) -> None:
    platform, job_id = trained

    lines = platform.http.get(route.format(job_id)).json()

    assert lines == ["working on rleaas://CartPole@1", "episode 5 done"]
    assert platform.http.get(route.format(job_id), params={"limit": 1}).json() == lines[-1:]


def test_log_pages_lead_to_the_end_of_the_log(trained: tuple[Running, str]) -> None:
    platform, job_id = trained
    url = f"/api/training/jobs/{job_id}/log-page"

    first = LogPage.model_validate(platform.ok(platform.http.get(url, params={"wait_seconds": 5})))
    last = LogPage.model_validate(
        platform.ok(platform.http.get(url, params={"cursor": first.cursor, "wait_seconds": 5}))
    )

    assert first.lines[-1] == "episode 5 done"
    assert (last.lines, last.done) == ([], True)


def test_a_worker_that_crashes_fails_its_job_with_its_last_words(start: Start) -> None:
    platform = start(plan=[("crash", {})])
    platform.ready()
    job_id = platform.train()

    assert platform.finished("training", job_id).startswith("failed")
    job = job_of(platform, job_id)
    ended = "ended by itself with exit code 3 before the job was done"
    assert job.reason.startswith(f"its worker {ended} (it was started again 3 times before")
    assert "and each time so); look for os._exit" in job.reason
    assert "it broke" in job.reason
    assert [(one["ended"], one["exit_code"]) for one in job.attempts] == [(ended, 3)] * 4
    assert (job.attempt, job.restarts) == (4, 3)


def test_a_worker_that_reports_failure_gives_the_reason(start: Start) -> None:
    platform = start(plan=[("failed", {"error": "the environment has no actions"})])
    platform.ready()
    job_id = platform.train()

    assert platform.finished("training", job_id).startswith("failed")
    assert job_of(platform, job_id).reason == "the environment has no actions"


def test_cancelling_a_running_job_ends_it_through_its_worker(start: Start) -> None:
    platform = start(plan=[("until_cancelled", {})])
    platform.ready()
    job_id = platform.train()

    reply = platform.http.post(f"/api/training/jobs/{job_id}/cancel")

    assert platform.ok(reply)["status"] == "cancelled"
    assert job_of(platform, job_id).status == "cancelled"


def test_the_reply_to_a_cancel_is_the_whole_job(start: Start) -> None:
    platform = start(plan=[("until_cancelled", {})])
    platform.ready()
    job_id = platform.train(num_episodes=7, config={"gamma": 0.5})

    reply = platform.ok(platform.http.post(f"/api/training/jobs/{job_id}/cancel"))

    assert reply == platform.ok(platform.http.get(f"/training/{job_id}"))
    job = TrainingJob.model_validate(reply)
    assert (job.environment_name, job.algorithm, job.num_episodes) == ("CartPole", "PPO", 7)
    assert reply["config"] == {"gamma": 0.5}


def test_a_worker_that_has_not_started_is_ended_by_a_cancel_at_once(start: Start) -> None:
    platform = start(plan=[("never_starts", {})], patience=Patience(to_cancel=60.0))
    platform.ready()
    job_id = platform.train()
    log = f"/api/training/jobs/{job_id}/log-page"
    assert platform.ok(platform.http.get(log, params={"wait_seconds": 10}))["lines"]

    reply = platform.http.post(f"/api/training/jobs/{job_id}/cancel")

    assert platform.ok(reply)["status"] == "cancelled"


def test_a_worker_that_ignores_the_cancel_is_killed(start: Start) -> None:
    platform = start(plan=[("ignore_cancel", {})])
    platform.ready()
    job_id = platform.train()
    url = f"/api/training/jobs/{job_id}/log-page"
    platform.http.get(url, params={"wait_seconds": 10})

    platform.http.post(f"/api/training/jobs/{job_id}/cancel")

    assert platform.finished("training", job_id) == "cancelled"


def test_a_job_that_nobody_began_is_cancelled_at_once(start: Start) -> None:
    platform = start(plan=[("until_cancelled", {})], max_workers=1)
    platform.ready()
    running = platform.train()
    pending = platform.train()

    cancelled = platform.ok(platform.http.post(f"/api/training/jobs/{pending}/cancel"))

    assert cancelled["status"] == "cancelled"
    assert job_of(platform, running).status in ("pending", "running")


def test_cancelling_twice_says_the_same(start: Start) -> None:
    platform = start(plan=[("until_cancelled", {})])
    platform.ready()
    job_id = platform.train()

    replies = [platform.http.post(f"/api/training/jobs/{job_id}/cancel") for _ in range(2)]

    assert platform.ok(replies[0]) == platform.ok(replies[1])


def test_a_completed_job_cannot_be_cancelled(trained: tuple[Running, str]) -> None:
    platform, job_id = trained

    reply = platform.http.post(f"/api/training/jobs/{job_id}/cancel")

    assert (reply.status_code, reply.json()["code"]) == (409, "job_finished")


def test_the_same_idempotency_key_is_the_same_job(platform: Running) -> None:
    platform.ready()
    headers = {"Idempotency-Key": "k1"}

    one = platform.http.post("/train/CartPole", json={"num_episodes": 3}, headers=headers)
    two = platform.http.post("/train/CartPole", json={"num_episodes": 3}, headers=headers)
    other = platform.http.post("/train/CartPole", json={"num_episodes": 4}, headers=headers)

    assert platform.ok(one)["job_id"] == platform.ok(two)["job_id"]
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")


def test_a_repeated_request_is_answered_when_the_environment_is_gone_by_then(
    platform: Running,
) -> None:
    platform.ready()
    headers = {"Idempotency-Key": "k1"}
    one = platform.http.post("/train/CartPole", json={"num_episodes": 3}, headers=headers)
    platform.ok(platform.http.post("/api/environments/CartPole/deprovision"))
    refused = platform.http.post("/train/CartPole", json={"num_episodes": 3})

    two = platform.http.post("/train/CartPole", json={"num_episodes": 3}, headers=headers)

    assert refused.status_code == 409
    assert platform.ok(one)["job_id"] == platform.ok(two)["job_id"]


def test_jobs_are_listed_newest_first_by_page_and_status(platform: Running) -> None:
    platform.ready()
    made = [platform.train() for _ in range(3)]
    for job_id in made:
        platform.finished("training", job_id)

    def ids(**params: object) -> tuple[list[str], object]:
        reply = platform.http.get(
            "/api/training/jobs", params={key: str(value) for key, value in params.items()}
        )
        page = platform.ok(reply)
        return [str(item["job_id"]) for item in platform.listed(page, "jobs")], page["cursor"]

    everything, _ = ids()
    first, cursor = ids(limit=2)
    second, end = ids(limit=2, cursor=cursor)

    assert everything == made[::-1]
    assert first + second == everything
    assert end is None
    assert ids(status="failed") == ([], None)


def test_a_job_that_ran_when_its_server_stopped_goes_on_at_the_next_start(start: Start) -> None:
    first = start(plan=[("until_cancelled", {})])
    first.ready()
    job_id = first.train()
    first.http.get(f"/api/training/jobs/{job_id}/log-page", params={"wait_seconds": 10})
    first.server.stop()

    second = start()

    assert second.finished("training", job_id) == "completed"
    row = second.ok(second.http.get(f"/training/{job_id}"))
    assert (row["attempt"], row["restarts"]) == (2, 0)
    ends = [one["ended"] for one in second.listed(row, "attempts")]
    assert ends == ["was stopped with its server", "reported completed"]


def test_what_a_restarted_job_warns_of_again_is_told_once(start: Start) -> None:
    curve: list[tuple[str, dict[str, object]]] = [
        ("metric", {"episode": episode, "avg_reward": 100.0 if episode < 11 else 40.0})
        for episode in (9, 10, 11)
    ]
    tier: dict[str, object] = {
        "from_tier": 1,
        "current_tier": 2,
        "window": 10,
    }
    dull: dict[str, object] = {"value": 1.5}
    platform = start(
        plan=[
            *curve,
            ("alert", {"kind": "tier_advance", **tier, "success_rate": 0.8}),
            ("alert", {"kind": "reward_collapse_alert", **dull}),
            ("crash_at_first", {}),
            ("alert", {"kind": "tier_advance", **tier, "success_rate": 0.9}),
            ("alert", {"kind": "tier_advance", **tier, "from_tier": 2, "current_tier": 3}),
            ("completed", {}),
        ]
    )
    platform.ready()
    wanted = {"environment_name": "CartPole", "alert_thresholds": {"avg_reward_drop": 50}}
    platform.ok(platform.http.post("/governance/configure", json=wanted))

    job_id = platform.train(num_episodes=20)

    assert platform.finished("training", job_id) == "completed"
    assert platform.ok(platform.http.get(f"/training/{job_id}"))["restarts"] == 1
    asked: dict[str, str | int] = {"job": job_id, "after": 0}
    told = platform.listed(platform.ok(platform.http.get("/api/events", params=asked)), "events")
    data = [
        (one["kind"], one["data"])
        for one in told
        if one["kind"] in {"tier_advance", "reward_collapse_alert"}
    ]
    drop = {"threshold": "avg_reward_drop", "limit": 50.0, "value": 60.0, "stopped": False}
    assert data == [
        ("reward_collapse_alert", drop),
        ("tier_advance", {**tier, "success_rate": 0.8}),
        ("reward_collapse_alert", dull),
        ("tier_advance", {**tier, "from_tier": 2, "current_tier": 3}),
    ]


def test_training_pins_the_version_it_was_asked_for(start: Start, mesh: FakeMesh) -> None:
    platform = start()
    platform.ready()
    platform.register(kwargs={"x": 1})

    old = platform.train(environment_version=1)
    pinned = platform.train("CartPole@1")
    new = platform.train()

    assert [job_of(platform, one).environment_version for one in (old, pinned, new)] == [1, 1, 2]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"config": {"learning_rte": 0.1}}, "learning_rate"),
        ({"algorithm": "DQN", "config": {"n_epochs": 3}}, "exploration_fraction"),
        ({"algorithm": "XYZ"}, "unknown algorithm"),
        ({"num_episodes": 0}, "num_episodes"),
        ({"num_episodes": True}, "num_episodes"),
        ({"config": {"reward_fn": "x"}}, "reward_fn"),
        ({"seed": 1, "config": {"seed": 2}}, "seed"),
        ({"num_episode": 5}, "num_episodes"),
    ],
)
def test_a_request_with_a_mistake_is_refused_by_name(
    platform: Running, body: dict[str, object], says: str
) -> None:
    platform.ready()

    reply = platform.http.post("/train/CartPole", json=body)

    assert reply.status_code == 422
    assert says in reply.json()["detail"] + (reply.json().get("hint") or "")


def test_training_on_what_cannot_be_served_is_a_conflict(platform: Running, mesh: FakeMesh) -> None:
    mesh.refuse["gym://Nope-v0"] = "no such id"
    platform.register("Nope", source="gym://Nope-v0")
    platform.http.get("/api/environments/Nope/endpoint")
    platform.register("Bank", source="custom")

    failed = platform.http.post("/train/Nope", json={})
    sourceless = platform.http.post("/train/Bank", json={})

    assert (failed.status_code, failed.json()["code"]) == (409, "environment_failed")
    assert (sourceless.status_code, sourceless.json()["code"]) == (
        409,
        "environment_without_source",
    )


def test_resuming_from_a_checkpoint_needs_one_that_exists(trained: tuple[Running, str]) -> None:
    platform, job_id = trained

    missing = platform.http.post("/train/CartPole", json={"resume_from_checkpoint": "ckpt_x"})
    resumed = platform.train(resume_from_checkpoint=f"ckpt_{job_id}_final")

    assert (missing.status_code, missing.json()["code"]) == (404, "checkpoint_not_found")
    job = job_of(platform, resumed)
    assert job["resume_from_checkpoint"] == f"ckpt_{job_id}_10"

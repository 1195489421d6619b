"""Work, and what opens an environment, is given to nobody without a record."""

from __future__ import annotations

from .conftest import Running, Start

CHECKPOINT = {"episode": 5, "avg_reward": 1, "content": "p"}


def test_each_job_has_a_record_of_who_started_it_and_who_cancelled_it(start: Start) -> None:
    platform = start(plan=[("started", {}), ("until_cancelled", {})])
    platform.ready()
    once = {"idempotency-key": "once"}
    made = [
        platform.ok(platform.http.post("/train/CartPole", json={"num_episodes": 3}, headers=once))
        for _ in range(2)
    ]
    job_id = str(made[0]["job_id"])
    platform.ok(platform.http.post(f"/api/training/jobs/{job_id}/cancel"))

    assert platform.audited(f"job:{job_id}") == ["training.created", "training.cancel_requested"]


def test_each_evaluation_has_a_record_of_who_started_it(start: Start) -> None:
    platform = start(plan=[("checkpoint", CHECKPOINT), ("completed", {})])
    platform.ready()
    job_id = platform.train()
    platform.finished("training", job_id)
    asked = {"agent_checkpoint_id": f"ckpt_{job_id}_5", "seeds": [1]}
    made = platform.ok(platform.http.post("/api/evaluations", json=asked))

    assert platform.audited(f"job:{made['id']}") == ["evaluation.created"]


def test_the_token_of_an_environment_is_granted_with_a_record_that_does_not_hold_it(
    platform: Running,
) -> None:
    environment = platform.register()
    granted = platform.ok(platform.http.get("/api/environments/CartPole/endpoint"))
    records = platform.listed(platform.ok(platform.http.get("/api/audit")), "events")

    assert (
        platform.audited(f"environment:{environment['id']}")[-1] == "environment.endpoint_granted"
    )
    assert str(granted["token"]) not in str(records)

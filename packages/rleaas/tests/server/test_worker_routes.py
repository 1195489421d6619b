import hashlib
import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from rlcore import mint_token
from rleaas.server.rules.worker_tokens import worker_subject
from rleaas.server.store.tables import JobRow

from .archives import policy_file
from .conftest import IMPATIENT, Running, Start

CONTENT = policy_file()
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def at_work(start: Start) -> Iterator[tuple[Running, str, httpx.Client]]:
    """A running job, and a client with its worker's token beside the worker itself."""
    platform = start(plan=[("until_cancelled", {})])
    platform.ready()
    job_id = platform.train(num_episodes=10)
    platform.http.get(f"/api/training/jobs/{job_id}/log-page", params={"wait_seconds": 10})
    token = mint_token(
        platform.server.state.keys.workers,
        subject=worker_subject("training", job_id),
        expires_at=time.time() + 60,
    )
    with httpx.Client(
        base_url=f"{platform.server.url}/api/worker/training/{job_id}",
        headers={"Authorization": f"Bearer {token}"},
        trust_env=False,
    ) as http:
        yield platform, job_id, http


def put(http: httpx.Client, job_id: str, *, sha256: str = DIGEST, **params: str) -> httpx.Response:
    return http.put(
        f"/checkpoints/ckpt_{job_id}_5",
        params={"episode": "5", **params},
        content=CONTENT,
        headers={"x-content-sha256": sha256},
    )


def test_a_batch_that_comes_twice_counts_once(
    at_work: tuple[Running, str, httpx.Client],
) -> None:
    platform, job_id, http = at_work
    batch = {
        "seq": 10**6,
        "reports": [
            {"type": "metric", "at": "2026-01-01T00:00:00+00:00", "data": {"episode": 5}},
            {"type": "log", "data": {"line": "once"}},
        ],
    }

    replies = [http.post("/reports", json=batch).json() for _ in range(2)]

    assert [reply["accepted"] for reply in replies] == [True, False]
    metrics = platform.ok(platform.http.get(f"/api/training/jobs/{job_id}/metrics"))["metrics"]
    assert metrics == [{"episode": 5, "job_id": job_id, "timestamp": "2026-01-01T00:00:00Z"}]
    log = platform.http.get(f"/api/training/jobs/{job_id}/logs").json()
    assert log.count("once") == 1


def test_lines_of_a_batch_that_could_not_be_committed_are_in_the_log_once(
    at_work: tuple[Running, str, httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform, job_id, http = at_work
    logs = platform.server.state.logs
    batch = {"seq": 10**6, "reports": [{"type": "log", "data": {"lines": ["same", "same"]}}]}
    write = logs.append_once

    def write_and_die(job: str, number: str, lines: list[str]) -> None:
        write(job, number, lines)
        if not lines:  # of the worker that is really there
            return
        logs.append(job, ["of the worker itself"])
        raise OSError("the server dies before its commit")

    monkeypatch.setattr(logs, "append_once", write_and_die)
    assert http.post("/reports", json=batch).status_code >= 500
    monkeypatch.undo()
    assert http.post("/reports", json=batch).json()["accepted"] is True
    assert http.post("/reports", json={**batch, "seq": 10**6 + 1}).json()["accepted"] is True

    log = platform.http.get(f"/api/training/jobs/{job_id}/logs").json()
    said = [line for line in log if line in {"same", "of the worker itself"}]
    assert said == ["same", "same", "of the worker itself", "same", "same"]


def test_progress_counts_episodes_and_only_the_end_is_a_hundred(
    at_work: tuple[Running, str, httpx.Client],
) -> None:
    platform, job_id, http = at_work
    http.post(
        "/reports", json={"seq": 10**6, "reports": [{"type": "metric", "data": {"episode": 10}}]}
    )

    job = platform.ok(platform.http.get(f"/training/{job_id}"))

    assert (job["progress"], job["current_episode"]) == (99, 10)


def test_a_file_that_is_not_what_was_promised_is_not_kept(
    at_work: tuple[Running, str, httpx.Client],
) -> None:
    platform, job_id, http = at_work

    reply = put(http, job_id, sha256="0" * 64)

    assert (reply.status_code, reply.json()["code"]) == (422, "checkpoint_corrupted")
    assert platform.http.get(f"/api/checkpoints/ckpt_{job_id}_5").status_code == 404
    assert platform.server.state.artifacts.digests() == set()


def test_a_file_that_comes_twice_is_one_checkpoint(
    at_work: tuple[Running, str, httpx.Client],
) -> None:
    platform, job_id, http = at_work

    stored = [put(http, job_id, avg_reward="7.5").json() for _ in range(2)]

    assert stored[0]["sha256"] == DIGEST
    page = platform.ok(platform.http.get(f"/api/training/jobs/{job_id}/checkpoints"))
    (checkpoint,) = platform.listed(page, "checkpoints")
    assert (checkpoint["episode"], checkpoint["avg_reward"]) == (5, 7.5)


def test_a_checkpoint_without_digest_or_episode_is_refused(
    at_work: tuple[Running, str, httpx.Client],
) -> None:
    _, job_id, http = at_work

    reply = http.put(f"/checkpoints/ckpt_{job_id}_5", content=CONTENT)

    assert reply.status_code == 422
    assert "x-content-sha256" in reply.json()["detail"]
    assert "episode" in reply.json()["detail"]


def test_what_is_no_policy_of_the_job_is_refused_and_not_kept(
    at_work: tuple[Running, str, httpx.Client],
) -> None:
    platform, job_id, http = at_work

    def refused(content: bytes, where: str = "") -> list[str]:
        reply = http.put(
            f"/checkpoints/ckpt_{job_id}_5{where}",
            params={"episode": "5"},
            content=content,
            headers={"x-content-sha256": hashlib.sha256(content).hexdigest()},
        )
        assert reply.status_code == 422
        assert f"'ckpt_{job_id}_5'" in reply.json()["detail"]
        return [reply.json()["code"], reply.json()["detail"].partition(" is ")[2]]

    assert refused(b"a policy")[0] == "checkpoint_unreadable"
    assert refused(CONTENT, "/state")[0] == "checkpoint_unreadable"
    assert refused(policy_file(algorithm="DQN")) == [
        "checkpoint_of_other_algorithm",
        "of 'DQN', and its job trains 'PPO'",
    ]
    assert platform.server.state.artifacts.digests() == set()


def test_an_id_that_is_a_path_is_refused(at_work: tuple[Running, str, httpx.Client]) -> None:
    _, _, http = at_work

    reply = http.put(
        "/checkpoints/..x",
        params={"episode": "1"},
        content=b"x",
        headers={"x-content-sha256": DIGEST},
    )

    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_checkpoint_id")


def test_a_job_that_has_ended_takes_no_more_reports_or_checkpoints(
    at_work: tuple[Running, str, httpx.Client],
) -> None:
    platform, job_id, http = at_work
    platform.http.post(f"/api/training/jobs/{job_id}/cancel")

    reply = http.post("/reports", json={"seq": 10**7, "reports": [{"type": "completed"}]})
    upload = put(http, job_id)

    assert reply.json() == {"cancel_requested": True, "accepted": False}
    assert (upload.status_code, upload.json()["code"]) == (409, "job_finished")
    assert platform.finished("training", job_id) == "cancelled"


@pytest.mark.parametrize(
    "body",
    [
        {"seq": 0, "reports": []},
        {"seq": 1, "reports": [{"type": "nonsense"}]},
        {"reports": []},
        {"seq": 1, "reports": {}},
    ],
)
def test_reports_of_another_shape_are_refused(
    at_work: tuple[Running, str, httpx.Client], body: dict[str, object]
) -> None:
    _, _, http = at_work

    assert http.post("/reports", json=body).status_code == 422


def test_a_workers_token_ends_a_minute_after_its_job(
    at_work: tuple[Running, str, httpx.Client],
) -> None:
    platform, job_id, http = at_work
    platform.ok(platform.http.post(f"/api/training/jobs/{job_id}/cancel"))
    platform.finished("training", job_id)
    report = {"seq": 10**6, "reports": [{"type": "heartbeat"}]}
    late = http.post("/reports", json=report)
    with platform.server.state.database.write(1) as session:
        session.get_one(JobRow, job_id).completed_at = datetime.now(UTC) - timedelta(seconds=61)
    platform.server.state.principals.forget()
    after = [http.post("/reports", json=report), http.get("/assignment")]

    assert (late.status_code, late.json()["accepted"]) == (200, False)
    assert [reply.status_code for reply in after] == [401, 401]


def test_a_worker_that_is_killed_while_it_uploads_leaves_nothing_half_written(
    at_work: tuple[Running, str, httpx.Client],
) -> None:
    platform, job_id, http = at_work

    def broken_off() -> Iterator[bytes]:
        yield CONTENT[:3]
        raise ConnectionAbortedError

    with pytest.raises(ConnectionAbortedError):
        http.put(
            f"/checkpoints/ckpt_{job_id}_5",
            params={"episode": "5"},
            content=broken_off(),
            headers={"x-content-sha256": DIGEST},
        )
    data = platform.server.state.settings.data_dir
    until = time.monotonic() + 5
    while (left := [*data.rglob(".incoming-*")]) and time.monotonic() < until:
        time.sleep(0.02)

    assert left == []
    assert platform.server.state.artifacts.digests() == set()
    assert put(http, job_id).json()["sha256"] == DIGEST  # and the next attempt uploads it


def test_a_worker_that_stands_still_is_ended_and_its_job_started_again(start: Start) -> None:
    patience = replace(IMPATIENT, to_report=3.0)
    platform = start(plan=[("until_cancelled", {})], patience=patience)
    platform.ready()
    job_id = platform.train()
    platform.http.get(f"/api/training/jobs/{job_id}/log-page", params={"wait_seconds": 10})

    def row() -> JobRow:
        with platform.server.state.database.read(1) as session:
            return session.get_one(JobRow, job_id)

    handle = row().worker
    assert handle is not None
    os.kill(int(json.loads(handle)["pid"]), signal.SIGSTOP)
    until = time.monotonic() + 20
    while (found := row()).attempts < 2 and time.monotonic() < until:
        time.sleep(0.05)

    assert (found.attempts, found.restarts) == (2, 1)
    assert found.history[0]["ended"] == "did not report for 3 s and was ended"

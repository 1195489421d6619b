import hashlib
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from rlcore import RolloutsUnreadable, mint_token
from rleaas.evaluation.rollouts import RolloutRecord, RolloutWriter, StepRecord, TimelineEvent
from rleaas.server.artifacts.store import ArtifactStore
from rleaas.server.backup.making import backup
from rleaas.server.backup.restoring import restore
from rleaas.server.rollout_files import RolloutFiles, looked_at
from rleaas.server.rules.worker_tokens import worker_subject
from rleaas.server.store import jobs
from rleaas.server.store.rollouts import id_of
from rleaas.server.store.tables import RolloutRow

from .conftest import Running, Start

CALL = TimelineEvent(
    timestamp_ms=5, event_type="TOOL_RESULT", tool_name="lookup", content='{"ssn": "123"}'
)
EPISODE = RolloutRecord(
    id="first",
    index=0,
    seed=4,
    outcome="success",
    success=True,
    reward=0.5,
    scenario_id="wire_1",
    steps=(
        StepRecord(index=0, tool="lookup", arguments={"ssn": "123", "a": 1}, timeline=(CALL,)),
        StepRecord(index=1, tool="wire", reward=0.5, reward_breakdown={"task": 0.5}),
    ),
    state={"checked": True},
    verdicts=({"score": 1.0, "passed": True, "verifier_id": "ver_aml"},),
    score=1.0,
)
FAILED = RolloutRecord(id="second", index=1, outcome="env_error", error="it broke")


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


def file_of(path: Path, *records: RolloutRecord) -> bytes:
    with RolloutWriter(path) as writer:
        for record in records:
            writer.add(record)
    return path.read_bytes()


def put(http: httpx.Client, content: bytes, name: str = "part-0") -> httpx.Response:
    digest = hashlib.sha256(content).hexdigest()
    return http.put(f"/rollouts/{name}", content=content, headers={"x-content-sha256": digest})


def stored(platform: Running) -> list[Path]:
    artifacts = platform.server.state.settings.data_dir / "artifacts"
    return [one for one in artifacts.rglob("*") if one.is_file() and len(one.name) == 64]


def test_uploaded_episodes_are_listed_read_step_by_step_and_go_with_their_environment(
    at_work: tuple[Running, str, httpx.Client], tmp_path: Path
) -> None:
    platform, job_id, http = at_work
    content = file_of(tmp_path / "a", EPISODE, FAILED)
    with platform.server.state.database.write(1) as session:
        job = jobs.find(session, jobs.TRAINING, job_id)
        logic = {"conditions": ["checked"], "compliance_tags": ["AML"]}
        judges = {"definitions": [{"id": "ver_aml", "type": "rule_based", "logic": logic}]}
        job.request = {**job.request, "verifiers": judges}

    told = Running.ok(put(http, content))
    again = Running.ok(put(http, content))

    assert told == again
    assert (told["rollouts"], told["size_bytes"]) == (2, len(content))
    page = Running.ok(platform.http.get("/api/rollouts/CartPole"))
    assert page["total"] == 2
    assert {one["id"] for one in Running.listed(page, "rollouts")} == {
        id_of(job_id, 0),
        id_of(job_id, 1),
    }
    one = Running.ok(platform.http.get(f"/api/rollouts/CartPole/{id_of(job_id, 0)}"))
    assert (one["total_steps"], one["score"], one["total_reward"]) == (2, 1.0, 0.5)
    assert one["state"] == {"checked": True}
    first, second = Running.listed(one, "steps")
    assert (first["tool"], first["arguments"]) == ("lookup", {"ssn": "123", "a": 1})
    assert Running.listed(first, "timeline_events")[0]["event_type"] == "TOOL_RESULT"
    assert second["reward_breakdown"] == {"task": 0.5}
    assert Running.listed(one, "verifier_results")[0]["compliance_tags"] == ["AML"]
    reply = platform.http.get(f"/api/rollout-files/{told['sha256']}")
    assert (reply.content, reply.headers["x-content-sha256"]) == (content, told["sha256"])
    assert platform.http.get(f"/api/rollout-files/{'0' * 64}").status_code == 404
    failed = Running.ok(platform.http.get(f"/api/rollouts/CartPole/{id_of(job_id, 1)}"))
    assert (failed["status"], failed["error"], failed["steps"]) == ("failed", "it broke", [])

    platform.collect()
    assert len(stored(platform)) == 1
    platform.http.post(f"/api/training/jobs/{job_id}/cancel")
    platform.finished("training", job_id)
    Running.ok(platform.http.delete("/api/custom-environments/CartPole"))
    platform.collect()
    assert stored(platform) == []


def test_an_episode_that_comes_again_replaces_the_first_and_an_altered_file_is_not_shown(
    at_work: tuple[Running, str, httpx.Client], tmp_path: Path
) -> None:
    platform, job_id, http = at_work
    Running.ok(put(http, file_of(tmp_path / "a", EPISODE, FAILED)))
    judged = replace(FAILED, outcome="success", reward=2.0, error=None, steps=EPISODE.steps)

    Running.ok(put(http, file_of(tmp_path / "b", judged), "part-1"))

    one = Running.ok(platform.http.get(f"/api/rollouts/CartPole/{id_of(job_id, 1)}"))
    assert (one["outcome"], one["total_reward"], one["status"]) == ("success", 2.0, "completed")
    assert one["total_steps"] == len(Running.listed(one, "steps")) == 2
    assert one["error"] is None
    other = Running.ok(platform.http.get(f"/api/rollouts/CartPole/{id_of(job_id, 0)}"))
    assert len(Running.listed(other, "steps")) == 2

    for place in stored(platform):
        place.write_bytes(place.read_bytes()[:-1] + b"\0")
    reply = platform.http.get(f"/api/rollouts/CartPole/{id_of(job_id, 0)}")
    assert (reply.status_code, reply.json()["code"]) == (500, "rollouts_unreadable")


def test_a_file_that_nobody_could_read_leaves_nothing_and_what_is_hidden_is_in_no_file(
    at_work: tuple[Running, str, httpx.Client], tmp_path: Path
) -> None:
    platform, job_id, http = at_work
    good = file_of(tmp_path / "a", EPISODE)
    refused = {
        "cut off": good[:-20],
        "altered": good[:60] + b"\xff\xff\xff" + good[63:],
        "no parquet": b"PAR1 and so on PAR1",
        "reward beyond": file_of(tmp_path / "b", replace(EPISODE, reward=1e300)),
        "a reward that is none": file_of(
            tmp_path / "c", replace(EPISODE, steps=(StepRecord(index=0, reward=float("nan")),))
        ),
        "index twice": file_of(tmp_path / "d", EPISODE, replace(EPISODE, id="other")),
        "negative index": file_of(tmp_path / "e", replace(EPISODE, index=-1)),
    }

    for what, content in refused.items():
        reply = put(http, content)
        assert (reply.status_code, reply.json()["code"]) == (422, "rollouts_unreadable"), what
    assert put(http, b"").json()["code"] == "rollouts_empty"
    wrong = http.put("/rollouts/a", content=good, headers={"x-content-sha256": "0" * 64})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "rollouts_corrupted")
    assert Running.ok(platform.http.get("/api/rollouts-all"))["total"] == 0
    assert stored(platform) == []

    asked = {"environment_name": "CartPole", "pii_fields": ["ssn"]}
    Running.ok(platform.http.post("/governance/configure", json=asked))

    Running.ok(put(http, file_of(tmp_path / "a", EPISODE)))

    one = Running.ok(platform.http.get(f"/api/rollouts/CartPole/{id_of(job_id, 0)}"))
    assert "123" not in str(Running.listed(one, "steps"))
    assert Running.listed(one, "steps")[0]["arguments"] == {"ssn": "[masked]", "a": 1}
    platform.collect()
    assert len(stored(platform)) == 1


def test_a_backup_has_the_steps_of_rollouts(
    at_work: tuple[Running, str, httpx.Client], tmp_path: Path
) -> None:
    platform, job_id, http = at_work
    if platform.server.state.settings.database_url is not None:
        pytest.skip("which files are needed is asked in the same way of every engine")
    Running.ok(put(http, file_of(tmp_path / "a", EPISODE)))
    platform.http.post(f"/api/training/jobs/{job_id}/cancel")
    platform.finished("training", job_id)
    data = platform.server.state.settings.data_dir
    (place,) = stored(platform)
    made = backup(data, data / "rleaas.db", tmp_path / "one.zip")
    place.unlink()
    without = backup(data, data / "rleaas.db", tmp_path / "two.zip")

    again = tmp_path / "again"
    restore(tmp_path / "one.zip", again, again / "rleaas.db")

    assert made.missing == ()
    assert len(without.missing) == 1
    assert (again / place.relative_to(data)).is_file()


def test_rows_in_another_order_than_their_file_get_their_own_steps(
    tmp_path: Path,
) -> None:
    played = [
        replace(EPISODE, id=f"e{number}", index=number, reward=float(number))
        for number in (4, 0, 3, 1, 2)
    ]
    artifacts = ArtifactStore(None, tmp_path / "artifacts", "me")
    with artifacts.incoming("it") as incoming:
        content = file_of(tmp_path / "a", *played)
        incoming.write(content)
        received = incoming.complete(hashlib.sha256(content).hexdigest())
        with looked_at(received, "it", []) as (kept, told), artifacts.keep(kept):
            assert [one["index"] for one in told] == [4, 0, 3, 1, 2]
    rows = [RolloutRow(file_sha256=kept.sha256, file_place=place) for place in (1, 3, 4, 2, 0)]

    found = list(RolloutFiles(artifacts).of_rows([*rows, RolloutRow()]))

    assert [None if one is None else one.index for one in found] == [0, 1, 2, 3, 4, None]
    with pytest.raises(RolloutsUnreadable, match="ends before place 9"):
        RolloutFiles(artifacts).of_row(RolloutRow(file_sha256=kept.sha256, file_place=9))

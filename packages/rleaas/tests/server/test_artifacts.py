"""Files by their digest: written whole, kept once, checked, collected when nobody needs them."""

# fsspec and s3fs have no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import s3fs  # type: ignore[import-untyped]  # it has no stubs
from rlcore import CheckpointCorrupted, ConfigurationError, ServerFailure
from rleaas.server.artifacts.collecting import ArtifactRound
from rleaas.server.artifacts.incoming import PREFIX
from rleaas.server.artifacts.store import ArtifactStore, member_of
from rleaas.server.backup.making import backup
from rleaas.server.backup.restoring import restore
from rleaas.server.body_limit import MAX_BODY
from rleaas.server.settings import ServerSettings
from rleaas.server.state import ServerState
from rleaas.training.state_file import write_state

from .archives import digest_of, policy_file, state_file
from .conftest import Running, Start

CONTENT = b"weights"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
POLICY = policy_file()


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of a real HTTP server that speaks S3, with a bucket."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The URL of a place in it, and the variables that say how to get there."""
    for name, value in {
        "AWS_ENDPOINT_URL": s3,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    name = f"bucket-{abs(hash(request.node.name)) % 10**8}"
    s3fs.S3FileSystem(endpoint_url=s3).mkdir(name)
    return f"s3://{name}/artifacts"


def put(store: ArtifactStore, content: bytes = CONTENT) -> str:
    with store.incoming("a file") as incoming:
        incoming.write(content)
        received = incoming.complete(hashlib.sha256(content).hexdigest())
        with store.keep(received):
            return received.sha256


def stores(tmp_path: Path, url: str | None) -> ArtifactStore:
    return ArtifactStore(url, tmp_path / "artifacts", "me", grace=timedelta(0))


def kept_once_checked_and_collected(store: ArtifactStore, tmp_path: Path) -> None:
    digests = [put(store), put(store), put(store, b"other")]
    assert store.digests() == set(digests) == {DIGEST, digests[2]}
    with store.fetched(DIGEST, "ckpt_1") as path:
        assert path.read_bytes() == CONTENT
    assert store.size(DIGEST) == len(CONTENT)
    assert list(tmp_path.rglob(f"{PREFIX}*")) == []

    assert store.collect(lambda: {DIGEST}) == 1
    assert store.digests() == {DIGEST}
    store.discard({DIGEST}, lambda: {DIGEST})
    assert store.digests() == {DIGEST}
    store.discard({DIGEST}, lambda: set())
    assert (store.digests(), store.size(DIGEST)) == (set(), None)
    with pytest.raises(ServerFailure, match="gone"), store.fetched(DIGEST, "ckpt_1"):
        pass


def test_a_directory_keeps_bytes_once_and_collects_what_nobody_needs(tmp_path: Path) -> None:
    kept_once_checked_and_collected(stores(tmp_path, None), tmp_path)


def test_s3_keeps_bytes_once_and_collects_what_nobody_needs(tmp_path: Path, bucket: str) -> None:
    kept_once_checked_and_collected(stores(tmp_path, bucket), tmp_path)


@pytest.mark.parametrize("where", ["directory", "s3"])
def test_changed_bytes_are_not_given_out(
    tmp_path: Path, where: str, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("bucket") if where == "s3" else None
    store = stores(tmp_path, url)
    put(store)
    name = member_of(DIGEST).removeprefix("artifacts/")
    if url is None:
        (tmp_path / "artifacts" / name).write_bytes(b"weightz")
    else:
        s3fs.S3FileSystem().pipe_file(f"{url.removeprefix('s3://')}/{name}", b"weightz")

    with pytest.raises(CheckpointCorrupted, match="ckpt_1"), store.fetched(DIGEST, "ckpt_1"):
        pass
    with pytest.raises(CheckpointCorrupted):
        store.check(DIGEST, "ckpt_1")


def test_s3_that_gives_other_bytes_back_stores_nothing(
    tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rleaas.server.artifacts.places import Remote

    store = stores(tmp_path, bucket)

    def rotten(self: Remote, name: str) -> Iterator[bytes]:
        yield b"rotten"

    monkeypatch.setattr(Remote, "chunks", rotten)
    with pytest.raises(ServerFailure) as failed:
        put(store)
    assert (failed.value.code, failed.value.retryable) == ("artifact_not_stored", True)
    assert store.digests() == set()


def test_a_file_is_not_collected_before_its_row_is_written(tmp_path: Path) -> None:
    store = stores(tmp_path, None)
    with store.incoming("a file") as incoming:
        incoming.write(CONTENT)
        with store.keep(incoming.complete(DIGEST)):
            assert store.collect(lambda: set()) == 0
            store.discard({DIGEST}, lambda: set())
            assert store.digests() == {DIGEST}
    assert store.collect(lambda: set()) == 1


def test_a_young_file_without_a_row_is_left_alone(tmp_path: Path) -> None:
    store = ArtifactStore(None, tmp_path / "artifacts", "me")
    put(store)
    assert store.collect(lambda: set()) == 0
    path = tmp_path / member_of(DIGEST)
    old = time.time() - 2 * 3600
    os.utime(path, (old, old))
    put(store)  # once more: it is young again, though it was there
    assert store.collect(lambda: set()) == 0
    os.utime(path, (old, old))
    assert store.collect(lambda: set()) == 1


@pytest.mark.parametrize("url", [None, "s3"])
def test_a_place_of_another_server_is_refused(
    tmp_path: Path, url: str | None, request: pytest.FixtureRequest
) -> None:
    place = request.getfixturevalue("bucket") if url else None
    stores(tmp_path, place)
    stores(tmp_path, place)  # the same server again
    with pytest.raises(ConfigurationError, match="another server"):
        ArtifactStore(place, tmp_path / "artifacts", "somebody else")


@pytest.mark.parametrize("url", ["s3://no-such-bucket-here/x", "nonsense://x"])
def test_a_place_that_cannot_be_used_is_refused(tmp_path: Path, url: str, bucket: str) -> None:
    with pytest.raises(ConfigurationError, match=url):
        ArtifactStore(url, tmp_path / "artifacts", "me")


KILLED = """
import hashlib, os, sys
from pathlib import Path
from rleaas.server.artifacts import places
from rleaas.server.artifacts.store import ArtifactStore
store = ArtifactStore(None, Path(sys.argv[1]), "me")
content = b"x" * 5_000_000
def wait(descriptor):
    print("written", flush=True)
    sys.stdin.read()
with store.incoming("a file") as incoming:
    incoming.write(content)
    os.fsync = wait
    incoming.complete(hashlib.sha256(content).hexdigest())
"""


def test_a_killed_server_leaves_no_half_file_in_place(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "artifacts")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    (left,) = (tmp_path / "artifacts").glob(f"{PREFIX}*")
    assert left.stat().st_size > 0

    store = stores(tmp_path, None)
    assert (store.digests(), store.collect(lambda: set()), left.exists()) == (set(), 0, True)
    os.utime(left, (0, 0))  # so long that nobody can be writing it
    assert (store.collect(lambda: set()), left.exists()) == (1, False)


PLAN: list[tuple[str, dict[str, object]]] = [
    ("checkpoint", {"episode": 1, "avg_reward": 3.5, "content": "weights"}),
    ("completed", {}),
]


def trained(platform: Running, name: str) -> str:
    platform.ready(name)
    job = platform.train(name)
    assert platform.finished("training", job) == "completed"
    return f"ckpt_{job}_1"


def test_two_jobs_with_the_same_bytes_share_a_file_until_the_last_is_deleted(
    start: Start, engine: str | None
) -> None:
    platform = start(plan=PLAN)
    first, second = trained(platform, "A"), trained(platform, "B")
    path = platform.file_of(first)
    assert path == platform.file_of(second)

    platform.ok(platform.http.delete("/api/environments/A"))
    assert platform.http.get(f"/api/checkpoints/{second}/file").content == POLICY
    platform.ok(platform.http.delete("/api/environments/B"))
    if engine is not None:
        platform.collect()
    assert not path.exists()


def test_checkpoints_of_an_earlier_release_are_taken_over(start: Start, tmp_path: Path) -> None:
    platform = start(plan=PLAN)
    checkpoint = trained(platform, "A")
    state, path = platform.server.state, platform.file_of(checkpoint)
    old = state.settings.data_dir / "checkpoints" / checkpoint[5:-2]
    old.mkdir(parents=True)
    path.rename(old / f"{checkpoint}.zip")

    ArtifactRound(state.database, state.artifacts, state.settings.data_dir).take_over()

    assert platform.http.get(f"/api/checkpoints/{checkpoint}/file").content == POLICY
    assert not old.parent.exists()


def test_a_server_on_s3_trains_backs_up_and_restores(
    start: Start, tmp_path: Path, bucket: str, engine: str | None
) -> None:
    if engine is not None:
        pytest.skip("where rows lie makes no difference to files")
    platform = start(plan=PLAN, artifacts_url=bucket)
    checkpoint = trained(platform, "A")
    data = platform.server.state.settings.data_dir
    assert platform.http.get(f"/api/checkpoints/{checkpoint}/file").content == POLICY
    assert not platform.file_of(checkpoint).exists()

    made = backup(data, data / "rleaas.db", tmp_path / "b.zip", artifacts_url=bucket)
    assert made.missing == ()
    restore(tmp_path / "b.zip", tmp_path / "again", tmp_path / "again" / "rleaas.db")
    other = f"{bucket}-2"
    state = ServerState(ServerSettings(data_dir=tmp_path / "again", artifacts_url=other))
    try:
        state.artifact_round.take_over()
        assert state.artifacts.digests() == {digest_of("weights")}
        assert not (tmp_path / "again" / member_of(digest_of("weights"))).exists()
    finally:
        state.database.close()


def test_a_checkpoint_with_a_state_has_both_files(start: Start) -> None:
    platform = start(plan=[("until_cancelled", {})])
    platform.ready()
    job = platform.train()
    platform.http.get(f"/api/training/jobs/{job}/log-page", params={"wait_seconds": 10})
    http = worker(platform, job)
    state = state_file()
    digest = hashlib.sha256(state).hexdigest()
    place = f"/checkpoints/ckpt_{job}_5"

    def send(**params: Any) -> Any:
        return http.put(
            place,
            params={"episode": 5, **params},
            content=POLICY,
            headers={"x-content-sha256": digest_of("weights")},
        )

    missing = send(state_sha256=digest)
    assert (missing.status_code, missing.json()["code"]) == (409, "state_missing")
    assert platform.http.get(f"/api/checkpoints/ckpt_{job}_5/state").status_code == 404
    reply = http.put(f"{place}/state", content=state, headers={"x-content-sha256": digest})
    assert reply.json() == {"sha256": digest, "size_bytes": len(state)}
    stored = platform.ok(send(state_sha256=digest, composite_verifier_score=0.5))

    assert (stored["state_sha256"], stored["state_bytes"]) == (digest, len(state))
    assert stored["metrics"] == {"composite_verifier_score": 0.5}
    assert platform.http.get(f"/api/checkpoints/ckpt_{job}_5/state").content == state
    http.close()


def test_states_and_rollouts_may_be_larger_than_what_other_requests_bring(
    start: Start, tmp_path: Path
) -> None:
    platform = start(plan=[("until_cancelled", {})])
    platform.ready()
    job = platform.train()
    platform.http.get(f"/api/training/jobs/{job}/log-page", params={"wait_seconds": 10})
    http = worker(platform, job)
    write_state(tmp_path / "state", {"optimizer": np.random.default_rng(0).random(MAX_BODY // 6)})
    state = (tmp_path / "state").read_bytes()

    def put(place: str) -> Any:
        digest = hashlib.sha256(state).hexdigest()
        return http.put(place, content=state, headers={"x-content-sha256": digest})

    assert len(state) > MAX_BODY
    assert put(f"/checkpoints/ckpt_{job}_5/state").json()["size_bytes"] == len(state)
    # It is no file of rollouts, which shows only where it is read.
    assert put("/rollouts/part-0").json()["code"] == "rollouts_unreadable"
    http.close()


def worker(platform: Running, job: str) -> Any:
    import httpx
    from rlcore import mint_token
    from rleaas.server.rules.worker_tokens import worker_subject

    token = mint_token(
        platform.server.state.keys.workers,
        subject=worker_subject("training", job),
        expires_at=time.time() + 60,
    )
    return httpx.Client(
        base_url=f"{platform.server.url}/api/worker/training/{job}",
        headers={"Authorization": f"Bearer {token}"},
        trust_env=False,
    )

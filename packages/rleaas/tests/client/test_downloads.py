import hashlib
from pathlib import Path

import pytest
from rlcore import CheckpointCorrupted, CheckpointNotFound, ConfigurationError, UnexpectedReply
from rleaas import AsyncClient, Client
from rleaas.testing import Answers, reply

CONTENT = b"weights" * 100_000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
FILE = "GET /api/checkpoints/c1/file"


def platform(content: bytes = CONTENT, sha256: str | None = SHA256) -> Answers:
    return Answers(
        {
            "GET /api/checkpoints/c1": reply({"id": "c1", "sha256": sha256}),
            FILE: reply(content, headers={"x-content-sha256": SHA256}),
        }
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.iterdir()}


def test_blocking_a_file_appears_complete(tmp_path: Path) -> None:
    with Client(base_url="http://localhost", transport=platform().transport) as client:
        path = client.Checkpoint.get("c1").download(tmp_path / "deep" / "c1.zip")

    assert path.read_bytes() == CONTENT
    assert [one.name for one in path.parent.iterdir()] == ["c1.zip"]


@pytest.mark.anyio
async def test_awaiting_a_file_appears_complete(tmp_path: Path) -> None:
    async with AsyncClient(base_url="http://localhost", transport=platform().transport) as client:
        checkpoint = await client.Checkpoint.get("c1")
        assert await checkpoint.download(tmp_path / "c1.zip") == tmp_path / "c1.zip"

    assert contents(tmp_path) == {"c1.zip": CONTENT}


def test_blocking_other_bytes_are_not_kept(tmp_path: Path) -> None:
    kept = tmp_path / "c1.zip"
    kept.write_text("what was there before")
    answers = platform(content=CONTENT[:-1])
    with Client(base_url="http://localhost", transport=answers.transport) as client:
        checkpoint = client.Checkpoint.get("c1")
        with pytest.raises(CheckpointCorrupted) as caught:
            checkpoint.download(kept)

    error = caught.value
    assert (error.checkpoint_id, error.expected) == ("c1", SHA256)
    assert error.actual == hashlib.sha256(CONTENT[:-1]).hexdigest()
    assert [one.read_text() for one in tmp_path.iterdir()] == ["what was there before"]


@pytest.mark.anyio
async def test_awaiting_other_bytes_are_not_kept(tmp_path: Path) -> None:
    answers = platform(content=b"")
    async with AsyncClient(base_url="http://localhost", transport=answers.transport) as client:
        checkpoint = await client.Checkpoint.get("c1")
        with pytest.raises(CheckpointCorrupted):
            await checkpoint.download(tmp_path / "c1.zip")

    assert contents(tmp_path) == {}


def test_a_checkpoint_that_is_gone_leaves_no_file(tmp_path: Path) -> None:
    answers = Answers({"GET /api/checkpoints/c1": reply({"id": "c1", "sha256": SHA256})})
    with Client(base_url="http://localhost", transport=answers.transport) as client:
        checkpoint = client.Checkpoint.get("c1")
        with pytest.raises(CheckpointNotFound, match="c1"):
            checkpoint.download(tmp_path / "c1.zip")

    assert list(tmp_path.iterdir()) == []


def test_a_file_without_a_digest_on_record_is_not_fetched(tmp_path: Path) -> None:
    answers = platform(sha256=None)
    with Client(base_url="http://localhost", transport=answers.transport) as client:
        checkpoint = client.Checkpoint.get("c1")
        with pytest.raises(UnexpectedReply, match="cannot be verified"):
            checkpoint.download(tmp_path / "c1.zip")

    assert FILE not in {f"{asked.method} {asked.url.path}" for asked in answers.asked}


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with Client(base_url="http://localhost", transport=platform().transport) as client:
        checkpoint = client.Checkpoint.get("c1")
        with pytest.raises(ConfigurationError, match="cannot be written"):
            checkpoint.download(blocked / "c1.zip")


def test_a_dropped_download_is_begun_again(tmp_path: Path) -> None:
    answers = Answers(
        {
            "GET /api/checkpoints/c1": reply({"id": "c1", "sha256": SHA256}),
            FILE: [reply({"detail": "restarting"}, 503), reply(CONTENT)],
        }
    )
    with Client(base_url="http://localhost", transport=answers.transport) as client:
        path = client.Checkpoint.get("c1").download(tmp_path / "c1.zip")

    assert path.read_bytes() == CONTENT

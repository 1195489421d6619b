"""Artifacts elsewhere are fetched once, kept within bounds, and never believed unchecked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from rleaas.server.artifacts.incoming import Received
from rleaas.server.artifacts.places import Remote
from rleaas.server.artifacts.store import ArtifactStore


class Elsewhere:
    """Counts how often a place elsewhere is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: list[str] = []
        chunks = Remote.chunks

        def counted(place: Remote, name: str) -> Iterator[bytes]:
            self.read.append(name[-4:])
            return chunks(place, name)

        monkeypatch.setattr(Remote, "chunks", counted)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    return Elsewhere(monkeypatch)


def store(tmp_path: Path, cached_bytes: int = 1_000) -> ArtifactStore:
    return ArtifactStore(
        f"memory://{tmp_path.name}",
        tmp_path / "artifacts",
        "me",
        grace=timedelta(0),
        cached_bytes=cached_bytes,
    )


def put(kept: ArtifactStore, tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "made"
    path.write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    with kept.keep(Received(path, digest, len(content))):
        return digest


def read(kept: ArtifactStore, digest: str) -> bytes:
    with kept.fetched(digest, "it") as path:
        return path.read_bytes()


def test_a_file_is_fetched_once_also_by_the_next_server(
    tmp_path: Path, elsewhere: Elsewhere
) -> None:
    kept = store(tmp_path)
    digest = put(kept, tmp_path, b"rollouts")
    elsewhere.read.clear()  # it is read once where it was put

    assert [read(kept, digest) for _ in range(3)] == [b"rollouts"] * 3
    assert read(store(tmp_path), digest) == b"rollouts"
    assert elsewhere.read == [digest[-4:]]


def test_a_kept_file_that_somebody_altered_is_fetched_anew(
    tmp_path: Path, elsewhere: Elsewhere
) -> None:
    kept = store(tmp_path)
    digest = put(kept, tmp_path, b"rollouts")
    elsewhere.read.clear()
    read(kept, digest)
    (tmp_path / "artifacts-fetched" / digest).write_bytes(b"roll0uts")

    assert read(kept, digest) == b"rollouts"
    assert read(kept, digest) == b"rollouts"
    assert len(elsewhere.read) == 2


def test_what_was_not_used_for_longest_makes_room(tmp_path: Path, elsewhere: Elsewhere) -> None:
    kept = store(tmp_path)
    first, second, third = (put(kept, tmp_path, bytes([n]) * 400) for n in range(3))
    with kept.fetched(first, "it") as held:
        for digest in (second, first, third):
            read(kept, digest)
        sizes = [one.stat().st_size for one in (tmp_path / "artifacts-fetched").iterdir()]
        assert sum(sizes) <= 1_000
        assert held.read_bytes() == b"\0" * 400  # whoever reads it goes on

    fetched = len(elsewhere.read)
    read(kept, first)
    assert len(elsewhere.read) == fetched
    read(kept, second)
    assert len(elsewhere.read) == fetched + 1
    large = put(kept, tmp_path, b"x" * 2_000)
    assert read(kept, large) == b"x" * 2_000  # there is no room for it, and it is read all the same
    assert not (tmp_path / "artifacts-fetched" / large).exists()


def test_what_is_collected_is_forgotten(tmp_path: Path, elsewhere: Elsewhere) -> None:
    kept = store(tmp_path)
    digest = put(kept, tmp_path, b"private")
    read(kept, digest)

    assert kept.collect(lambda: ()) == 1

    assert [*(tmp_path / "artifacts-fetched").iterdir()] == []

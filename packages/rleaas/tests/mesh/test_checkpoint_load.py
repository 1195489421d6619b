import hashlib
from pathlib import Path

import pytest
from rlcore import CheckpointCorrupted, UnexpectedReply
from rleaas import Client
from rleaas.mesh import checkpoint_cache
from rleaas.models import Checkpoint
from rleaas.testing import Answers, reply

CONTENT = b"weights"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[Path, str | None]]:
    """The cache in a folder of its own; what the trainer would be given to load."""
    given: list[tuple[Path, str | None]] = []

    def load_policy(path: Path, algorithm: str | None) -> str:
        given.append((path, algorithm))
        return f"policy of {path.read_text()}"

    monkeypatch.setenv("RLEAAS_CACHE", str(tmp_path))
    monkeypatch.setattr("rleaas.training.policy.load_policy", load_policy)
    return given


def platform(content: bytes = CONTENT) -> Answers:
    record = {"id": "c1", "sha256": SHA256, "algorithm": "PPO"}
    return Answers(
        {
            "GET /api/checkpoints/c1": reply(record),
            "GET /api/checkpoints/c1/file": reply(content),
        }
    )


def downloads(answers: Answers) -> int:
    return sum(asked.url.path.endswith("/file") for asked in answers.asked)


def test_a_loaded_checkpoint_is_fetched_once(
    loaded: list[tuple[Path, str | None]], tmp_path: Path
) -> None:
    answers = platform()
    with Client(base_url="http://localhost", transport=answers.transport) as client:
        checkpoint = client.Checkpoint.get("c1")
        models = [str(checkpoint.load()), str(checkpoint.load())]

    place = tmp_path / "checkpoints" / f"{SHA256}.zip"
    assert models == ["policy of weights"] * 2
    assert loaded == [(place, "PPO")] * 2
    assert downloads(answers) == 1


def test_a_damaged_file_in_the_cache_is_fetched_again(
    loaded: list[tuple[Path, str | None]],
) -> None:
    answers = platform()
    with Client(base_url="http://localhost", transport=answers.transport) as client:
        checkpoint = client.Checkpoint.get("c1")
        checkpoint.load()
        loaded[0][0].write_bytes(b"damaged")
        checkpoint.load()

    assert loaded[0][0].read_bytes() == CONTENT
    assert downloads(answers) == 2


def test_a_corrupted_checkpoint_is_not_loaded(loaded: list[tuple[Path, str | None]]) -> None:
    answers = platform(content=b"other")
    with Client(base_url="http://localhost", transport=answers.transport) as client:
        checkpoint = client.Checkpoint.get("c1")
        with pytest.raises(CheckpointCorrupted, match="c1"):
            checkpoint.load()

    assert loaded == []


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", SHA256.upper(), SHA256 + "0"])
def test_a_digest_that_is_none_is_not_used_as_a_path(digest: str) -> None:
    with pytest.raises(UnexpectedReply, match="SHA-256"):
        checkpoint_cache.place(Checkpoint(id="c1", sha256=digest))


def test_the_cache_is_in_the_user_s_cache_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("RLEAAS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert checkpoint_cache.folder() == tmp_path / "rleaas"

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert checkpoint_cache.folder() == tmp_path / ".cache" / "rleaas"

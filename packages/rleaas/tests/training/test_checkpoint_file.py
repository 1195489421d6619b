import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
from rlcore import CheckpointCorrupted, ConfigurationError
from rleaas.training.checkpoint_file import read_manifest, read_tensors, write_policy
from rleaas.training.file_digest import file_digest, verify_digest


@pytest.fixture
def checkpoint(train: Any, notebook: Any) -> Path:
    train(notebook, num_episodes=4)
    path: Path = notebook.checkpoints[-1][2]
    return path


def test_a_changed_file_is_not_accepted(checkpoint: Path) -> None:
    digest = file_digest(checkpoint)
    verify_digest(checkpoint, f"sha256:{digest}", checkpoint_id="ckpt_1")
    with checkpoint.open("ab") as file:
        file.write(b"\0")

    with pytest.raises(CheckpointCorrupted, match="ckpt_1"):
        verify_digest(checkpoint, digest, checkpoint_id="ckpt_1")


@pytest.mark.parametrize("keep", [0, 10, 2000])
def test_a_truncated_file_is_refused(checkpoint: Path, keep: int) -> None:
    checkpoint.write_bytes(checkpoint.read_bytes()[:keep])

    with pytest.raises(ConfigurationError, match="not a readable checkpoint"):
        read_manifest(checkpoint)


def test_a_checkpoint_of_stable_baselines3_alone_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plain.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", "{}")

    with pytest.raises(ConfigurationError, match=r"plain\.zip"):
        read_manifest(path)


def test_weights_that_carry_code_are_not_run(checkpoint: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"

    class Attack:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (victim,)

    path = tmp_path / "evil.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("policy.pth", pickle.dumps(Attack()))

    with pytest.raises(ConfigurationError):
        read_tensors(path, "policy.pth")
    assert not victim.exists()


def test_a_save_that_fails_leaves_the_earlier_file(checkpoint: Path) -> None:
    manifest, digest = read_manifest(checkpoint), file_digest(checkpoint)

    def fail(buffer: io.BytesIO) -> None:
        buffer.write(b"half")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        write_policy(checkpoint, manifest, {}, library=fail)
    assert file_digest(checkpoint) == digest

"""The SHA-256 that a checkpoint file is known by."""

from __future__ import annotations

import hashlib
from pathlib import Path

from rlcore import CheckpointCorrupted


def file_digest(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify_digest(path: Path, expected: str, *, checkpoint_id: str) -> None:
    """Make sure that the file is the one that was stored.

    Raises:
        CheckpointCorrupted: it is not.
    """
    actual = file_digest(path)
    if actual != expected.removeprefix("sha256:").lower():
        raise CheckpointCorrupted(checkpoint_id, expected, actual)

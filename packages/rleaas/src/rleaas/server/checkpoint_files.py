"""Checkpoint files on disk: each complete or absent, and never other bytes than were promised."""

import hashlib
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rlcore import InvalidRequestError

CHECKPOINT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
MAX_BYTES = 4 * 1024**3


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that is in place."""

    path: Path
    sha256: str
    size_bytes: int


class CheckpointFiles:
    """Files under `root/<job>/<checkpoint>.zip`."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self._root = root

    def path(self, job_id: str, checkpoint_id: str) -> Path:
        """Where the file is."""
        return self._root / job_id / f"{checkpoint_id}.zip"

    def incoming(self, job_id: str, checkpoint_id: str) -> "IncomingFile":
        """A file that is being received; it appears in its place when it is kept."""
        return IncomingFile(self.path(job_id, checkpoint_id), checkpoint_id)

    def remove(self, job_id: str) -> None:
        """Delete all checkpoints of a job."""
        directory = self._root / job_id
        if directory.exists():
            shutil.rmtree(directory)


class IncomingFile:
    """Bytes written beside their place; a context manager that leaves nothing half-written."""

    def __init__(self, target: Path, checkpoint_id: str) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        self._target = target
        self._checkpoint_id = checkpoint_id
        self._digest = hashlib.sha256()
        self._size = 0
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".incoming-")
        self._path = Path(name)
        self._file = os.fdopen(descriptor, "wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    def write(self, chunk: bytes) -> None:
        """Add bytes.

        Raises:
            InvalidRequestError: there are too many.
        """
        self._size += len(chunk)
        if self._size > MAX_BYTES:
            raise InvalidRequestError(
                f"checkpoint {self._checkpoint_id!r} is larger than {MAX_BYTES} bytes",
                status_code=413,
                code="checkpoint_too_large",
            )
        self._digest.update(chunk)
        self._file.write(chunk)

    def complete(self, sha256: str) -> StoredFile:
        """Make sure that the bytes are on the disk, and that they are those of the digest.

        Raises:
            InvalidRequestError: they are not, or there are none.
        """
        actual = self._digest.hexdigest()
        if self._size == 0:
            raise InvalidRequestError(
                f"checkpoint {self._checkpoint_id!r} came without a body", code="checkpoint_empty"
            )
        if actual != sha256.lower().removeprefix("sha256:"):
            raise InvalidRequestError(
                f"checkpoint {self._checkpoint_id!r} has SHA-256 {actual}, "
                f"the request said {sha256!r}",
                code="checkpoint_corrupted",
                hint="Send it again",
            )
        self._file.flush()
        os.fsync(self._file.fileno())
        return StoredFile(self._target, actual, self._size)

    def keep(self) -> None:
        """Put the completed file in its place."""
        self._path.replace(self._target)

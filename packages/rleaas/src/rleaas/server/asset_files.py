"""Uploaded data on disk, by the digest of its content: each file complete or absent."""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Self

from rlcore import InvalidRequestError

MAX_BYTES = 1024**3


class AssetFiles:
    """Files under `root/<organisation>/<sha256>`: the same bytes are kept once in each."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self._root = root

    def path(self, organisation: int, sha256: str) -> Path:
        """Where the file is."""
        return self._root / str(organisation) / sha256

    def incoming(self, organisation: int) -> "IncomingAsset":
        """A file that is being received; it appears when it is kept."""
        return IncomingAsset(self._root / str(organisation))

    def remove(self, organisation: int, sha256: str) -> None:
        """Delete a file."""
        self.path(organisation, sha256).unlink(missing_ok=True)


class IncomingAsset:
    """Bytes written beside their place; a context manager that leaves nothing half-written."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._digest = hashlib.sha256()
        self.size = 0
        descriptor, name = tempfile.mkstemp(dir=directory, prefix=".incoming-")
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
        self.size += len(chunk)
        if self.size > MAX_BYTES:
            raise InvalidRequestError(
                f"the data asset is larger than {MAX_BYTES} bytes",
                status_code=413,
                code="asset_too_large",
            )
        self._digest.update(chunk)
        self._file.write(chunk)

    @property
    def sha256(self) -> str:
        """The SHA-256 of what was written."""
        return self._digest.hexdigest()

    def complete(self) -> None:
        """Make sure that the bytes are on the disk.

        Raises:
            InvalidRequestError: there are none.
        """
        if self.size == 0:
            raise InvalidRequestError("the data asset came without a body", code="asset_empty")
        self._file.flush()
        os.fsync(self._file.fileno())

    def keep(self) -> None:
        """Put the completed file in its place."""
        self._path.replace(self._directory / self.sha256)

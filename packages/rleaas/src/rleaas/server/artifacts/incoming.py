"""Bytes that are being received: on the disk, and in no place yet."""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from rlcore import InvalidRequestError

PREFIX: Final = ".incoming-"
MAX_BYTES: Final = 4 * 1024**3


@dataclass(frozen=True, slots=True)
class Received:
    """A file whose bytes are all there, with their digest."""

    path: Path
    sha256: str
    size_bytes: int


class IncomingFile:
    """Receives a file; a context manager that leaves nothing half-written.

    Args:
        directory: where it is written.
        what: how messages call it.
        kind: what it is, a word that the codes of failures begin with.
        most: how many bytes it may have.
    """

    def __init__(
        self, directory: Path, what: str, kind: str = "checkpoint", *, most: int = MAX_BYTES
    ) -> None:
        self._what = what
        self._kind = kind
        self._most = most
        self._digest = hashlib.sha256()
        self._size = 0
        descriptor, name = tempfile.mkstemp(dir=directory, prefix=PREFIX)
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
        if self._size > self._most:
            raise InvalidRequestError(
                f"{self._what} is larger than {self._most} bytes",
                status_code=413,
                code=f"{self._kind}_too_large",
            )
        self._digest.update(chunk)
        self._file.write(chunk)

    def complete(self, sha256: str | None = None) -> Received:
        """Make sure that the bytes are on the disk, and those of the digest where one is given.

        Raises:
            InvalidRequestError: they are not, or there are none.
        """
        actual = self._digest.hexdigest()
        if self._size == 0:
            raise InvalidRequestError(
                f"{self._what} came without a body", code=f"{self._kind}_empty"
            )
        if sha256 is not None and actual != sha256.lower().removeprefix("sha256:"):
            raise InvalidRequestError(
                f"{self._what} has SHA-256 {actual}, the request said {sha256!r}",
                code=f"{self._kind}_corrupted",
                hint="Send it again",
            )
        self._file.flush()
        os.fsync(self._file.fileno())
        return Received(self._path, actual, self._size)

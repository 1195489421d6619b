"""A file that appears under its name only when it is complete and the right one."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

from rlcore import ConfigurationError, Error, boundary

CHUNK = 256 * 1024


class PartFile:
    """Collects chunks beside the target; `commit` moves them there if the digest fits.

    What was not committed is removed at the end of the block.
    """

    def __init__(self, target: Path, sha256: str | None) -> None:
        self._target = target
        self._expected = sha256
        self._digest = hashlib.sha256()

    def __enter__(self) -> Self:
        with disk(self._target):
            self._target.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(
                dir=self._target.parent, prefix=f".{self._target.name}.", suffix=".part"
            )
            self._part = Path(name)
            self._file = os.fdopen(handle, "wb")
        return self

    def write(self, chunk: bytes) -> None:
        """Add a chunk."""
        self._digest.update(chunk)
        with disk(self._target):
            self._file.write(chunk)

    def commit(self) -> str:
        """Move the file to its place if it is the right one; return its digest either way."""
        actual = self._digest.hexdigest()
        with disk(self._target):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            if self._expected in (None, actual):
                self._part.replace(self._target)
        return actual

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with disk(self._target):
            self._file.close()
            self._part.unlink(missing_ok=True)


def disk(target: Path) -> AbstractContextManager[None]:
    """Turn the disk's failures inside the block into ours."""

    def refused(error: BaseException) -> Error:
        return ConfigurationError(
            f"{str(target)!r} cannot be written: {error}",
            code="disk",
            hint="Make room or choose another place (RLEAAS_CACHE for the cache).",
        )

    # A name that is no text of the file system is a ValueError.
    mapping: Mapping[type[BaseException], Callable[[BaseException], Error]] = {
        OSError: refused,
        ValueError: refused,
    }
    return boundary(f"writing {str(target)!r}", mapping)

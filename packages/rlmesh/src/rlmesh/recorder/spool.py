"""Bytes of one column of an open episode: in memory while they are few, on the disk beyond."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final

KEPT: Final = 256 * 1024
"""Bytes that one column keeps in memory."""


class Spool:
    """Appended to, then read from the start; what is beyond `KEPT` is in a file without a name.

    Args:
        folder: where that file is made.
    """

    __slots__ = ("_file", "_folder", "_kept", "_written")

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept = bytearray()
        self._file: IO[bytes] | None = None
        self._written = 0

    def __len__(self) -> int:
        return self._written + len(self._kept)

    def write(self, content: bytes) -> None:
        """Append bytes.

        Raises:
            OSError: the disk does not take them.
        """
        self._kept += content
        if len(self._kept) > KEPT:
            if self._file is None:
                # It lives as long as the spool does.
                self._file = TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
            # An unbuffered file may take a part of it only.
            left = memoryview(self._kept)
            while left:
                taken = self._file.write(left)
                left = left[taken:]
            del left
            self._written += len(self._kept)
            self._kept = bytearray()

    def blocks(self, size: int = KEPT) -> Iterator[bytes]:
        """Yield everything from the start, in blocks of `size` bytes, the last one shorter."""
        if self._file is None:
            for start in range(0, len(self._kept), size):
                yield bytes(self._kept[start : start + size])
            return
        yield from self._filed(self._file, size)

    def _filed(self, file: IO[bytes], size: int) -> Iterator[bytes]:
        file.seek(0)
        pending = bytearray()
        while part := file.read(max(KEPT, size)):
            pending += part
            while len(pending) >= size:
                yield bytes(pending[:size])
                del pending[:size]
        file.seek(0, 2)
        pending += self._kept
        for start in range(0, len(pending), size):
            yield bytes(pending[start : start + size])

    def close(self) -> None:
        """Let go of the memory and the file."""
        self._kept = bytearray()
        self._written = 0
        if self._file is not None:
            self._file.close()
            self._file = None

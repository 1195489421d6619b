"""Zip files that appear as a whole or not at all, and are the same bytes for the same content."""

from __future__ import annotations

import os
import secrets
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

# The first moment that a zip can name: when something was written is no part of it.
_ALWAYS: Final = (1980, 1, 1, 0, 0, 0)
_MODE: Final = 0o644 << 16
_CHUNK: Final = 1024 * 1024


class ArchiveWriter:
    """Adds members to an archive that is not in its place yet."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def add(self, name: str, content: bytes | Path, *, pack: bool = False) -> None:
        """Add a member: these bytes, or those of a file."""
        if isinstance(content, bytes):
            with self.member(name, pack=pack) as member:
                member.write(content)
            return
        with content.open("rb") as file, self.member(name, pack=pack) as member:
            while chunk := file.read(_CHUNK):
                member.write(chunk)

    def copy(self, other: zipfile.ZipFile) -> None:
        """Add all members of another archive."""
        for name in other.namelist():
            with other.open(name) as source, self.member(name) as member:
                while chunk := source.read(_CHUNK):
                    member.write(chunk)

    def member(self, name: str, *, pack: bool = False) -> IO[bytes]:
        """A member to write to; close it before the next."""
        entry = zipfile.ZipInfo(name, _ALWAYS)
        entry.external_attr = _MODE
        entry.compress_type = zipfile.ZIP_DEFLATED if pack else zipfile.ZIP_STORED
        return self._archive.open(entry, "w", force_zip64=True)


@contextmanager
def whole_archive(path: Path) -> Generator[ArchiveWriter]:
    """An archive that is put at `path` when the block ends well; else nothing changes."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with partial.open("xb") as file:
            with zipfile.ZipFile(file, "w", compresslevel=1) as archive:
                yield ArchiveWriter(archive)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)

"""The files of a bundle, in a folder or a zip: read without trusting their names or sizes."""

from __future__ import annotations

import hashlib
import re
import stat
import zipfile
from pathlib import Path
from threading import Lock
from typing import IO, Final, Protocol

from rlcore import BundleError

LARGEST_TEXT: Final = 1 << 28
"""Bytes of the largest JSON document that is read."""

MOST_FILES: Final = 1_000_000

_BLOCK: Final = 1 << 20
_DRIVE: Final = re.compile(r"^[A-Za-z]:")


class Files(Protocol):
    """Where the files of a bundle are read from."""

    def names(self) -> frozenset[str]:
        """Return the path of every file, relative, with forward slashes."""
        ...

    def size(self, path: str) -> int:
        """Return a file's size in bytes."""
        ...

    def open(self, path: str) -> IO[bytes]:
        """Open a file, which can seek.

        Raises:
            BundleError: there is no such file, or its path leaves the bundle.
        """
        ...

    def read(self, path: str, limit: int | None = None) -> bytes:
        """Return a file's content.

        Raises:
            BundleError: as `open`; or it has more bytes than `limit`, or is damaged.
        """
        ...

    def close(self) -> None:
        """Let go of the bundle."""
        ...


def files_of(path: Path) -> Files:
    """Return the files of a bundle.

    Raises:
        BundleError: there is neither a folder nor a zip file there.
    """
    if path.is_dir():
        return FolderFiles(path)
    if not path.exists():
        raise BundleError(f"there is no bundle {str(path)!r}", path=str(path))
    return ZipFiles(path)


def inside(path: str) -> str:
    """Return a path of a bundle.

    Raises:
        BundleError: it leads out of the bundle, or is of a form that no recorder writes.
    """
    parts = path.split("/")
    odd = (
        "\\" in path
        or "\0" in path
        or _DRIVE.match(path)
        or any(p in ("", ".", "..") for p in parts)
    )
    if odd:
        raise BundleError(f"the path {path!r} leads out of the bundle", path=path)
    return path


def digest(file: IO[bytes]) -> tuple[str, int]:
    """Return the SHA-256 of a file as hexadecimal text, and how many bytes it has."""
    found, size = hashlib.sha256(), 0
    while block := file.read(_BLOCK):
        found.update(block)
        size += len(block)
    return found.hexdigest(), size


class FolderFiles:
    """A bundle that is a folder.

    Attributes:
        folder: where it is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = self._folder = folder.resolve()

    def names(self) -> frozenset[str]:
        """Return the path of every file, relative, with forward slashes."""
        return frozenset(
            path.relative_to(self._folder).as_posix()
            for path in self._folder.rglob("*")
            if path.is_file()
        )

    def size(self, path: str) -> int:
        """Return a file's size in bytes."""
        return self._found(path).stat().st_size

    def open(self, path: str) -> IO[bytes]:
        """Open a file."""
        found = self._found(path)
        try:
            return found.open("rb")
        except OSError as error:
            raise BundleError(f"{path!r} cannot be read: {error.strerror}", path=path) from error

    def read(self, path: str, limit: int | None = None) -> bytes:
        """Return a file's content."""
        with self.open(path) as file:
            return _limited(file, path, limit)

    def close(self) -> None:
        """Let go of the bundle; a folder holds nothing."""

    def _found(self, path: str) -> Path:
        # A link is followed only as far as the bundle goes.
        found = (self._folder / inside(path)).resolve()
        if not found.is_relative_to(self._folder):
            raise BundleError(f"{path!r} is a link that leads out of the bundle", path=path)
        if not found.is_file():
            raise BundleError(f"the bundle has no file {path!r}", path=path)
        return found


class ZipFiles:
    """A bundle that is a zip file; nothing of it is unpacked to the disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        try:
            self._archive = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise BundleError(f"{str(path)!r} is no bundle: {error}", path=str(path)) from error
        try:
            self._entries = _entries(self._archive)
        except BundleError:
            self._archive.close()
            raise

    def names(self) -> frozenset[str]:
        """Return the path of every file, relative, with forward slashes."""
        return frozenset(self._entries)

    def size(self, path: str) -> int:
        """Return a file's size in bytes."""
        return self._entry(path).file_size

    def open(self, path: str) -> IO[bytes]:
        """Open a file."""
        try:
            with self._lock:
                return self._archive.open(self._entry(path))
        except (
            zipfile.BadZipFile,
            OSError,
            ValueError,
            RuntimeError,
            NotImplementedError,
        ) as error:
            if isinstance(error, BundleError):
                raise
            raise BundleError(f"{path!r} cannot be read: {error}", path=path) from error

    def read(self, path: str, limit: int | None = None) -> bytes:
        """Return a file's content."""
        with self.open(path) as file:
            return _limited(file, path, limit)

    def close(self) -> None:
        """Let go of the file."""
        self._archive.close()

    def _entry(self, path: str) -> zipfile.ZipInfo:
        entry = self._entries.get(inside(path))
        if entry is None:
            raise BundleError(f"the bundle has no file {path!r}", path=path)
        return entry


def _entries(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    listed = archive.infolist()
    if len(listed) > MOST_FILES:
        raise BundleError(f"the bundle has {len(listed)} files")
    entries: dict[str, zipfile.ZipInfo] = {}
    for entry in listed:
        if entry.is_dir():
            continue
        name = inside(entry.filename)
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise BundleError(f"{name!r} is a link", path=name)
        if name in entries:  # readers would not agree on which of them is meant
            raise BundleError(f"the bundle has {name!r} twice", path=name)
        entries[name] = entry
    return entries


def _limited(file: IO[bytes], path: str, limit: int | None) -> bytes:
    try:
        if limit is None:
            return file.read()
        content = file.read(limit + 1)
    except Exception as error:  # zlib.error, a wrong checksum, a file that ends too soon
        raise BundleError(f"{path!r} is damaged: {error}", path=path) from error
    if len(content) > limit:
        raise BundleError(f"{path!r} has more than {limit} bytes", path=path)
    return content

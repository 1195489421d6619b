"""Where artifacts lie: a directory of this machine, or what fsspec reaches by a URL."""

import hashlib
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final, Protocol, cast

import fsspec  # type: ignore[import-untyped]  # it has no stubs
from rlcore import ConfigurationError, MissingDependencyError, ServerFailure

from rleaas.server.artifacts.incoming import PREFIX

CHUNK: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Blob:
    """Something that lies in a place."""

    name: str
    size_bytes: int
    modified_at: datetime


class Place(Protocol):
    """Keeps files under names such as `ab/abcd…`; each is there as a whole or not at all."""

    def put(self, name: str, source: Path, sha256: str) -> None:
        """Put a file there; the source may be gone afterwards."""
        ...

    def renew(self, name: str, size: int) -> bool:
        """Let what is there count as put just now; False: it is not there with this size."""
        ...

    def local(self, name: str) -> Path | None:
        """The file itself, where it is one of this machine."""
        ...

    def size(self, name: str) -> int | None:
        """How many bytes are there; None: nothing is."""
        ...

    def chunks(self, name: str) -> Iterator[bytes]:
        """The bytes.

        Raises:
            FileNotFoundError: nothing is there.
        """
        ...

    def find(self) -> Iterator[Blob]:
        """Everything that is there."""
        ...

    def remove(self, name: str) -> None:
        """Delete it, if it is there."""
        ...

    def text(self, name: str) -> str | None:
        """A small text that `write_text` wrote; None: there is none."""
        ...

    def write_text(self, name: str, text: str) -> None:
        """Put a small text there."""
        ...


class Directory:
    """A directory of this machine."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self._root = root

    def put(self, name: str, source: Path, sha256: str) -> None:
        """Move the file there; it appears when it is complete on the disk."""
        target = self._root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            source.replace(target)
        except OSError:
            # From another file system.
            part = target.parent / f"{PREFIX}{secrets.token_hex(8)}"
            try:
                _copy(source, part)
                part.replace(target)
            finally:
                part.unlink(missing_ok=True)
        os.utime(target)
        _sync(target.parent)

    def renew(self, name: str, size: int) -> bool:
        """Set its time to now."""
        path = self._root / name
        try:
            if path.stat().st_size != size:
                return False
            os.utime(path)
        except FileNotFoundError:
            return False
        return True

    def local(self, name: str) -> Path | None:
        """The file."""
        return self._root / name

    def size(self, name: str) -> int | None:
        """That of the file."""
        path = self._root / name
        return path.stat().st_size if path.is_file() else None

    def chunks(self, name: str) -> Iterator[bytes]:
        """The bytes."""
        with (self._root / name).open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk

    def find(self) -> Iterator[Blob]:
        """All files below, also those that were left behind half-written."""
        for directory, _, names in os.walk(self._root):
            for one in names:
                path = Path(directory) / one
                try:
                    found = path.stat()
                except FileNotFoundError:
                    continue  # collected by another server just now
                at = datetime.fromtimestamp(found.st_mtime, UTC)
                yield Blob(path.relative_to(self._root).as_posix(), found.st_size, at)

    def remove(self, name: str) -> None:
        """Delete it."""
        (self._root / name).unlink(missing_ok=True)

    def text(self, name: str) -> str | None:
        """Read it."""
        path = self._root / name
        return path.read_text() if path.is_file() else None

    def write_text(self, name: str, text: str) -> None:
        """Write it beside its place first."""
        part = self._root / f"{PREFIX}{secrets.token_hex(8)}"
        part.write_text(text)
        part.replace(self._root / name)


class Remote:
    """What fsspec reaches by a URL such as `s3://bucket/prefix`.

    An object appears there when its upload is complete, and is read again before it counts.
    """

    def __init__(self, url: str) -> None:
        """Connect.

        Raises:
            ConfigurationError: the URL cannot be used, or nothing answers there.
            MissingDependencyError: the extra for its kind is not installed.
        """
        self._url = url
        try:
            # No cached listings: other servers write there too.
            found = cast("Any", fsspec).core.url_to_fs(url, use_listings_cache=False)
        except ImportError as error:
            raise MissingDependencyError(
                f"artifacts at {url!r} need {error.name or 'another package'!r}, which is not "
                "installed",
                hint="Install the extra: pip install 'rleaas[s3]'",
            ) from error
        except Exception as error:
            raise self._unusable(error) from error
        self._fs, root = found
        self._root = PurePosixPath(str(root))
        try:
            self._fs.exists(str(self._root))
        except Exception as error:
            raise self._unusable(error) from error

    def put(self, name: str, source: Path, sha256: str) -> None:
        """Upload the file, and read it again.

        Raises:
            ServerFailure: other bytes lie there than were sent.
        """
        key = self._key(name)
        self._fs.put_file(str(source), key)
        digest = hashlib.sha256()
        for chunk in self.chunks(name):
            digest.update(chunk)
        if digest.hexdigest() != sha256:
            self.remove(name)
            raise ServerFailure(
                f"the storage at {self._url!r} gave other bytes back than it was sent for {name!r}",
                code="artifact_not_stored",
                retryable=True,
                hint="Send it again; if it happens again, look after the storage",
            )

    def renew(self, name: str, size: int) -> bool:
        """False: only another upload sets its time, and nothing else can be relied on."""
        return False

    def local(self, name: str) -> Path | None:
        """None: it is not on this machine."""
        return None

    def size(self, name: str) -> int | None:
        """That of the object."""
        try:
            return int(self._fs.info(self._key(name))["size"])
        except FileNotFoundError:
            return None

    def chunks(self, name: str) -> Iterator[bytes]:
        """The bytes."""
        with self._fs.open(self._key(name), "rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk

    def find(self) -> Iterator[Blob]:
        """All objects below the URL."""
        found = cast("dict[str, dict[str, Any]]", self._fs.find(str(self._root), detail=True))
        for key, info in found.items():
            name = str(PurePosixPath(key).relative_to(self._root))
            at = info.get("LastModified") or info.get("mtime") or info.get("created")
            moment = datetime.fromtimestamp(at, UTC) if isinstance(at, int | float) else at
            # Of unknown age: as if it had come just now, so that it is left alone.
            yield Blob(name, int(info.get("size") or 0), moment or datetime.now(UTC))

    def remove(self, name: str) -> None:
        """Delete it."""
        if self._fs.exists(self._key(name)):
            self._fs.rm_file(self._key(name))

    def text(self, name: str) -> str | None:
        """Read it."""
        if not self._fs.exists(self._key(name)):
            return None
        return bytes(self._fs.cat_file(self._key(name))).decode()

    def write_text(self, name: str, text: str) -> None:
        """Write it.

        Raises:
            ConfigurationError: nothing can be written there.
        """
        try:
            self._fs.pipe_file(self._key(name), text.encode())
        except Exception as error:
            raise self._unusable(error) from error

    def _key(self, name: str) -> str:
        return str(self._root / name)

    def _unusable(self, error: Exception) -> ConfigurationError:
        # fsspec's file systems raise whatever their libraries do.
        return ConfigurationError(
            f"artifacts cannot be kept at {self._url!r}: {type(error).__name__}: {error}",
            code="artifacts_unusable",
            hint="Check the URL, the credentials and the endpoint, such as AWS_ENDPOINT_URL",
        )


def place_of(url: str | None, directory: Path) -> Place:
    """The place of a URL; without one, or with that of a local file, a directory.

    Raises:
        ConfigurationError: it cannot be used.
        MissingDependencyError: the extra for its kind is not installed.
    """
    if url is None:
        return Directory(directory)
    if url.startswith("file://") or "://" not in url:
        return Directory(Path(url.removeprefix("file://")))
    return Remote(url)


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as reader, target.open("xb") as writer:
        while chunk := reader.read(CHUNK):
            writer.write(chunk)
        writer.flush()
        os.fsync(writer.fileno())


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

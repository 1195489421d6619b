"""The files that training leaves behind, each under the SHA-256 of its bytes and kept once."""

import hashlib
import re
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from rlcore import CheckpointCorrupted, ConfigurationError, ServerFailure

from rleaas.server.artifacts.fetched_cache import MOST_BYTES, FetchedCache
from rleaas.server.artifacts.incoming import PREFIX, IncomingFile, Received
from rleaas.server.artifacts.places import Directory, Place, Remote, place_of

OWNER: Final = "owner"
# Below the data directory, and in backups.
ARTIFACTS: Final = "artifacts/"
GRACE: Final = timedelta(hours=1)
# What a server that was killed left half-written; nothing takes as long to be received.
_LEFT_BEHIND: Final = timedelta(days=1)
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class ArtifactStore:
    """Content-addressed files.

    Args:
        url: where they lie; None: in the directory.
        directory: where they are received, and lie without a URL.
        owner: what tells this server from others, of which none may use the same place.
        shared: whether other servers use the same data.
        grace: how long a file that nothing refers to is left alone, as somebody may be about to
            refer to it.
        cached_bytes: how much of what was fetched from elsewhere is kept on this machine.

    Raises:
        ConfigurationError: the place cannot be used, or is another server's.
        MissingDependencyError: the extra for its kind is not installed.
    """

    def __init__(
        self,
        url: str | None,
        directory: Path,
        owner: str,
        *,
        shared: bool = False,
        grace: timedelta = GRACE,
        cached_bytes: int = MOST_BYTES,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._place: Place = place_of(url, directory)
        # Beside the artifacts, lest backups take it for some.
        self._fetched = FetchedCache(directory.with_name(f"{directory.name}-fetched"), cached_bytes)
        self._grace = grace
        self._shared = shared
        self._lock = threading.Lock()
        # Files that are put, and whose rows are not written yet.
        self._held: Counter[str] = Counter()
        found = self._place.text(OWNER)
        if found is None:
            self._place.write_text(OWNER, owner)
        elif found != owner:
            # It would collect what it takes for orphans.
            raise ConfigurationError(
                f"the artifacts at {url or str(directory)!r} belong to another server",
                code="artifacts_of_another_server",
                hint="Give each server a place of its own, such as another prefix",
            )

    def incoming(self, what: str, kind: str = "checkpoint") -> IncomingFile:
        """A file that is being received."""
        return IncomingFile(self._directory, what, kind)

    @contextmanager
    def keep(self, file: Received) -> Generator[None]:
        """Put a received file in its place; it is not collected before the block ends.

        Write the row that refers to it in the block.
        """
        with self._lock:
            self._held[file.sha256] += 1
        try:
            name = _name(file.sha256)
            if not self._place.renew(name, file.size_bytes):
                self._place.put(name, file.path, file.sha256)
            yield
        finally:
            with self._lock:
                self._held[file.sha256] -= 1
                self._held += Counter()  # drops what is held no more

    @contextmanager
    def fetched(self, sha256: str, what: str) -> Generator[Path]:
        """The file on this machine, as long as the block lasts; its bytes were checked just now.

        One that lies elsewhere is fetched once, and kept as long as there is room. Nobody may
        write to it.

        Args:
            sha256: which.
            what: the checkpoint that it is of, for messages.

        Raises:
            ServerFailure: it is gone.
            CheckpointCorrupted: its bytes are others.
        """
        local = self._place.local(_name(sha256))
        if local is not None:
            digest = hashlib.sha256()
            for chunk in self._chunks(sha256, what):
                digest.update(chunk)
            _require(sha256, digest.hexdigest(), what)
            yield local
            return
        with tempfile.TemporaryDirectory(dir=self._directory, prefix=PREFIX) as directory:
            path = Path(directory) / sha256
            # What is gone there is gone, whatever is still here.
            is_there = self._place.size(_name(sha256)) is not None
            if is_there and self._fetched.take(sha256, path):
                yield path
                return
            digest = hashlib.sha256()
            with path.open("wb") as file:
                for chunk in self._chunks(sha256, what):
                    digest.update(chunk)
                    file.write(chunk)
            _require(sha256, digest.hexdigest(), what)
            self._fetched.keep(sha256, path)
            yield path

    def check(self, sha256: str, what: str) -> None:
        """Make sure that a file is there, byte for byte.

        Raises:
            ServerFailure: it is gone.
            CheckpointCorrupted: its bytes are others.
        """
        digest = hashlib.sha256()
        for chunk in self._chunks(sha256, what):
            digest.update(chunk)
        _require(sha256, digest.hexdigest(), what)

    def chunks(self, sha256: str) -> Iterator[bytes]:
        """The bytes of a file as they are.

        Raises:
            FileNotFoundError: it is gone.
        """
        return self._place.chunks(_name(sha256))

    def size(self, sha256: str) -> int | None:
        """How many bytes the file has; None: it is not there."""
        return self._place.size(_name(sha256))

    def digests(self) -> set[str]:
        """Of all files that are there."""
        return {one for blob in self._place.find() if (one := _digest_of(blob.name))}

    def discard(self, digests: Collection[str], in_use: Callable[[], Collection[str]]) -> None:
        """Delete those of these files that nothing refers to any more, however young they are.

        Where other servers use the data too they are left to `collect`: one of them may be about to
        refer to the same bytes.
        """
        if self._shared or not digests:
            return
        with self._lock:
            used = in_use()
            for digest in digests:
                if digest not in used and not self._held[digest]:
                    self._place.remove(_name(digest))

    def collect(self, in_use: Callable[[], Collection[str]]) -> int:
        """Delete the files that nothing refers to; returns how many.

        Args:
            in_use: gives the digests that something refers to; called once, after it is known what
                there is.
        """
        now = datetime.now(UTC)
        before = now - self._grace
        old: dict[str, str] = {}
        removed = 0
        for blob in list(self._place.find()):
            digest = _digest_of(blob.name)
            if digest is not None and blob.modified_at <= before:
                old[digest] = blob.name
            elif digest is None and _is_part(blob.name) and blob.modified_at < now - _LEFT_BEHIND:
                self._place.remove(blob.name)
                removed += 1
        # Nobody takes hold of one of them while it is decided.
        with self._lock:
            used = in_use() if old else ()
            for digest, name in old.items():
                if digest not in used and not self._held[digest]:
                    self._place.remove(name)
                    self._fetched.drop(digest)
                    removed += 1
        return removed

    def take_over_local(self) -> None:
        """Move what lies in the directory to the place, where that is another one.

        A backup that is restored puts all files into the directory.
        """
        found = Directory(self._directory)
        for blob in list(found.find()) if isinstance(self._place, Remote) else ():
            digest = _digest_of(blob.name)
            path = self._directory / blob.name
            if digest is not None:
                with self.keep(Received(path, digest, blob.size_bytes)):
                    path.unlink(missing_ok=True)

    def _chunks(self, sha256: str, what: str) -> Iterator[bytes]:
        try:
            yield from self._place.chunks(_name(sha256))
        except FileNotFoundError as error:
            raise ServerFailure(
                f"the file of checkpoint {what!r} is gone from the server's artifacts",
                code="checkpoint_file_missing",
                retryable=False,
            ) from error


def member_of(sha256: str) -> str:
    """How backups call the file of a digest, below the data directory."""
    return f"{ARTIFACTS}{_name(sha256)}"


def _require(expected: str, actual: str, what: str) -> None:
    if actual != expected:
        raise CheckpointCorrupted(what, expected, actual)


def _name(sha256: str) -> str:
    return f"{sha256[:2]}/{sha256}"


def _digest_of(name: str) -> str | None:
    digest = name.rpartition("/")[2]
    return digest if _DIGEST.fullmatch(digest) and name == _name(digest) else None


def _is_part(name: str) -> bool:
    return any(part.startswith(PREFIX) for part in name.split("/"))

"""A file that every finished episode is written to at once, so that a run can go on after any end.

The file is lines of JSON: a header that says which run it belongs to, then an episode a line. Each
line is written whole and reaches the disk before `append` returns; what a crash leaves of a line
that did not is cut off when the journal is opened again.
"""

import errno
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from types import MappingProxyType, TracebackType
from typing import Self, TypedDict, cast

from rlcore import ConfigurationError, EnvironmentIdentity, JournalError

from rlmesh.runs.journal_header import Header as Header
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.provenance import Plain
from rlmesh.runs.results import EpisodeResult

SCHEMA = "rlmesh.journal.v1"
REPEATED = frozenset(outcome for outcome in Outcome if not outcome.scored)
"""None of these is a score, and its cause may be mended, so going on plays the episode again."""

_MAGIC = f'{{"schema": "{SCHEMA}"'.encode()


class Journal:
    """The open journal of one run; made by `Journal.open`, locked until it is closed.

    Attributes:
        advisories: sentences about what is not as it was when the journal was begun.
    """

    def __init__(self, path: Path, header: Header, descriptor: int) -> None:
        self.path = path
        self.header = header
        self.advisories: tuple[str, ...] = ()
        self._descriptor: int | None = descriptor
        self._recorded: dict[int, EpisodeResult] = {}
        self._lock = Lock()
        self._size = 0

    @classmethod
    def open(cls, path: str | os.PathLike[str], header: Header) -> Self:
        """Begin a journal, or go on with one of the same run.

        Raises:
            JournalError: the file belongs to another run (`differences` says in what), another
                process has it open, it is no journal, or it cannot be read and written.
        """
        place = Path(path)
        try:
            descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise _failed(place, "be opened", error) from error
        try:
            journal = cls(place, header, descriptor)
            journal._claim()
            journal._begin_or_continue()
        except BaseException:
            os.close(descriptor)
            raise
        return journal

    @property
    def finished(self) -> Mapping[int, EpisodeResult]:
        """The episodes that need not be played again, by their index."""
        return MappingProxyType(
            {
                index: episode
                for index, episode in sorted(self._recorded.items())
                if episode.outcome not in REPEATED
            }
        )

    def append(self, episode: EpisodeResult) -> None:
        """Write an episode; it is on the disk when this returns.

        Raises:
            JournalError: it is not, for instance because the disk is full. What was written
                before stays whole.
            ConfigurationError: the episode is none of this run, or finished already.
        """
        with self._lock:
            self._require_expected(episode)
            self._write({"episode": episode.to_dict()})
            self._recorded[episode.index] = episode

    def close(self) -> None:
        """Let go of the file; closing twice is fine."""
        with self._lock:
            descriptor, self._descriptor = self._descriptor, None
            if descriptor is not None:
                os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._descriptor is None else f"{len(self.finished)} finished"
        return f"<Journal {str(self.path)!r}: {state}>"

    def _claim(self) -> None:
        try:
            import fcntl  # not on every system, where runs without a journal work as well
        except ImportError as error:
            raise JournalError(
                "a journal needs file locks, which this system does not have", path=str(self.path)
            ) from error
        try:
            fcntl.flock(self._open(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise JournalError(
                f"the journal {str(self.path)!r} is in use by another run",
                path=str(self.path),
                hint="wait for that one to end, or name another file",
            ) from error
        except OSError as error:
            raise _failed(self.path, "be locked", error) from error

    def _begin_or_continue(self) -> None:
        descriptor = self._open()
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _no_journal(self.path, "it is no file")
        try:
            content = _read(descriptor)
        except OSError as error:
            raise _failed(self.path, "be read", error) from error
        whole, torn = _split(content, self.path)
        if not whole:
            self._truncate(0)
            self._write({"schema": SCHEMA, **self.header.to_dict()})
            _sync_folder(self.path)
            return
        begun, episodes = _parsed(whole, self.path)
        if different := self.header.differences(begun):
            model = "contents.model" in different
            raise JournalError(
                f"the journal {str(self.path)!r} belongs to another run: "
                + "; ".join(different.values()),
                path=str(self.path),
                differences=tuple(different),
                hint="name another file, or remove this one"
                + ("; a model with a digest= of its own is known by that" if model else ""),
            )
        self.advisories = (*self.header.upgrades(begun), *self.header.gaps(begun))
        for episode in episodes:
            try:
                self._require_expected(episode)
            except ConfigurationError as error:
                raise _no_journal(self.path, error.message) from error
            self._recorded[episode.index] = episode
        self._size = len(whole)
        if torn:
            self._truncate(len(whole))

    def _require_expected(self, episode: EpisodeResult) -> None:
        seeds = self.header.seeds
        if not 0 <= episode.index < len(seeds) or episode.seed != seeds[episode.index]:
            message = f"episode {episode.index} (seed {episode.seed}) is none of this run"
            raise ConfigurationError(f"{message}: {str(self.path)!r}")
        known = self._recorded.get(episode.index)
        if known is not None and known.outcome not in REPEATED:
            message = f"episode {episode.index} is in the journal {str(self.path)!r} already"
            raise ConfigurationError(message)

    def _write(self, value: Mapping[str, object]) -> None:
        descriptor = self._open()
        line = json.dumps(value, allow_nan=False).encode() + b"\n"
        try:
            # One call: a kill leaves a line or none. A full disk may take a part of it.
            written = os.write(descriptor, line)
            while written < len(line):
                written += os.write(descriptor, line[written:])
            os.fsync(descriptor)
        except OSError as error:
            failure = _failed(self.path, "be written", error)
            try:
                os.ftruncate(descriptor, self._size)
            except OSError as second:
                failure.add_note(f"cutting off the broken line failed as well: {second}")
                self._descriptor = None
                os.close(descriptor)
            raise failure from error
        self._size += len(line)

    def _truncate(self, size: int) -> None:
        descriptor = self._open()
        try:
            os.ftruncate(descriptor, size)
            os.fsync(descriptor)
        except OSError as error:
            raise _failed(self.path, "be repaired", error) from error
        self._size = size

    def _open(self) -> int:
        if self._descriptor is None:
            raise JournalError(f"the journal {str(self.path)!r} is closed", path=str(self.path))
        return self._descriptor


def read_journal(path: str | os.PathLike[str]) -> tuple[Header, tuple[EpisodeResult, ...]]:
    """Return whose journal this is and its episodes, by index; also while a run writes it.

    Raises:
        JournalError: it is no journal, or cannot be read.
    """
    place = Path(path)
    if place.exists() and not place.is_file():
        raise _no_journal(place, "it is no file")
    try:
        content = place.read_bytes()
    except OSError as error:
        raise _failed(place, "be read", error) from error
    whole, _ = _split(content, place)
    if not whole:
        raise _no_journal(place, "it has no header")
    header, episodes = _parsed(whole, place)
    latest = {episode.index: episode for episode in episodes}
    return header, tuple(latest[index] for index in sorted(latest))


class JournalFacts(TypedDict):
    """What a journal knows of the fields of a `RunResult`."""

    episodes: tuple[EpisodeResult, ...]
    environment: EnvironmentIdentity | None
    model: str
    model_digest: str | None
    asked: int
    stopped: str | None
    package_versions: Mapping[str, str]
    settings: Mapping[str, Plain]


def journal_facts(path: str | os.PathLike[str]) -> JournalFacts:
    """Return what a journal holds so far, as the fields of a `RunResult`.

    Raises:
        JournalError: it is no journal, or cannot be read.
    """
    header, episodes = read_journal(path)
    missing = len(header.seeds) - len(episodes)
    return JournalFacts(
        episodes=episodes,
        environment=header.environment,
        model=header.model,
        model_digest=header.model_digest,
        asked=len(header.seeds),
        stopped=f"the journal lacks {missing} of its episodes" if missing else None,
        package_versions=header.package_versions,
        settings=header.settings,
    )


def is_journal(content: bytes) -> bool:
    """Return whether these are the first bytes of a journal."""
    return content.startswith(_MAGIC)


def _read(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    parts: list[bytes] = []
    while part := os.read(descriptor, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _split(content: bytes, path: Path) -> tuple[bytes, bytes]:
    """The whole lines, and what is left of a line that was being written."""
    end = content.rfind(b"\n") + 1
    # What is not ours must not be cut: only a file that begins as a journal is repaired.
    if content and not (content.startswith(_MAGIC) or _MAGIC.startswith(content)):
        raise _no_journal(path, "it begins otherwise")
    return content[:end], content[end:]


def _parsed(whole: bytes, path: Path) -> tuple[Header, list[EpisodeResult]]:
    first, *rest = whole.splitlines()
    line_number = 1
    try:
        begun = cast("dict[str, object]", json.loads(first))
        begun.pop("schema")
        header = Header.from_dict(begun)
        episodes: list[EpisodeResult] = []
        for line in rest:
            line_number += 1
            entry = cast("dict[str, dict[str, object]]", json.loads(line))
            episodes.append(EpisodeResult.from_dict(entry["episode"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _no_journal(path, f"line {line_number} is broken ({error})") from error
    return header, episodes


def _no_journal(path: Path, reason: str) -> JournalError:
    return JournalError(
        f"{str(path)!r} is not the journal of a run: {reason}",
        path=str(path),
        hint="name another file",
    )


def _failed(path: Path, what: str, error: OSError) -> JournalError:
    reason = error.strerror or str(error)
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return JournalError(
        f"the journal {str(path)!r} cannot {what}: {reason}",
        path=str(path),
        hint="make room on the disk, and run again with the same journal" if full else None,
    )


def _sync_folder(path: Path) -> None:
    """Make the new file's name outlive a power cut as its content does."""
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        # Some file systems of networks cannot; the content is safe, the name is theirs to keep.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EROFS):
            raise _failed(path, "be created", error) from error

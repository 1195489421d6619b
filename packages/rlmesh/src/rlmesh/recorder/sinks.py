"""Where an exported bundle goes: a folder or a zip, which it takes as a whole."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import uuid
import zipfile
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Protocol, Self, cast

from rlcore import BundleError, ConfigurationError

from rlmesh.recorder.files import LARGEST_TEXT, Files, FolderFiles, ZipFiles
from rlmesh.recorder.loading import DETAILS, DETAILS_SCHEMA, RESULT
from rlmesh.recorder.manifest import MANIFEST, MANIFEST_SCHEMA
from rlmesh.recorder.records import SCHEMA

REPORT: Final = "report.html"
_TREES: Final = ("media", "trajectories")
_OWN: Final = (*_TREES, RESULT, DETAILS, REPORT, MANIFEST)
_BESIDE: Final = ".rlmesh-export-"
_ASIDE: Final = "aside"
_REPLACED: Final = "replaced"
_UUID: Final = re.compile(r"[0-9a-f]{32}")
_NO_LOCKS: Final = frozenset(
    {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
)


class BundleInTheWay(ConfigurationError, FileExistsError):
    """What is at the path is no bundle that could be replaced."""

    default_code = "bundle_in_the_way"


class Sink(Protocol):
    """Takes the files of a bundle; they are in place after `finish`, and not before."""

    def open(self, name: str, *, stored: bool) -> IO[bytes]:
        """Open a file of the bundle for writing; `stored` if it is compressed already."""
        ...

    def finish(self) -> None:
        """Put what was written in place of what was there."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def sink_of(target: Path, *, zipped: bool) -> Sink:
    """Return what writes a bundle to a path; entering it makes the folders that are missing.

    Raises:
        BundleInTheWay: there is something that is no bundle. What is in the folder is looked at on
            entering.
    """
    if zipped:
        if target.is_dir():
            raise BundleInTheWay(f"{str(target)!r} is a folder", hint="Choose another path.")
        return _ZipSink(target)
    if target.exists() and not target.is_dir():
        raise BundleInTheWay(f"{str(target)!r} is a file", hint="Choose another path.")
    return _FolderSink(target)


class _FolderSink:
    """Writes beside what is there; what it replaces is deleted when the new bundle is in place.

    Whoever exports to the same folder waits for it.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._made = False
        self._beside = target / f"{_BESIDE}{uuid.uuid4().hex}"
        self._lock = contextlib.ExitStack()

    def open(self, name: str, *, stored: bool) -> IO[bytes]:
        path = self._beside / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("xb")

    def finish(self) -> None:
        _require_own(self._target)  # somebody may have put something there meanwhile
        (self._beside / _ASIDE).mkdir()
        _swap(self._target, self._beside)

    def __enter__(self) -> Self:
        self._made = not self._target.exists()
        with contextlib.ExitStack() as lock:
            if lock.enter_context(_locked(self._target)):
                for left in _left_over(self._target, _BESIDE):
                    _swap(self._target, left)
                    shutil.rmtree(left)
            _require_own(self._target)
            self._beside.mkdir()
            self._lock = lock.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            # Ctrl-C may have come in the middle: what was begun is whole only when it is done.
            # Where this fails too, both bundles stay, and the next export goes on with it.
            _swap(self._target, self._beside)
            _remove(self._beside)
            if error is not None and self._made and not any(self._target.iterdir()):
                self._target.rmdir()


def _swap(target: Path, beside: Path) -> None:
    """Exchange the old bundle for the new one, or go on with it; nothing if it was not begun."""
    aside, replaced = beside / _ASIDE, beside / _REPLACED
    if aside.is_dir():
        try:
            # Without its manifest, what is cut short here is at least not taken for sound.
            for name in reversed(_OWN):
                if os.path.lexists(target / name):
                    (target / name).rename(aside / name)
        except OSError:
            for name in _OWN:
                if os.path.lexists(aside / name):
                    (aside / name).rename(target / name)
            aside.rmdir()
            raise
        aside.rename(replaced)
    if replaced.is_dir():
        for name in _OWN:
            if os.path.lexists(beside / name):
                (beside / name).rename(target / name)


def _remove(folder: Path) -> None:
    """Delete a folder; what cannot be deleted is left for the next export."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except KeyboardInterrupt:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    except OSError as error:
        # An interrupted one may close its handle twice, and fail of that.
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from error


class _ZipSink:
    """Writes a file beside the one that is there, and renames it when it is complete."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._beside = target.with_name(f".{target.name}-{uuid.uuid4().hex}")
        self._all = contextlib.ExitStack()
        self._file: IO[bytes] | None = None
        self._archive: zipfile.ZipFile | None = None

    def open(self, name: str, *, stored: bool) -> IO[bytes]:
        assert self._archive is not None  # it was entered
        entry = zipfile.ZipInfo(name, datetime.now(UTC).timetuple()[:6])
        # Videos and trajectories are compressed already, and can be read from the middle as stored.
        entry.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
        entry.external_attr = 0o644 << 16
        return self._archive.open(entry, "w", force_zip64=True)

    def finish(self) -> None:
        assert self._archive is not None
        assert self._file is not None
        self._archive.close()
        with _locked(self._target.parent):  # an export beside this one removes what is not open
            _require_zip(self._target)
            self._file.close()
            self._beside.replace(self._target)

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as every:
            with _locked(self._target.parent) as locked:
                _require_zip(self._target)
                if locked:
                    for left in _left_over(self._target.parent, f".{self._target.name}-"):
                        _remove_unused(left)
                every.callback(self._beside.unlink, missing_ok=True)
                self._file = file = every.enter_context(self._beside.open("x+b"))
                _try_lock(file.fileno())
            self._archive = every.enter_context(zipfile.ZipFile(file, "w"))
            self._all = every.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and self._archive is not None:
            # It is thrown away; a file of it may be open still, and it could not be ended.
            self._archive.fp = None
        self._all.close()


def _require_own(folder: Path) -> None:
    """Refuse to replace what no recorder has put there."""
    there = [name for name in _OWN if os.path.lexists(folder / name)]
    if not there:
        return
    files = FolderFiles(folder)
    listed = _listed(files)
    if not listed:
        raise BundleInTheWay(
            f"{str(folder / there[0])!r} is there without a {RESULT!r} of ours",
            hint="Choose another path, or move it away.",
        )
    for name in there:
        path = folder / name
        inner = path.rglob("*") if name in _TREES and path.is_dir() else [path]
        for one in inner:
            told = one.relative_to(folder).as_posix()
            if told not in listed and not (one.is_dir() and told != name):
                raise BundleInTheWay(
                    f"{str(one)!r} would be replaced, and is none of the bundle's files",
                    hint="Choose another path, or move it away.",
                )


def _require_zip(path: Path) -> None:
    """Likewise, of a zip file; an empty file is as good as none."""
    if not path.exists() or (path.is_file() and not path.stat().st_size):
        return
    try:
        files = ZipFiles(path)
    except BundleError as error:
        raise BundleInTheWay(
            f"{str(path)!r} is a file, and no bundle", hint="Choose another path."
        ) from error
    try:
        listed = _listed(files)
        for name in sorted(files.names() - listed):
            raise BundleInTheWay(
                f"{str(path)!r} has {name!r}, which is none of a bundle's files",
                hint="Choose another path, or move it away.",
            )
    finally:
        files.close()


def _listed(files: Files) -> frozenset[str]:
    """Return which files a bundle says are its own; nothing where there is no bundle."""
    result = _document(files, RESULT)
    if result.get("schema") != SCHEMA:
        return frozenset()
    manifest = _document(files, MANIFEST)
    known: object = manifest.get("files")
    if manifest.get("schema") == MANIFEST_SCHEMA and isinstance(known, dict):
        return frozenset({RESULT, MANIFEST, *cast("dict[str, object]", known)})
    # The published recorder lists no files, but names its media.
    details = _document(files, DETAILS)
    ours = {DETAILS} if details.get("schema") == DETAILS_SCHEMA else set[str]()
    return frozenset({RESULT, *ours, *_paths(result), *(_paths(details) if ours else ())})


def _document(files: Files, name: str) -> dict[str, Any]:  # Any: JSON
    try:
        found: object = json.loads(files.read(name, LARGEST_TEXT))
    except (BundleError, ValueError, RecursionError):
        return {}  # whatever it is, no recorder wrote it
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _paths(document: dict[str, Any]) -> Iterator[str]:  # Any: JSON
    left: list[object] = [document]
    while left:
        value = left.pop()
        if isinstance(value, str) and value.startswith(tuple(f"{tree}/" for tree in _TREES)):
            yield value
        elif isinstance(value, dict):
            left += cast("dict[str, object]", value).values()
        elif isinstance(value, list):
            left += cast("list[object]", value)


@contextlib.contextmanager
def _locked(folder: Path) -> Generator[bool]:
    """Wait until nobody else holds a folder; false where the system has no such locks."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        if os.name == "nt":
            yield False
            return
        handle = os.open(folder, os.O_RDONLY)
        try:
            held = _try_lock(handle, wait=True)
            # Whoever had it may have removed the folder, as it was not filled.
            if folder.exists() and os.path.samestat(os.fstat(handle), folder.stat()):
                try:
                    yield held
                finally:
                    _unlock(handle)
                return
        finally:
            os.close(handle)


def _try_lock(handle: int, *, wait: bool = False) -> bool:
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return False
    return True


def _unlock(handle: int) -> None:
    try:
        import fcntl
    except ImportError:
        return
    # Closing is not enough where a forked child has the handle as well.
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)


def _left_over(folder: Path, prefix: str) -> list[Path]:
    """Return what exports that were killed left, or those that go on write."""
    return [
        path
        for path in folder.iterdir()
        if path.name.startswith(prefix) and _UUID.fullmatch(path.name.removeprefix(prefix))
    ]


def _remove_unused(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError), path.open("r+b") as file:
        if _try_lock(file.fileno()):
            path.unlink()

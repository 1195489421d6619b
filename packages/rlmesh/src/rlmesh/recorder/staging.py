"""Where a recording lies until it is exported: whole episodes, and a journal of them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import IO, Any, Final, cast

from rlcore import BundleError, RecordingError

Json = dict[str, Any]  # Any: JSON

JOURNAL: Final = "journal.jsonl"
STAGING_SCHEMA: Final = "rlmesh.staging.v1"
_OPEN: Final = "open"


class Staging:
    """A folder with the files of finished episodes, and a journal that says what they are.

    Everything that the journal names is on the disk before it is named there, so that a process
    that is killed leaves whole episodes.

    Args:
        folder: where; by default a new folder among the system's temporary files, made when it is
            needed.
    """

    def __init__(self, folder: str | Path | None) -> None:
        self.chosen = folder is not None
        # Where the process goes later does not matter.
        self._folder = None if folder is None else Path(folder).absolute()
        self._journal: IO[bytes] | None = None

    @property
    def exists(self) -> bool:
        """Whether anything was staged."""
        return self._journal is not None

    @property
    def folder(self) -> Path:
        """The folder, once it is in use."""
        if self._folder is None or self._journal is None:
            raise RecordingError("nothing was staged")
        return self._folder

    def start(self, header: Json) -> None:
        """Make the folder and its journal, where this was not done yet.

        Raises:
            RecordingError: another recording lies in the folder.
            OSError: the disk does not take it.
        """
        if self._journal is not None:
            return
        if self._folder is None:
            self._folder = Path(mkdtemp(prefix="rlmesh-recorder-"))
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / JOURNAL
        if path.exists():
            raise RecordingError(
                f"{str(self._folder)!r} holds another recording",
                hint="Get it with Recorder.recover, or choose another folder.",
            )
        self._journal = path.open("xb")
        _lock(self._journal, self._folder)
        (self._folder / _OPEN).mkdir(exist_ok=True)
        self.append({"kind": "set", "schema": STAGING_SCHEMA, **header})

    def reopen(self) -> list[Json]:
        """Return what the journal of an earlier process says, and go on with it.

        Raises:
            RecordingError: a process is still recording into the folder.
            BundleError: there is no such journal.
        """
        folder = self._folder
        if folder is None or not (folder / JOURNAL).is_file():
            raise BundleError(f"there is no recording in {str(folder)!r}", path=str(folder))
        path = folder / JOURNAL
        journal = path.open("r+b")
        try:
            _lock(journal, folder)
            lines, sound = _whole_lines(journal.read())
            if not lines or lines[0].get("schema") != STAGING_SCHEMA:
                raise BundleError(f"{str(path)!r} is no journal of a recording", path=str(path))
            journal.truncate(sound)  # the line that a killed process was writing
            journal.seek(0, os.SEEK_END)
        except BaseException:
            journal.close()
            raise
        self._journal = journal
        shutil.rmtree(folder / _OPEN, ignore_errors=True)
        (folder / _OPEN).mkdir()
        return lines

    def append(self, *entries: Json) -> None:
        """Add lines to the journal, and see to it that they are on the disk.

        Raises:
            OSError: the disk does not take it.
        """
        journal = self._journal
        assert journal is not None  # `start` or `reopen` came before
        for entry in entries:
            journal.write(json.dumps(entry, allow_nan=False).encode() + b"\n")
        journal.flush()
        os.fsync(journal.fileno())

    def open_file(self, name: str) -> Path:
        """Return the path of a file that belongs to an episode which is not finished."""
        return self.folder / _OPEN / name

    def place(self, source: Path, path: str) -> None:
        """Move a finished file to its place in the bundle.

        Raises:
            OSError: the disk does not take it.
        """
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        source.replace(target)

    def release(self) -> None:
        """Let go of the journal; the files stay."""
        journal, self._journal = self._journal, None
        if journal is not None:
            # What could not be written then cannot be now, and nobody asks for it any more.
            with contextlib.suppress(OSError):
                _unlock(journal)
                journal.close()

    def remove(self) -> None:
        """Delete what was staged; a folder that was chosen stays when others have files in it."""
        folder = self._folder
        if self._journal is None or folder is None:
            return
        self.release()
        for name in (_OPEN, "media", "trajectories"):
            shutil.rmtree(folder / name, ignore_errors=True)
        (folder / JOURNAL).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            folder.rmdir()


def _lock(journal: IO[bytes], folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows keeps a second process from deleting it, which is half of it
        return
    try:
        fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise RecordingError(
            f"a process is still recording into {str(folder)!r}",
            hint="Let it end, or end it.",
        ) from error


def _unlock(journal: IO[bytes]) -> None:
    try:
        import fcntl
    except ImportError:
        return
    # Closing is not enough where a forked child has the file as well.
    fcntl.flock(journal, fcntl.LOCK_UN)


def _whole_lines(content: bytes) -> tuple[list[Json], int]:
    lines: list[Json] = []
    sound = 0
    for line in _lines(content):
        try:
            entry: object = json.loads(line)
        except ValueError:
            break
        if not isinstance(entry, dict):
            break
        lines.append(cast("Json", entry))
        sound += len(line)
    return lines, sound


def _lines(content: bytes) -> Iterator[bytes]:
    start = 0
    while (end := content.find(b"\n", start)) >= 0:
        yield content[start : end + 1]
        start = end + 1

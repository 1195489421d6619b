"""What a worker has still to send: in order, in bounded memory, the rest in a file."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Final, cast

Report = dict[str, object]

MOST_IN_MEMORY: Final = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A checkpoint, or another file of a folder, that is to be stored on the server."""

    checkpoint_id: str
    path: Path
    params: Mapping[str, str | int | float]
    state: Path | None = None
    folder: str = "checkpoints"

    def forget(self) -> None:
        """Remove the copies of its files."""
        for file in (self.path, self.state):
            if file is not None:
                file.unlink(missing_ok=True)

    def to_json(self) -> Report:
        """A line for the file."""
        return {
            "checkpoint_id": self.checkpoint_id,
            "path": str(self.path),
            "params": dict(self.params),
            "state": None if self.state is None else str(self.state),
            "folder": self.folder,
        }

    @classmethod
    def of_json(cls, line: Mapping[str, object]) -> Upload:
        """The upload that the line was made of."""
        state = line["state"]
        return cls(
            checkpoint_id=str(line["checkpoint_id"]),
            path=Path(str(line["path"])),
            params=cast("Mapping[str, str | int | float]", line["params"]),
            state=None if state is None else Path(str(state)),
            folder=str(line["folder"]),
        )


class Backlog:
    """Reports and uploads, first in, first out. Safe in any thread.

    Args:
        directory: where files are kept; without it, in a directory of its own.
        most: how many entries are in memory at most; more go to a file.
    """

    def __init__(self, directory: Path | None = None, *, most: int = MOST_IN_MEMORY) -> None:
        self._place = directory
        self._remove: Callable[[], object] = lambda: None
        self._most = most
        self._lock = threading.Lock()
        self._front: deque[Report | Upload] = deque()
        self._spill: IO[bytes] | None = None
        self._read_to = 0
        self._spilled = 0
        self._numbers = itertools.count()

    def __len__(self) -> int:
        with self._lock:
            return len(self._front) + self._spilled

    def add(self, entry: Report | Upload) -> None:
        """Put an entry at the end.

        Raises:
            OSError: there is no room left on the disk for it.
        """
        with self._lock:
            if not self._spilled and len(self._front) < self._most:
                self._front.append(entry)
                return
            line: Report = (
                {"upload": entry.to_json()} if isinstance(entry, Upload) else {"report": entry}
            )
            file = self._file()
            file.seek(0, os.SEEK_END)
            file.write(json.dumps(line).encode() + b"\n")
            self._spilled += 1

    def keep(self, upload: Upload) -> Upload:
        """Copy the files of an upload, so that the trainer may overwrite its own."""
        with self._lock:
            number = next(self._numbers)
            directory = self._directory()
        state = None
        if upload.state is not None:
            state = _copied(upload.state, directory / f"upload-{number}-state")
        path = _copied(upload.path, directory / f"upload-{number}")
        return replace(upload, path=path, state=state)

    def take(self, limit: int) -> list[Report] | Upload | None:
        """Take the next reports, at most `limit`, or the upload whose turn it is."""
        with self._lock:
            self._refill()
            if not self._front:
                return None
            first = self._front[0]
            if isinstance(first, Upload):
                self._front.popleft()
                return first
            batch: list[Report] = []
            while self._front and len(batch) < limit:
                entry = self._front[0]
                if isinstance(entry, Upload):
                    break
                batch.append(entry)
                self._front.popleft()
            return batch

    def close(self) -> None:
        """Remove the files."""
        with self._lock:
            if self._spill is not None:
                self._spill.close()
                self._spill = None
            self._remove()

    def _refill(self) -> None:
        if self._front or not self._spilled:
            return
        file = self._file()
        file.seek(self._read_to)
        while self._spilled and len(self._front) < self._most:
            line = cast("Mapping[str, Mapping[str, object]]", json.loads(file.readline()))
            upload = line.get("upload")
            self._front.append(dict(line["report"]) if upload is None else Upload.of_json(upload))
            self._spilled -= 1
        self._read_to = file.tell()
        if not self._spilled:
            file.truncate(0)
            self._read_to = 0

    def _file(self) -> IO[bytes]:
        if self._spill is None:
            self._spill = (self._directory() / "reports.jsonl").open("w+b")
        return self._spill

    def _directory(self) -> Path:
        if self._place is None:
            self._place = Path(tempfile.mkdtemp(prefix="rleaas-reports-"))
            self._remove = weakref.finalize(self, shutil.rmtree, self._place, ignore_errors=True)
        return self._place


def _copied(file: Path, place: Path) -> Path:
    try:
        # Trainers write files whole and rename them: what was linked does not change.
        os.link(file, place)
    except OSError:  # another file system
        shutil.copyfile(file, place)
    return place

"""The log of each job: one file of lines, to which its worker's own output goes as well."""

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rleaas.training.log_bound import bound, shortened

_PAGE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class LogPart:
    """Lines after a cursor, and the cursor after them."""

    lines: list[str]
    cursor: int


class JobLogs:
    """Log files under one directory; a cursor is a position in the file."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self._root = root
        self._lock = threading.Lock()

    def open(self, job_id: str) -> IO[bytes]:
        """The job's log, for a process to append to."""
        return self.path(job_id).open("ab")

    def append(self, job_id: str, lines: Iterable[str]) -> None:
        """Add lines, while the log is not full; a text with line breaks becomes several."""
        data = _data(lines)
        if not data:
            return
        with self._lock, self.open(job_id) as file:
            _write(file, data)

    def append_once(self, job_id: str, batch: str, lines: Iterable[str]) -> None:
        """Add the lines of a batch, unless an earlier call of the same batch has added them.

        A server that dies between this and its commit is told the batch again. The place where the
        lines go is written down before them: other output may come between, by the worker itself.
        """
        data = _data(lines)
        if not data:
            return
        place, path = self._batch(job_id), self.path(job_id)
        with self._lock:
            begun = place.read_text("ascii").split() if place.exists() else []
            if begun[:1] == [batch]:
                if path.exists() and data in _read_from(path, int(begun[1])):
                    return
            else:
                size = path.stat().st_size if path.exists() else 0
                fresh = place.with_suffix(".new")
                fresh.write_text(f"{batch} {size}", "ascii")
                fresh.replace(place)
            with self.open(job_id) as file:
                _write(file, data)

    def tail(self, job_id: str, limit: int | None = None) -> list[str]:
        """The last `limit` lines, or all of them, oldest first."""
        path = self.path(job_id)
        if not path.exists() or limit == 0:
            return []
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            asked = size if limit is None else _PAGE_BYTES
            while True:
                file.seek(max(0, size - asked))
                data = file.read(min(size, asked))
                if asked >= size:
                    return _lines(data)[-(limit or 0) :]
                lines = _lines(data.partition(b"\n")[2])
                if limit is not None and len(lines) >= limit:
                    return lines[-limit:]
                asked *= 4

    def after(self, job_id: str, cursor: int, *, finished: bool) -> LogPart:
        """The whole lines after the cursor; with `finished`, also a last line without its end."""
        path = self.path(job_id)
        if not path.exists():
            return LogPart([], cursor)
        with path.open("rb") as file:
            file.seek(cursor)
            data = file.read(_PAGE_BYTES)
        full = len(data) == _PAGE_BYTES
        end = data.rfind(b"\n") + 1
        if (finished and not full) or (full and end == 0):
            end = len(data)
        return LogPart(_lines(data[:end]), cursor + end)

    def exists(self, job_id: str) -> bool:
        """Whether there is one."""
        return self.path(job_id).exists()

    def remove(self, job_id: str) -> None:
        """Delete the log."""
        self.path(job_id).unlink(missing_ok=True)
        self._batch(job_id).unlink(missing_ok=True)

    def path(self, job_id: str) -> Path:
        """Where it is, or will be."""
        return self._root / f"{job_id}.log"

    def _batch(self, job_id: str) -> Path:
        return self._root / f".{job_id}.batch"


def _data(lines: Iterable[str]) -> bytes:
    whole = [shortened(piece) for line in lines for piece in line.splitlines() if piece.strip()]
    return "".join(f"{line}\n" for line in whole).encode("utf-8", "replace")


def _read_from(path: Path, position: int) -> bytes:
    with path.open("rb") as file:
        file.seek(position)
        return file.read()


def _lines(data: bytes) -> list[str]:
    # Progress bars rewrite their line with a carriage return; the last state is the line.
    lines = data.decode("utf-8", "replace").split("\n")
    return [shortened(line.rstrip("\r").rpartition("\r")[2]) for line in lines if line.strip()]


def _write(file: IO[bytes], data: bytes) -> None:
    if not bound(file.fileno()):
        file.write(data)
        file.flush()
        bound(file.fileno())

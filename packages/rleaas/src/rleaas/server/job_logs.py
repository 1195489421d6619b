"""The log of each job: one file of lines, to which its worker's own output goes as well."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

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
        return self._path(job_id).open("ab")

    def append(self, job_id: str, lines: Iterable[str]) -> None:
        """Add lines; a text with line breaks becomes several."""
        whole = [piece for line in lines for piece in line.splitlines() if piece.strip()]
        if not whole:
            return
        data = "".join(f"{line}\n" for line in whole).encode("utf-8", "replace")
        with self._lock, self.open(job_id) as file:
            file.write(data)

    def tail(self, job_id: str, limit: int | None = None) -> list[str]:
        """The last `limit` lines, or all of them, oldest first."""
        path = self._path(job_id)
        if not path.exists():
            return []
        lines = _lines(path.read_bytes())
        return lines if limit is None else lines[-limit:] if limit else []

    def after(self, job_id: str, cursor: int, *, finished: bool) -> LogPart:
        """The whole lines after the cursor; with `finished`, also a last line without its end."""
        path = self._path(job_id)
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
        return self._path(job_id).exists()

    def remove(self, job_id: str) -> None:
        """Delete the log."""
        self._path(job_id).unlink(missing_ok=True)

    def _path(self, job_id: str) -> Path:
        return self._root / f"{job_id}.log"


def _lines(data: bytes) -> list[str]:
    # Progress bars rewrite their line with a carriage return; the last state is the line.
    lines = data.decode("utf-8", "replace").split("\n")
    return [line.rstrip("\r").rpartition("\r")[2] for line in lines if line.strip()]

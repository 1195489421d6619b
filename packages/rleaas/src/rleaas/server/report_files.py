"""Reports that were exported: files with the digest of exactly their bytes."""

import hashlib
import os
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from rlcore import NotFoundError

_NAME: Final = re.compile(r"report_[0-9a-f]{24}\.(json|csv|pdf|html)")


@dataclass(frozen=True, slots=True)
class ReportFile:
    """A file that is there, its digest, and its signature."""

    name: str
    sha256: str
    signature: str
    size_bytes: int


class ReportFiles:
    """The exported reports of each organisation; none sees those of another."""

    def __init__(self, root: Path, sign: Callable[[bytes], str]) -> None:
        self._root = root
        self._sign = sign

    def keep(self, organisation: int, format: str, content: bytes) -> ReportFile:
        """Write a report; it is there as a whole, or not at all."""
        name = f"report_{secrets.token_hex(12)}.{format}"
        place = self._root / str(organisation) / name
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_suffix(".part")
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(place)
        digest = hashlib.sha256(content).hexdigest()
        return ReportFile(name, digest, self._sign(content), len(content))

    def remove_older(self, organisation: int, before: datetime) -> int:
        """Delete the reports that were written before a moment; returns how many."""
        gone = [
            place
            for place in sorted((self._root / str(organisation)).glob("report_*"))
            if place.stat().st_mtime < before.timestamp()
        ]
        for place in gone:
            place.unlink()
        return len(gone)

    def find(self, organisation: int, name: str) -> Path:
        """Return where a report is.

        Raises:
            NotFoundError: there is none of this name.
        """
        place = self._root / str(organisation) / name
        if not _NAME.fullmatch(name) or not place.is_file():
            raise NotFoundError(kind="report", ref=name, code="report_not_found")
        return place

"""Answers of language models in a directory, one file each, under what they depend on."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

_DIGEST = re.compile(r"\A[0-9a-f]{64}\Z")


class DirectoryCache:
    """Keeps answers over restarts; processes share it, and the oldest go when it is full.

    Args:
        directory: made when there is something to keep.
        most: how many answers are kept.
    """

    def __init__(self, directory: Path, *, most: int = 100_000) -> None:
        self._directory = directory
        self._most = most
        self._until_look = 0

    def get(self, digest: str) -> str | None:
        """The answer that was kept under the SHA-256; None: there is none."""
        try:
            return self._file(digest).read_text("utf-8")
        except (FileNotFoundError, UnicodeDecodeError):
            return None

    def put(self, digest: str, answer: str) -> None:
        """Keep an answer, whole or not at all.

        Raises:
            OSError: there is no room for it.
        """
        file = self._file(digest)
        file.parent.mkdir(parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(dir=file.parent, prefix=".new-")
        try:
            with os.fdopen(number, "w", encoding="utf-8") as stream:
                stream.write(answer)
            Path(name).replace(file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        self._until_look -= 1
        if self._until_look < 0:
            self._prune()

    def _file(self, digest: str) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"{digest!r} is no SHA-256")
        return self._directory / digest[:2] / digest

    def _prune(self) -> None:
        kept = [file for file in self._directory.glob("??/*") if not file.name.startswith(".")]
        surplus = len(kept) - self._most
        if surplus > 0:
            ages = sorted((_age(file), file) for file in kept)
            for _, file in ages[: surplus + self._most // 10]:
                file.unlink(missing_ok=True)
            surplus = -self._most // 10
        self._until_look = max(1, -surplus // 2)


def _age(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return 0.0

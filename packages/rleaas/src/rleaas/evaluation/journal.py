"""The episodes of an evaluation as they come, so that another attempt goes on after them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from rlmesh.runs.outcomes import Outcome

from rleaas.evaluation.rollouts import RolloutRecord


class EpisodeJournal:
    """A file with an episode on each line; a context manager.

    What a worker that was killed had begun to write is cut off. Episodes without a score are
    played again, but for those that only a verifier could not judge.

    Args:
        path: where it is; made where it is not there.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._finished: dict[int, RolloutRecord] = {}
        whole = 0
        if path.exists():
            for line in path.read_bytes().splitlines(keepends=True):
                if not line.endswith(b"\n"):
                    break
                whole += len(line)
                record = RolloutRecord.from_json(json.loads(line))
                self._finished[record.index] = record
        self._file: IO[bytes] = path.open("ab")
        self._file.truncate(whole)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[RolloutRecord]:
        return iter([self._finished[index] for index in sorted(self._finished)])

    def __contains__(self, index: object) -> bool:
        record = self._finished.get(index) if isinstance(index, int) else None
        return record is not None and _counts(record.outcome)

    def __len__(self) -> int:
        return len(self._finished)

    def add(self, record: RolloutRecord) -> None:
        """Keep an episode; another one of its number goes before it."""
        self._file.write(json.dumps(record.to_json(), allow_nan=False).encode() + b"\n")
        self._file.flush()
        self._finished[record.index] = record


def _counts(outcome: str) -> bool:
    word = Outcome(outcome)
    return word.scored or word is Outcome.GRADER_ERROR

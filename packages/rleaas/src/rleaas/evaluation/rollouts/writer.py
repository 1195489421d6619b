"""Writes rollouts to a file of Parquet, a group of rows at a time."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from rlcore import ConfigurationError

from rleaas.evaluation.rollouts.record import RolloutRecord
from rleaas.evaluation.rollouts.table import parquet, schema, table_of

_GROUP_ROLLOUTS: Final = 256
_GROUP_STEPS: Final = 4096


class RolloutWriter:
    """Writes episodes; a context manager.

    The file appears under its name when the writer is closed, as a whole, with everything that was
    added until then: also where an exception or Ctrl-C ends the block.

    Args:
        path: where; what is there is replaced.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._part = self._path.with_name(f".{self._path.name}.{secrets.token_hex(4)}.part")
        self._waiting: list[RolloutRecord] = []
        self._waiting_steps = 0
        self._rollouts = 0
        self._steps = 0
        self._ids: set[str] = set()
        # Values differ from step to step, and zstd finds what repeats.
        self._file: Any = parquet().ParquetWriter(  # Any: pyarrow has no types
            self._part,
            schema(),
            compression="zstd",
            use_dictionary=False,
            write_statistics=["id", "index"],
            write_page_checksum=True,
        )
        self._open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def rollouts(self) -> int:
        """How many episodes were added."""
        return self._rollouts

    @property
    def steps(self) -> int:
        """How many steps they have."""
        return self._steps

    def add(self, record: RolloutRecord) -> None:
        """Add an episode.

        Raises:
            ConfigurationError: one of this id is there, a value is none of JSON, or the writer is
                closed.
        """
        if not self._open:
            raise ConfigurationError(f"the rollouts in {str(self._path)!r} are closed")
        if record.id in self._ids:
            raise ConfigurationError(
                f"rollout {record.id!r} is in {str(self._path)!r} already", code="rollout_repeated"
            )
        if record.steps and len(self._waiting) and self._full(len(record.steps)):
            self.flush()
        # By itself first: one that cannot be kept must not take those beside it with it.
        table_of((record,))
        self._ids.add(record.id)
        self._waiting.append(record)
        self._waiting_steps += len(record.steps)
        self._rollouts += 1
        self._steps += len(record.steps)
        if self._full(0):
            self.flush()

    def flush(self) -> None:
        """Write what waits as a group of rows."""
        if self._waiting:
            table = table_of(self._waiting)
            self._waiting, self._waiting_steps = [], 0
            self._file.write_table(table)

    def close(self) -> None:
        """Write the rest, and let the file appear; a second call does nothing."""
        if not self._open:
            return
        self._open = False
        try:
            self.flush()
            self._file.close()
            with self._part.open("rb") as file:
                os.fsync(file.fileno())
            self._part.replace(self._path)
        finally:
            self._file.close()
            self._part.unlink(missing_ok=True)

    def _full(self, more: int) -> bool:
        if len(self._waiting) >= _GROUP_ROLLOUTS:
            return True
        return self._waiting_steps + more >= _GROUP_STEPS

"""Reads rollouts from a file of Parquet, which may come from anybody."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from rlcore import NotFoundError, RolloutsUnreadable

from rleaas.evaluation.rollouts.record import RolloutRecord
from rleaas.evaluation.rollouts.table import FORMAT, FORMAT_KEY, arrow, parquet, record_of, schema

MAX_GROUP_BYTES: Final = 512 * 1024 * 1024
MAX_GROUP_VALUES: Final = 16_000_000
_BATCH: Final = 64
_MAX_FOOTER: Final = 64 * 1024 * 1024
# What thrift may read of a footer, which says itself how long its parts are.
_MAX_NAMES: Final = 1_000_000
_DICTIONARIES: Final = frozenset({"PLAIN_DICTIONARY", "RLE_DICTIONARY"})


class RolloutReader:
    """Reads episodes, by their place in the file or by their id; a context manager.

    A file that is no such file, that is cut off or altered, or that would need more memory than
    its groups may have, is refused before anything of it is read into memory.

    Args:
        path: where it is.
        name: how messages call it; the path where nothing is given.

    Raises:
        RolloutsUnreadable: it is no file of rollouts.
    """

    def __init__(self, path: str | os.PathLike[str], *, name: str | None = None) -> None:
        self._name = name or str(path)
        self._file: Any = self._guarded(lambda: self._opened(Path(path)))
        counts = [self._group(number) for number in range(self._file.metadata.num_row_groups)]
        self._ends: list[int] = []
        for count in counts:
            self._ends.append(count + (self._ends[-1] if self._ends else 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __len__(self) -> int:
        """How many episodes there are."""
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[RolloutRecord]:
        """All episodes with their steps, a few at a time in memory.

        Raises:
            RolloutsUnreadable: a part of the file is damaged.
        """
        return self._records(0, len(self), steps=True)

    def page(
        self, offset: int = 0, limit: int = 100, *, steps: bool = True
    ) -> Sequence[RolloutRecord]:
        """The episodes from a place on; fewer than `limit` at the end.

        Args:
            offset: the first one's place in the file, from 0.
            limit: how many at most.
            steps: whether they come with their steps.

        Raises:
            RolloutsUnreadable: a part of the file is damaged.
        """
        end = min(len(self), offset + limit)
        return tuple(self._records(max(0, offset), end, steps=steps))

    def place_of(self, rollout_id: str) -> int:
        """Where an episode is in the file, from 0.

        Raises:
            NotFoundError: there is none of this id.
        """
        for place, one in enumerate(self.ids()):
            if one == rollout_id:
                return place
        raise NotFoundError(kind="rollout", ref=rollout_id, code="rollout_not_found")

    def one(self, rollout_id: str) -> RolloutRecord:
        """The episode of this id.

        Raises:
            NotFoundError: there is none.
            RolloutsUnreadable: a part of the file is damaged.
        """
        return self.page(self.place_of(rollout_id), 1)[0]

    def ids(self) -> Iterator[str]:
        """The ids, in the file's order."""
        for number in range(len(self._ends)):
            column = self._guarded(partial(self._file.read_row_group, number, columns=["id"]))
            yield from column.column("id").to_pylist()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _records(self, begin: int, end: int, *, steps: bool) -> Iterator[RolloutRecord]:
        columns = None if steps else [one.name for one in schema() if one.name != "steps"]
        group = bisect_right(self._ends, begin)
        while begin < end:
            start = self._ends[group - 1] if group else 0
            skip, take = begin - start, min(end, self._ends[group]) - begin
            yield from self._in_group(group, skip, take, columns)
            begin += take
            group += 1

    def _in_group(
        self, group: int, skip: int, take: int, columns: list[str] | None
    ) -> Iterator[RolloutRecord]:
        batches = self._file.iter_batches(_BATCH, row_groups=[group], columns=columns)
        while take > 0:
            batch = self._guarded(lambda: next(batches, None))
            if batch is None:
                raise RolloutsUnreadable(self._name, f"its group {group} has fewer rows than told")
            if skip >= batch.num_rows:
                skip -= batch.num_rows
                continue
            part = batch.slice(skip, take)
            skip, take = 0, take - part.num_rows
            yield from self._guarded(partial(_records_of, part))

    def _opened(self, path: Path) -> Any:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            size = file.tell()
            file.seek(max(0, size - 8))
            tail = file.read(8)
        if size < 12 or tail[4:] != b"PAR1":
            raise ValueError("it is cut off, or no file of Parquet")
        if int.from_bytes(tail[:4], "little") > min(size, _MAX_FOOTER):
            raise ValueError("its footer is longer than it can be")
        opened = parquet().ParquetFile(
            path,
            page_checksum_verification=True,
            thrift_string_size_limit=_MAX_FOOTER,
            thrift_container_size_limit=_MAX_NAMES,
        )
        try:
            found = opened.schema_arrow
            metadata: dict[bytes, bytes] = found.metadata or {}
            told = metadata.get(FORMAT_KEY)
            if told is None or not found.equals(schema(), check_metadata=False):
                raise ValueError("it has not the columns of rollouts")
            if told != FORMAT:
                raise ValueError(f"it is of another release: format {told[:20]!r}, not {FORMAT!r}")
        except BaseException:
            opened.close()
            raise
        return opened

    def _group(self, number: int) -> int:
        def looked() -> int:
            group = self._file.metadata.row_group(number)
            columns = [group.column(place) for place in range(group.num_columns)]
            if sum(one.total_uncompressed_size for one in columns) > MAX_GROUP_BYTES:
                raise ValueError(f"its group {number} is larger than {MAX_GROUP_BYTES} bytes")
            if sum(one.num_values for one in columns) > MAX_GROUP_VALUES:
                raise ValueError(f"its group {number} has more than {MAX_GROUP_VALUES} values")
            # A dictionary can make gigabytes out of a few bytes; the writer has none.
            if any(_DICTIONARIES.intersection(one.encodings) for one in columns):
                raise ValueError(f"its group {number} is written with a dictionary")
            return int(group.num_rows)

        return int(self._guarded(looked))

    def _guarded(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except (arrow().ArrowException, OSError, ValueError, TypeError, RecursionError) as error:
            if isinstance(error, RolloutsUnreadable | FileNotFoundError):
                raise
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            raise RolloutsUnreadable(self._name, reason) from error


def _records_of(batch: Any) -> list[RolloutRecord]:
    return [record_of(row) for row in batch.to_pylist()]


def check_rollouts(path: str | os.PathLike[str], *, name: str | None = None) -> tuple[int, int]:
    """Read a whole file once, a few episodes at a time; returns how many, and their steps.

    Raises:
        RolloutsUnreadable: something of it cannot be read, or two episodes have one id.
    """
    ids: set[str] = set()
    steps = 0
    with RolloutReader(path, name=name) as reader:
        for record in reader:
            if record.id in ids:
                raise RolloutsUnreadable(name or str(path), f"it has {record.id!r} twice")
            ids.add(record.id)
            steps += len(record.steps)
    return len(ids), steps

"""Steps as a Parquet table, for tools that read nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
from rlcore import MissingDependencyError

from rlmesh.recorder.columns import Array, Member, ValueColumn
from rlmesh.recorder.tagged import to_tagged
from rlmesh.recorder.trajectory import TrajectoryWriter

_GROUP_BYTES: Final = 8 * 2**20


def require_parquet() -> None:
    """Do nothing where Parquet can be written.

    Raises:
        MissingDependencyError: pyarrow is not installed.
    """
    try:
        import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingDependencyError(
            "Parquet is written with pyarrow, which is not installed",
            hint='Install it: pip install "rlmesh[parquet]"',
        ) from error


def write_parquet(path: Path, writer: TrajectoryWriter) -> None:
    """Write an episode as a table with a row for each step.

    Columns are named as the arrays of the npz file. Array-valued ones are lists of their elements
    in C order; the file's metadata `rlmesh.shapes` has their shapes. Values whose form changes from
    step to step are JSON text. `observation_digest` is hexadecimal, and like the observations of
    what each step started from; the last one is in the npz file only.

    Raises:
        OSError: the disk does not take it.
    """
    arrow: Any = import_module("pyarrow")  # Any: pyarrow has no types, as below
    parquet: Any = import_module("pyarrow.parquet")
    series = {name: values for name, values in writer.series().items() if values.ndim == 1}
    digests = writer.series()["observation_digest"]
    columns = [_Source(column, arrow) for column in writer.columns()]
    fields: list[tuple[str, Any]] = [("step", arrow.int64())]
    fields += [(name, arrow.from_numpy_dtype(values.dtype)) for name, values in series.items()]
    fields.append(("observation_digest", arrow.string()))
    shapes: dict[str, list[int]] = {}
    for column in columns:
        fields += column.fields
        shapes |= column.shapes
    schema = arrow.schema(fields, metadata={"rlmesh.shapes": json.dumps(shapes)})
    rows = max(1, _GROUP_BYTES // max(1, sum(column.row_bytes for column in columns)))
    with parquet.ParquetWriter(path, schema, compression="zstd") as file:
        for start in range(0, writer.steps, rows):
            end = min(start + rows, writer.steps)
            arrays: list[Any] = [arrow.array(np.arange(start, end))]
            arrays += [arrow.array(values[start:end]) for values in series.values()]
            arrays.append(arrow.array([bytes(row).hex() for row in digests[start:end]]))
            for column in columns:
                arrays += column.take(end - start)
            file.write_table(arrow.table(arrays, schema=schema))


class _Source:
    """Gives a column's values in groups, as Arrow's arrays."""

    def __init__(self, column: ValueColumn, arrow: Any) -> None:
        self._arrow = arrow
        layout = column.layout()
        self.shapes: dict[str, list[int]] = {}
        self.fields: list[tuple[str, Any]] = []
        self.row_bytes = 1
        self._values: Iterator[object] | None = None
        self._rows: list[tuple[Member, Iterator[Array]]] = []
        if layout is None:
            return
        if _has_tagged(layout):
            self._values = column.values()
            self.fields.append((column.name, arrow.string()))
            return
        for member in column.members():
            kind = arrow.from_numpy_dtype(member.dtype)
            if member.shape:
                self.shapes[member.name] = list(member.shape)
                kind = arrow.list_(kind)
            self.fields.append((member.name, kind))
            self.row_bytes += member.row_bytes
            self._rows.append((member, member.rows(column.count)))

    def take(self, count: int) -> list[Any]:
        if self._values is not None:
            texts = [json.dumps(to_tagged(value)) for value in islice(self._values, count)]
            return [self._arrow.array(texts, self._arrow.string())]
        return [self._array(member, list(islice(rows, count))) for member, rows in self._rows]

    def _array(self, member: Member, rows: list[Array]) -> Any:
        flat = np.concatenate([row.reshape(-1) for row in rows])
        values = self._arrow.array(flat, self._arrow.from_numpy_dtype(member.dtype))
        if not member.shape:
            return values
        ends = np.arange(len(rows) + 1, dtype=np.int32) * (len(flat) // len(rows))
        return self._arrow.ListArray.from_arrays(
            self._arrow.array(ends, self._arrow.int32()), values
        )


def _has_tagged(layout: dict[str, Any]) -> bool:  # Any: JSON
    match layout["kind"]:
        case "tagged":
            return True
        case "dict":
            return any(_has_tagged(item) for _, item in layout["items"])
        case "tuple" | "list":
            return any(map(_has_tagged, layout["items"]))
        case _:
            return False

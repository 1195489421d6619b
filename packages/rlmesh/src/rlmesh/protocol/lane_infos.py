"""How the infos of many lanes are laid out in one.

In *columns*, as gymnasium has them: each key holds an array with a place for each lane, and `_key`
a mask that says which lanes gave it; dictionaries nest. In *rows*, as published servers send the
infos of a list of environments: `final_info` is a list of the lanes' own infos.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from rlmesh.values import Array

FINAL_OBS: Final = "final_obs"
FINAL_INFO: Final = "final_info"
ROWS: Final = "_final_info"
_NUMBERS: Final = (int, float, bool)

Info = Mapping[str, Any]  # Any, in this room: whatever environments say
Columns = dict[str, Any]


def in_columns(infos: Sequence[Info]) -> Columns:
    """Return the lanes' infos as gymnasium's vector environments lay them out.

    Numbers and arrays of one shape become arrays, everything else a place in an array of objects.
    Where lanes give different types of numbers, the array has the type that holds them all.
    """
    columns: Columns = {}
    if any(infos):
        for lane, info in enumerate(infos):
            if info:
                _add(columns, info, lane, len(infos))
    return columns


def in_rows(infos: Sequence[Info], told: Sequence[bool]) -> Info:
    """Return the lanes' infos as published servers send them: a single lane's as it is."""
    if len(infos) == 1:
        return infos[0]
    return {FINAL_INFO: list(infos), ROWS: list(told)}


def rows_of(info: Info, lanes: int) -> Sequence[Info] | None:
    """Return the lanes' infos out of one in rows; None when it is not laid out so."""
    rows: object = info.get(FINAL_INFO)
    if lanes == 1 or not isinstance(rows, list) or len(cast("list[object]", rows)) != lanes:
        return None
    found = cast("list[object]", rows)
    if not all(row is None or isinstance(row, Mapping) for row in found):
        return None
    return [cast("Info", row or {}) for row in found]


def lane_of(info: Info, lane: int, lanes: int) -> dict[str, Any]:
    """Return one lane's own info out of one in columns.

    A key with a mask counts where its mask is set. One without counts where it has a place for each
    lane, as environments do that vectorise themselves.
    """
    own: dict[str, Any] = {}
    for key, value in info.items():
        mask: object = info.get(f"_{key}")
        if mask is None and _masks(info, key):
            continue
        if mask is not None and not _at(mask, lane, lanes, otherwise=True):
            continue
        if isinstance(value, Mapping):
            own[key] = lane_of(cast("Info", value), lane, lanes)
        elif _is_column(value, lanes):
            own[key] = value[lane]
        elif mask is not None:
            own[key] = value
    return own


def restored(info: Info, lanes: int, *, exact: bool) -> Columns:
    """Return an info in columns as it was before it travelled: its lists are arrays again.

    Args:
        info: as it arrived; a mask is a list or an array.
        lanes: how many places a column has.
        exact: whether arrays keep their type on the way, so that a list was an array of objects;
            otherwise a list of numbers becomes an array of them.
    """
    whole: Columns = {}
    for key, value in info.items():
        if _masks(info, key):
            whole[key] = np.asarray(value, np.bool_) if _is_column(value, lanes) else value
        elif f"_{key}" in info:
            whole[key] = _column(value, lanes, exact, key)
        else:
            whole[key] = value
    return whole


def _add(columns: Columns, info: Info, lane: int, lanes: int) -> None:
    for key, value in info.items():
        if isinstance(value, dict) and key != FINAL_OBS:
            inner = columns.setdefault(key, {})
            if isinstance(inner, dict):
                _add(cast("Columns", inner), cast("Info", value), lane, lanes)
            else:
                columns[key] = _objects(cast("Array", inner))
                columns[key][lane] = value
        else:
            columns[key] = _placed(columns.get(key), key, value, lane, lanes)
        mask = columns.setdefault(f"_{key}", np.zeros(lanes, np.bool_))
        mask[lane] = True


def _placed(column: Any, key: str, value: Any, lane: int, lanes: int) -> Array:
    if column is None:
        column = _new_column(key, value, lanes)
    elif isinstance(column, dict):
        column = np.full(lanes, column, object)
    column = cast("Array", column)
    if column.dtype != object:
        shape, dtype = _form(value)
        if shape != column.shape[1:]:
            column = _objects(column)
        else:
            column = column.astype(np.result_type(column.dtype, dtype), copy=False)
    column[lane] = value
    return cast("Array", column)


def _new_column(key: str, value: Any, lanes: int) -> Array:
    if key != FINAL_OBS:
        shape, dtype = _form(value)
        if shape is not None:
            return np.zeros((lanes, *shape), dtype)
    return np.full(lanes, None, object)


def _form(value: Any) -> tuple[tuple[int, ...] | None, np.dtype[Any]]:
    """Return the shape and type of a number or an array; no shape for anything else."""
    if type(value) in _NUMBERS or isinstance(value, np.number):
        return (), np.asarray(cast("float", value)).dtype
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        if array.dtype != object:
            return array.shape, array.dtype
    return None, np.dtype(object)


def _objects(column: Array) -> NDArray[np.object_]:
    if column.dtype == object:
        return column
    objects = np.full(len(column), None, object)
    for lane, value in enumerate(column):
        objects[lane] = value
    return objects


def _masks(info: Info, key: str) -> bool:
    return key.startswith("_") and key[1:] in info


def _is_column(value: object, lanes: int) -> bool:
    if isinstance(value, np.ndarray):
        shape = cast("Array", value).shape
        return bool(shape) and shape[0] == lanes
    return isinstance(value, list | tuple) and len(cast("list[object]", value)) == lanes


def _at(mask: object, lane: int, lanes: int, *, otherwise: bool) -> bool:
    return bool(cast("list[object]", mask)[lane]) if _is_column(mask, lanes) else otherwise


def _column(value: Any, lanes: int, exact: bool, key: str) -> Any:
    if isinstance(value, Mapping):
        inner = restored(cast("Info", value), lanes, exact=exact)
        plain = {name for name in inner if not _masks(inner, name)}
        return {
            name: _column(child, lanes, exact, name) if name in plain else child
            for name, child in inner.items()
        }
    cells = cast("list[object]", value)
    if not isinstance(value, list) or len(cells) != lanes:
        return cast("Any", value)
    if not exact and key != FINAL_OBS and _are_numbers(cells):
        return np.asarray(cells)
    objects = np.full(lanes, None, object)
    for lane, cell in enumerate(cells):
        objects[lane] = cell
    return objects


def _are_numbers(cells: Sequence[object]) -> bool:
    """Return whether cells are numbers, or nested lists of them of one shape."""
    first = cells[0]
    if isinstance(first, list):
        size = len(cast("list[object]", first))
        rows = [cast("list[object]", cell) for cell in cells if isinstance(cell, list)]
        same = len(rows) == len(cells) and all(len(row) == size for row in rows)
        return same and (size == 0 or _are_numbers([item for row in rows for item in row]))
    return all(type(cell) in _NUMBERS for cell in cells)

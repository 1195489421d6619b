"""Several values of one space as one: arrays with a leading dimension, in the space's own tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from rlmesh.spaces.box import Box
from rlmesh.spaces.coerce import as_anything, invalid, items_of, shown
from rlmesh.spaces.containers import Dict, Tuple
from rlmesh.spaces.discrete import Discrete
from rlmesh.spaces.multi import MultiBinary, MultiDiscrete
from rlmesh.spaces.space import Space
from rlmesh.values import NATIVE, Backend, Tensor

# Any, in this room: values of whichever space.


def stacked(space: Space, values: Sequence[Any], backend: Backend) -> Any:
    """Return values, whose arrays are NumPy's, as one value in the backend's arrays."""
    match space:
        case Dict():
            return {
                key: stacked(child, [value[key] for value in values], backend)
                for key, child in space.items()
            }
        case Tuple():
            return tuple(
                stacked(child, [value[index] for value in values], backend)
                for index, child in enumerate(space)
            )
        case Discrete() if backend is NATIVE:
            return list(values)
        case Discrete():
            return backend.owned(np.array(values, space.dtype))
        case Box() | MultiBinary() | MultiDiscrete():
            if not values:
                return backend.owned(np.zeros((0, *space.shape), space.value_dtype))
            return backend.owned(np.stack(values))
        case _:
            return tuple(values)


def unstacked(space: Space, value: object, path: str) -> list[Any]:
    """Return the values that one value stacks.

    Raises:
        InvalidValueError: it stacks none, or its parts different numbers of them.
    """
    match space:
        case Dict():
            if not isinstance(value, Mapping):
                raise invalid(path, f"must be a mapping with the keys {list(space)}")
            entries = cast("Mapping[object, object]", value)
            columns: list[list[Any]] = []
            for key, child in space.items():
                if key not in entries:
                    raise invalid(f"{path}.{key}", "is missing")
                columns.append(unstacked(child, entries[key], f"{path}.{key}"))
            return [dict(zip(space, row, strict=True)) for row in _rows(columns, path)]
        case Tuple():
            items = _items(value, path)
            if len(items) != len(space):
                raise invalid(path, f"has {len(items)} items; it must have {len(space)}")
            columns = [
                unstacked(child, item, f"{path}[{index}]")
                for index, (child, item) in enumerate(zip(space, items, strict=True))
            ]
            return [tuple(row) for row in _rows(columns, path)]
        case Box() | Discrete() | MultiBinary() | MultiDiscrete():
            array = as_anything(value, path)
            if array.ndim == 0:
                raise invalid(path, f"must be several values, not {shown(value)}")
            return [array[index, ...] for index in range(len(array))]
        case _:
            return list(_items(value, path))


def count_of(space: Space, value: Any, path: str) -> int:
    """Return how many values one value stacks, told by its first part with a length.

    Raises:
        InvalidValueError: it stacks none.
    """
    try:
        if isinstance(space, Dict) and isinstance(value, Mapping):
            entries = cast("Mapping[str, Any]", value)
            children = [(child, entries[key]) for key, child in space.items()]
        elif isinstance(space, Tuple) and isinstance(value, tuple):
            children = list(zip(space, cast("list[Any]", value), strict=True))
        else:
            return value.shape[0] if isinstance(value, Tensor) else len(value)
    except (LookupError, TypeError, ValueError) as error:
        raise invalid(
            path, f"must stack values of {space!r}, not {shown(cast('object', value))}"
        ) from error
    return count_of(*children[0], path) if children else 0


def _rows(columns: Sequence[Sequence[Any]], path: str) -> list[tuple[Any, ...]]:
    counts = {len(column) for column in columns}
    if len(counts) > 1:
        raise invalid(path, f"stacks parts of different lengths: {sorted(counts)}")
    return list(zip(*columns, strict=True))


def _items(value: object, path: str) -> Sequence[Any]:
    items = items_of(value)
    if items is None:
        raise invalid(path, f"must be a tuple, not {shown(value)}")
    return items

"""Several values as one with a leading axis, and back: how single predictions share a batch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from rlcore import InvalidValueError

from rlmesh.values import Tensor

# Any, in this room: whatever environments and models make.


def stack(
    values: Sequence[object],
    *,
    native: bool = False,
    leaf: Callable[[Any], Any] | None = None,
) -> Any:
    """Return observations as one batch: leaves get a leading axis, texts become a list.

    Args:
        values: at least one; all of the same structure and shapes.
        native: keep them a list, as models over native values take a batch.
        leaf: what becomes of an array of plain numbers, which are of no framework themselves.

    Raises:
        InvalidValueError: a leaf is None, or structures or shapes differ.
    """
    if native:
        return list(values)
    return _stacked(values, "$", leaf or np.asarray)


def unstack(batch: object, count: int) -> list[Any]:
    """Return the values of a batch: a list holds them already, in anything else leaves do.

    Raises:
        InvalidValueError: it is no batch of so many.
    """
    return _unstacked(batch, count, "$")


def count_of(batch: object) -> int | None:
    """Return how many values a batch holds, as its first leaf tells; None if none does."""
    if isinstance(batch, list):
        return len(cast("list[object]", batch))
    parts: Iterable[object] | None = None
    if isinstance(batch, Mapping):
        parts = cast("Mapping[object, object]", batch).values()
    elif isinstance(batch, tuple):
        parts = cast("tuple[object, ...]", batch)
    if parts is not None:
        counts = (count_of(part) for part in parts)
        return next((count for count in counts if count is not None), None)
    array = cast("Any", batch)
    return int(array.shape[0]) if is_array(array) and len(array.shape) else None


def is_array(value: object) -> bool:
    """Tell whether a value is an array of any library."""
    return isinstance(value, np.ndarray | Tensor) or (
        hasattr(value, "shape") and hasattr(value, "dtype") and hasattr(value, "__getitem__")
    )


def row(array: Any, index: int) -> Any:
    """Return one row of an array of any library, an array itself."""
    if isinstance(array, Tensor):
        part = array.__array__()[index]
        return part.item() if part.ndim == 0 else Tensor.over(np.ascontiguousarray(part))
    return array[index]


def _stacked(values: Sequence[Any], path: str, leaf: Callable[[Any], Any]) -> Any:
    first = values[0]
    if isinstance(first, Mapping):
        keys = list(cast("Mapping[str, object]", first))
        for value in values:
            if not isinstance(value, Mapping) or set(cast("Mapping[str, Any]", value)) != set(keys):
                raise _ragged(path, "have different keys")
        return {
            key: _stacked([value[key] for value in values], f"{path}.{key}", leaf) for key in keys
        }
    if isinstance(first, tuple | list):
        parts, kind = cast("Sequence[Any]", first), tuple if isinstance(first, tuple) else list
        if any(not isinstance(value, kind) for value in values) or len(set(map(len, values))) > 1:
            raise _ragged(path, "have different lengths")
        items = [
            _stacked([value[index] for value in values], f"{path}[{index}]", leaf)
            for index in range(len(parts))
        ]
        return tuple(items) if isinstance(first, tuple) else items
    if isinstance(first, str | bytes):
        return list(values)
    if any(value is None for value in values):
        raise _ragged(path, "are None")
    return _stacked_leaves(values, path, leaf)


def _stacked_leaves(values: Sequence[Any], path: str, leaf: Callable[[Any], Any]) -> Any:
    first = values[0]
    make: Callable[[Sequence[Any]], Any] = np.stack
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is not None and isinstance(first, torch.Tensor):
        make = torch.stack
    elif jax is not None and isinstance(first, jax.Array):
        make = jax.numpy.stack
    elif isinstance(first, Tensor):
        values = [np.asarray(value) for value in values]
    try:
        stacked = make(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise _ragged(path, f"cannot be stacked: {error}") from error
    return leaf(stacked) if isinstance(first, bool | int | float | np.generic) else stacked


def _unstacked(batch: object, count: int, path: str) -> list[Any]:
    if isinstance(batch, Mapping):
        columns = [
            (key, _unstacked(value, count, f"{path}.{key}"))
            for key, value in cast("Mapping[Any, object]", batch).items()
        ]
        return [{key: column[at] for key, column in columns} for at in range(count)]
    if isinstance(batch, list):
        lanes = cast("list[object]", batch)
        if len(lanes) != count:
            raise _no_batch(path, f"has {len(lanes)} items", count)
        return list(lanes)
    if isinstance(batch, tuple):
        parts = [
            _unstacked(part, count, f"{path}[{index}]")
            for index, part in enumerate(cast("tuple[object, ...]", batch))
        ]
        return list(zip(*parts, strict=True)) if parts else [()] * count
    if not is_array(batch):
        raise _no_batch(path, f"is {type(batch).__name__}", count)
    array = cast("Any", batch)
    shape = tuple(array.shape)
    if not shape or shape[0] != count:
        raise _no_batch(path, f"has the shape {list(shape)}", count)
    return [row(array, index) for index in range(count)]


def _ragged(path: str, what: str) -> InvalidValueError:
    return InvalidValueError(f"the values at {path} {what}, so they are no batch", path=path)


def _no_batch(path: str, what: str, count: int) -> InvalidValueError:
    return InvalidValueError(
        f"the value at {path} {what}; a batch of {count} is arrays with {count} rows, "
        f"or a list of {count}",
        path=path,
    )

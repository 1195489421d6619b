"""Turn what users pass into exactly what a leaf holds, or say why it cannot be."""

from __future__ import annotations

import operator
from typing import Any, Final, cast

import numpy as np
from rlcore import ConfigurationError, InvalidValueError

from rlmesh.backends.host import host, hosted, widened
from rlmesh.values import DTYPES, Array, Tensor

SHOWN: Final = 80  # characters of a refused value that a message repeats


def shown(value: object) -> str:
    """Return a value as a message repeats it."""
    try:
        text = repr(value)
    except Exception:  # a foreign __repr__ may do anything, and the message matters more
        text = f"<{type(value).__name__}>"
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def items_of(value: object, count: int | None = None) -> list[Any] | None:  # Any: whatever it has
    """Return the items of a tuple or list, if it is one, and of that length if one is given."""
    if not isinstance(value, tuple | list):
        return None
    items = list(cast("list[Any]", value))
    return items if count is None or len(items) == count else None


def invalid(path: str, what: str) -> InvalidValueError:
    """Return the error about the value at a path, such as `$.camera[0]`."""
    return InvalidValueError(f"the value at {path} {what}", path=path)


def as_array(value: object, dtype: np.dtype[Any], shape: tuple[int, ...], path: str = "$") -> Array:
    """Return the value as an array of this element type and shape.

    Casts only where no number changes: integers and booleans to anything that can hold them,
    floats to integers when they are whole, wide floats to narrow ones when they stay finite.

    Raises:
        InvalidValueError: the value is no such array.
    """
    array = as_anything(value, path)
    if array.shape != shape:
        if array.ndim > 0 or shape != (1,):
            raise invalid(path, f"has shape {list(array.shape)}; it must be {list(shape)}")
        array = array.reshape(shape)
    if array.dtype == dtype:
        return array
    if array.dtype.kind not in "biuf":
        raise invalid(
            path,
            f"has elements of type {array.dtype}, not numbers of type {dtype}: {shown(value)}",
        )
    if dtype.kind == "f":
        return _to_float(array, dtype, path)
    return _to_integer(array, dtype, path)


def as_integer(value: object, path: str = "$") -> int:
    """Return one whole number, also from a boolean, a whole float or an array of one of them.

    Raises:
        InvalidValueError: the value is no whole number.
    """
    try:
        return operator.index(cast("int", value))
    except TypeError:
        pass  # not an integer by type: it may still be one by value
    array = as_anything(value, path)
    if array.size != 1 or array.dtype.kind not in "biuf":
        raise invalid(path, f"must be one integer, not {shown(value)}")
    number = array.reshape(()).item()
    if number != number or number in (np.inf, -np.inf) or int(number) != number:
        raise invalid(path, f"must be an integer, not {shown(value)}")
    return int(number)


def as_text(value: object, path: str = "$") -> str:
    """Return a string that can be written as UTF-8.

    Raises:
        InvalidValueError: the value is no string, or holds a lone surrogate.
    """
    if not isinstance(value, str):
        raise invalid(path, f"must be a string, not {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise invalid(path, f"cannot be written as UTF-8: {shown(value)}") from error
    return str(value)


def as_anything(value: object, path: str) -> Array:
    """Return the value as an array of whatever it holds.

    Raises:
        InvalidValueError: it is none.
    """
    if type(value) is np.ndarray:
        return widened(value)
    if type(value) is Tensor:
        return value.__array__()
    try:
        return widened(np.asarray(host(value)))
    except Exception as error:  # any array-like may raise anything from its own conversion
        parts = hosted(value)
        if parts is not value:
            return as_anything(parts, path)
        raise invalid(path, f"is not an array: {error}") from error


def _to_float(array: Array, dtype: np.dtype[Any], path: str) -> Array:
    with np.errstate(over="ignore"):
        narrow = array.astype(dtype)
    lost = np.isinf(narrow) & np.isfinite(array)
    if lost.any():
        raise invalid(path, f"holds {array[lost].flat[0]}, which {dtype} cannot hold")
    return narrow


def _to_integer(array: Array, dtype: np.dtype[Any], path: str) -> Array:
    if array.size == 0 or array.dtype.kind == "b":
        return array.astype(dtype)
    if array.dtype.kind == "f":
        fraction = ~np.isfinite(array) | (np.trunc(array) != array)
        if fraction.any():
            raise invalid(path, f"holds {array[fraction].flat[0]}, which is not an integer")
    low, high = integer_range(dtype)
    for extreme in (int(array.min()), int(array.max())):
        if not low <= extreme <= high:
            raise invalid(path, f"holds {extreme}, which {dtype} cannot hold")
    return array.astype(dtype)


def integer_range(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the least and the greatest number that an integer or boolean type holds."""
    if dtype.kind == "b":
        return 0, 1
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def dtype_named(dtype: object) -> np.dtype[Any]:
    """Return the element type that a name, a Python type or a framework's type stands for.

    Raises:
        ConfigurationError: leaves cannot have it.
    """
    name = str(dtype).removeprefix("torch.") if not isinstance(dtype, type) else ""
    if name not in DTYPES:
        try:
            name = np.dtype(dtype).name  # type: ignore[call-overload]  # the question itself
        except TypeError as error:
            raise ConfigurationError(f"{dtype!r} is not an element type") from error
    if name not in DTYPES:
        raise ConfigurationError(f"{dtype!r} is not an element type; it can be {', '.join(DTYPES)}")
    return DTYPES[name]

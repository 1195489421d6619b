"""Any value as JSON that gives it back: for values whose form changes from step to step."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import numpy as np
from rlcore import BundleError

from rlmesh.backends.host import host

_INT = "__int__"
_FLOAT = "__float__"
_BYTES = "__bytes__"
_ARRAY = "__array__"
_SCALAR = "__scalar__"
_TUPLE = "__tuple__"
_DICT = "__dict__"
_TEXT = "__text__"
_LARGEST_JSON_INT = 2**53


def to_tagged(value: object) -> object:
    """Return a value as JSON holds it.

    Numbers, text, bytes, arrays of every framework, and containers of these come back from
    `from_tagged`, arrays as NumPy's. Anything else is kept as its text.
    """
    match value:
        case None | bool() | str():
            return value
        case np.generic():
            return _scalar(value)
        case int():
            return value if abs(value) <= _LARGEST_JSON_INT else {_INT: str(value)}
        case float():
            return value if math.isfinite(value) else {_FLOAT: str(value)}
        case bytes():
            return {_BYTES: _base64(value)}
        case Mapping():
            return _mapping(cast("Mapping[object, object]", value))
        case list():
            return [to_tagged(item) for item in cast("list[object]", value)]
        case tuple():
            return {_TUPLE: [to_tagged(item) for item in cast("tuple[object, ...]", value)]}
        case _:
            return _foreign(value)


def _scalar(value: Any) -> object:  # Any: a scalar of any type
    array: np.ndarray[Any, Any] = np.asarray(value)
    return {_SCALAR: [array.dtype.str, _base64(array.tobytes())]}


def _mapping(value: Mapping[object, object]) -> object:
    if all(isinstance(key, str) and not key.startswith("__") for key in value):
        return {cast("str", key): to_tagged(item) for key, item in value.items()}
    return {_DICT: [[to_tagged(key), to_tagged(item)] for key, item in value.items()]}


def _foreign(value: object) -> object:
    found = host(value)
    if hasattr(found, "__array__"):
        array: np.ndarray[Any, Any] = np.asarray(found)  # Any: of any shape and type
        if array.dtype.kind in "biufc":
            content = _base64(np.ascontiguousarray(array).tobytes())
            return {_ARRAY: [array.dtype.str, list(array.shape), content]}
    return {_TEXT: str(value)}


def from_tagged(data: object) -> Any:  # Any: whatever was written
    """Return the value that `to_tagged` wrote.

    Raises:
        BundleError: the data is not of that form.
    """
    try:
        return _read(data)
    except (LookupError, TypeError, ValueError, binascii.Error, RecursionError) as error:
        if isinstance(error, BundleError):
            raise
        raise BundleError(f"not a recorded value: {error}") from error


def _read(data: object) -> object:
    if isinstance(data, list):
        return [_read(item) for item in cast("list[object]", data)]
    if not isinstance(data, dict):
        return data
    entries = cast("dict[str, Any]", data)  # Any: JSON, checked by what is built from it
    if len(entries) == 1:
        ((tag, content),) = entries.items()
        if tag in _READERS:
            return _READERS[tag](content)
    return {key: _read(item) for key, item in entries.items()}


def _array(dtype: str, packed: str) -> np.ndarray[Any, Any]:  # Any: of any type
    kind = np.dtype(dtype)
    if kind.kind not in "biufc":
        raise BundleError(f"not a recorded value: its element type is {dtype!r}")
    return np.frombuffer(base64.b64decode(packed), kind)


def _shaped(content: Any) -> np.ndarray[Any, Any]:  # Any: JSON; an array of any type
    dtype, shape, packed = content
    return _array(dtype, packed).reshape(tuple(shape)).copy()


_READERS: Final[Mapping[str, Callable[[Any], object]]] = {  # Any: JSON
    _INT: int,
    _FLOAT: float,
    _BYTES: base64.b64decode,
    _ARRAY: _shaped,
    _SCALAR: lambda content: cast("object", _array(*content)[0]),
    _TUPLE: lambda content: tuple(_read(item) for item in content),
    _DICT: lambda content: {_read(key): _read(item) for key, item in content},
    _TEXT: str,
}


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")

"""Free-form metadata: environment metadata, info dictionaries and reset options as messages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import numpy as np
from rlcore import InvalidValueError, ProtocolException

from rlmesh.codec.plain import plain
from rlmesh.codec.tensors import loses_its_type, tensor_of
from rlmesh.spaces.coerce import shown
from rlmesh.spaces.convert import DTYPE_NUMBERS, dtype_of
from rlmesh.values import DTYPES, Array
from rlmesh.wire.spaces.v1.spaces_pb2 import MetaMap, MetaTensor, MetaValue

INT64: Final = range(-(2**63), 2**63)
DEPTH: Final = 90  # messages within one another; every reader stops at 100, and some are around us
MAP_DEPTH: Final = 3  # a map, its entry, the value
LIST_DEPTH: Final = 2  # a list, the item


class InvalidMetadataError(InvalidValueError, TypeError):
    """A value that metadata cannot carry."""

    default_code = "invalid_metadata"


def encode_meta(metadata: Mapping[str, object], *, tensors: bool = False) -> MetaMap:
    """Return the message that carries a mapping.

    Carried as they are: None, booleans, 64-bit integers, floats, strings, bytes, and lists and
    string-keyed dictionaries of them. Arrays and tuples become lists, scalars of frameworks
    Python's own, named tuples dictionaries, enum members their values.

    Args:
        metadata: the mapping.
        tensors: carry arrays of the twelve element types with their type and shape, which the
            reader must have said it understands; they arrive as NumPy arrays. Arrays of text,
            records and the like, and masked ones, are then refused.

    Raises:
        InvalidMetadataError: something else is in it; `path` says where.
    """
    given: object = metadata
    own = given
    if type(own) is not dict:
        own = plain(own)
        if type(own) is not dict:
            raise InvalidMetadataError(f"{shown(given)} is no mapping, so it is no metadata")
    message = MetaMap()
    if own:
        _put_entries(message, cast("dict[str, object]", own), "$", MAP_DEPTH, tensors)
    return message


def decode_meta(message: MetaMap) -> dict[str, Any]:  # Any: whatever the writer wrote
    """Return the mapping that a message carries, its keys sorted.

    Raises:
        ProtocolException: it holds an array whose bytes do not fill its shape.
    """
    entries = message.entries
    if not entries:
        return {}
    return {key: _take(entries[key]) for key in sorted(entries)}


def _take(message: MetaValue) -> Any:  # Any: as above
    kind = message.WhichOneof("kind")
    reader = _READERS.get(kind)
    return getattr(message, kind or "") if reader is None else reader(message)


def _take_none(message: MetaValue) -> None:
    return None


def _take_list(message: MetaValue) -> list[Any]:
    return [_take(item) for item in message.list.items]


def _take_map(message: MetaValue) -> dict[str, Any]:
    return decode_meta(message.map)


def _take_tensor(message: MetaValue) -> Array:
    tensor = message.tensor
    dtype = DTYPES[dtype_of(tensor.dtype)]
    dims = tuple(tensor.shape)
    if any(dim < 0 for dim in dims) or math.prod(dims) * dtype.itemsize != len(tensor.data):
        raise ProtocolException(
            f"metadata holds an array of shape {list(dims)} and type {dtype.name} "
            f"with {len(tensor.data)} bytes"
        )
    try:
        if dtype.kind == "b":
            return np.asarray(np.frombuffer(tensor.data, np.uint8) != 0).reshape(dims)
        return np.frombuffer(tensor.data, dtype).reshape(dims).copy()
    except ValueError as error:
        raise ProtocolException(f"metadata holds an array of shape {list(dims)}") from error


def _put(message: MetaValue, value: object, path: str, depth: int, tensors: bool) -> None:
    writer = _WRITERS.get(type(value))
    if writer is None:
        if tensors and (array := tensor_of(value)) is not None:
            _put_tensor(message.tensor, array)
            return
        if tensors and loses_its_type(value):
            raise _refused(path, f"is an array of a type that does not travel: {shown(value)}")
        given, value = value, plain(value)
        writer = _WRITERS.get(type(value))
        if writer is None:
            raise _refused(path, f"is {shown(given)}")
    writer(message, value, path, depth, tensors)


def _put_tensor(message: MetaTensor, array: Array) -> None:
    message.dtype = DTYPE_NUMBERS[array.dtype.name]
    message.shape.extend(array.shape)
    message.data = array.tobytes()


def _put_entries(
    message: MetaMap, metadata: Mapping[str, object], path: str, depth: int, tensors: bool
) -> None:
    if depth > DEPTH:
        raise _refused(path, "is nested too deeply, perhaps in itself")
    entries = message.entries
    for key, value in metadata.items():
        if type(key) is not str and not isinstance(cast("object", key), str):
            raise _refused(path, f"has the key {shown(key)}, which is no string")
        try:
            entry = entries[key]
        except ValueError as error:
            raise _refused(path, f"has the key {shown(key)}, which is not UTF-8") from error
        _put(entry, value, f"{path}.{key}", depth, tensors)


def _put_none(message: MetaValue, value: object, path: str, depth: int, tensors: bool) -> None:
    pass  # a value without an arm is None


def _put_bool(message: MetaValue, value: bool, path: str, depth: int, tensors: bool) -> None:
    message.boolean = value


def _put_int(message: MetaValue, value: int, path: str, depth: int, tensors: bool) -> None:
    if value not in INT64:
        raise _refused(path, f"is {value}, which is no 64-bit integer")
    message.integer = value


def _put_float(message: MetaValue, value: float, path: str, depth: int, tensors: bool) -> None:
    message.number = value


def _put_text(message: MetaValue, value: str, path: str, depth: int, tensors: bool) -> None:
    try:
        message.text = value
    except ValueError as error:
        raise _refused(path, f"cannot be written as UTF-8: {shown(value)}") from error


def _put_bytes(message: MetaValue, value: bytes, path: str, depth: int, tensors: bool) -> None:
    message.data = value


def _put_list(
    message: MetaValue, value: list[object], path: str, depth: int, tensors: bool
) -> None:
    if depth + LIST_DEPTH > DEPTH:
        raise _refused(path, "is nested too deeply, perhaps in itself")
    message.list.SetInParent()
    add = message.list.items.add
    for index, item in enumerate(value):
        _put(add(), item, f"{path}[{index}]", depth + LIST_DEPTH, tensors)


def _put_map(
    message: MetaValue, value: dict[str, object], path: str, depth: int, tensors: bool
) -> None:
    message.map.SetInParent()
    _put_entries(message.map, value, path, depth + MAP_DEPTH, tensors)


def _refused(path: str, what: str) -> InvalidMetadataError:
    return InvalidMetadataError(
        f"metadata cannot carry the value at {path}: it {what}",
        path=path,
        hint="`rlmesh.sanitize_metadata` makes any mapping fit.",
    )


# Any: each writer is only called with the type beside it.
_WRITERS: Final[Mapping[type, Callable[[MetaValue, Any, str, int, bool], None]]] = {
    type(None): _put_none,
    bool: _put_bool,
    int: _put_int,
    float: _put_float,
    str: _put_text,
    bytes: _put_bytes,
    list: _put_list,
    dict: _put_map,
}
_READERS: Final[Mapping[str | None, Callable[[MetaValue], object]]] = {
    None: _take_none,
    "null": _take_none,
    "list": _take_list,
    "map": _take_map,
    "tensor": _take_tensor,
}

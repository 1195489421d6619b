"""Actions of exactly the declared element types, for callers who want to be told of every cast."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import singledispatch
from typing import Any, Final, TypeAlias, cast

from rlcore import InvalidValueError

from rlmesh.spaces import Dict, Graph, MultiBinary, OneOf, Sequence, Space, Text, Tuple
from rlmesh.spaces.coerce import invalid
from rlmesh.values import DTYPES

# A number of Python has no width; it has to be of the right sort.
_SORTS: Final = {"b": bool, "i": int, "u": int, "f": float}

_Parts: TypeAlias = list[tuple[Space, Any, str]]  # Any: whatever a user passes


def require_dtypes(space: Space, value: Any, path: str = "$") -> None:  # Any: as above
    """Do nothing for an action, or a batch of them, that encoding would not have to cast.

    Arrays and scalars of NumPy, torch, jax and `rlmesh.Tensor` must have the element type that
    their space declares; numbers of Python only the sort of it: bool, int or float. What is wrong
    in other ways is left to encoding.

    Raises:
        InvalidValueError: something would be cast; `path` says where.
    """
    for child, item, at in _parts(space, value, path):
        if child is space and item is value:
            _require_leaf(space, value, path)
        else:
            require_dtypes(child, item, at)


def strictly(space: Space, encode: Callable[..., Any]) -> Callable[..., Any]:  # Any: as `encode`
    """Return an encoding that refuses what it would have to cast; its first argument is a value."""

    def encode_strictly(value: object, *more: Any) -> Any:  # Any: as `encode`
        require_dtypes(space, value)
        return encode(value, *more)

    return encode_strictly


@singledispatch
def _parts(space: Space, value: Any, path: str) -> _Parts:
    """Return the spaces, values and paths that a value is made of; itself, for a leaf."""
    return [(space, value, path)] if _is_leaf(value) else _each(space, value, path)


@_parts.register
def _(space: Text, value: Any, path: str) -> _Parts:
    return []  # it has no elements


@_parts.register
def _(space: Dict, value: Any, path: str) -> _Parts:
    if not isinstance(value, Mapping):
        return _each(space, value, path)
    entries = cast("Mapping[str, Any]", value)
    return [
        (child, entries[key], f"{path}.{key}") for key, child in space.items() if key in entries
    ]


@_parts.register
def _(space: Tuple, value: Any, path: str) -> _Parts:
    # A list of another length is a batch of lanes, or for encoding to refuse.
    if not isinstance(value, tuple | list) or len(cast("list[Any]", value)) != len(space):
        return _each(space, value, path)
    items = zip(space, cast("list[Any]", value), strict=True)
    return [(child, item, f"{path}[{index}]") for index, (child, item) in enumerate(items)]


@_parts.register
def _(space: Sequence, value: Any, path: str) -> _Parts:
    if space.stack:
        return [(space.feature_space, value, path)]
    return _each(space.feature_space, value, path)


@_parts.register
def _(space: Graph, value: Any, path: str) -> _Parts:
    match value:
        case (nodes, edges, _) if isinstance(value, tuple):
            parts: _Parts = [(space.node_space, nodes, f"{path}.nodes")]
            if space.edge_space is not None and edges is not None:
                parts.append((space.edge_space, edges, f"{path}.edges"))
            return parts
        case _:
            return _each(space, value, path)


@_parts.register
def _(space: OneOf, value: Any, path: str) -> _Parts:
    match value:
        case (int() as index, item) if 0 <= index < len(space):
            return [(space[index], item, f"{path}[1]")]
        case _:
            return _each(space, value, path)


def _each(space: Space, value: Any, path: str) -> _Parts:
    if not isinstance(value, tuple | list):
        return []
    return [(space, item, path) for item in cast("list[Any]", value)]


def _is_leaf(value: Any) -> bool:
    return getattr(value, "dtype", None) is not None or isinstance(value, bool | int | float)


def _require_leaf(space: Space, value: Any, path: str) -> None:
    given: object = getattr(value, "dtype", None)
    if given is None:
        name = type(value).__name__
        if type(value) is not _SORTS[DTYPES[space.dtype].kind]:
            raise _inexact(path, f"a Python {name}", space)
        return
    name = str(getattr(given, "name", given)).removeprefix("torch.")
    # Zeros and ones travel as bytes, but gymnasium has them as signed ones: both are exact.
    if name != space.dtype and not (isinstance(space, MultiBinary) and name == space.value_dtype):
        raise _inexact(path, f"elements of type {name}", space)


def _inexact(path: str, what: str, space: Space) -> InvalidValueError:
    error = invalid(path, f"has {what}; with strict_dtypes it must be exactly {space.dtype}")
    error.hint = "Convert it, or leave strict_dtypes out: what loses nothing is then cast."
    return error

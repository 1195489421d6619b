"""Actions that come several at a time, and how one is taken from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from rlcore import InvalidActionError

from rlmesh.models.batching import is_array, row

# Any, in this room: whatever models make.

LONGEST: Final = 1024
"""How many actions of a chunk can be asked for."""


def frames_of(chunk: object) -> list[Any]:
    """Return the actions of a chunk: arrays and lists hold them along their first axis.

    The fields of a mapping each hold their part of every action. What cannot be divided, such as a
    number or a text, is one action.

    Raises:
        InvalidActionError: the chunk is empty, or its fields hold different numbers of actions.
    """
    frames = _frames(chunk, "$")
    if not frames:
        raise InvalidActionError("the chunk holds no action")
    return frames


def first_frame(chunk: object) -> Any:
    """Return the first action of a chunk.

    Raises:
        InvalidActionError: the chunk is empty.
    """
    if isinstance(chunk, Mapping):
        fields = cast("Mapping[Any, object]", chunk)
        return {key: first_frame(value) for key, value in fields.items()}
    frames = _frames(chunk, "$")
    if not frames:
        raise InvalidActionError("the chunk holds no action")
    return frames[0]


def first_of_each(chunks: object) -> Any:
    """Return a batch of actions from a batch of chunks: the first along the second axis."""
    if isinstance(chunks, Mapping):
        fields = cast("Mapping[Any, object]", chunks)
        return {key: first_of_each(value) for key, value in fields.items()}
    if isinstance(chunks, list):
        return [first_frame(chunk) for chunk in cast("list[object]", chunks)]
    if isinstance(chunks, tuple):
        return tuple(first_of_each(part) for part in cast("tuple[object, ...]", chunks))
    if is_array(chunks) and len(cast("Any", chunks).shape) >= 2:
        if cast("Any", chunks).shape[1] == 0:
            raise InvalidActionError("the chunks hold no action")
        return cast("Any", chunks)[:, 0]
    return chunks


def _frames(chunk: object, path: str) -> list[Any]:
    if isinstance(chunk, Mapping):
        return _frames_of_fields(cast("Mapping[Any, object]", chunk), path)
    if isinstance(chunk, str | bytes) or chunk is None:
        return [chunk]
    if is_array(chunk):
        shape = tuple(cast("Any", chunk).shape)
        return [row(chunk, index) for index in range(shape[0])] if shape else [chunk]
    if isinstance(chunk, Iterable):
        return list(cast("Iterable[object]", chunk))
    return [chunk]


def _frames_of_fields(fields: Mapping[Any, object], path: str) -> list[Any]:
    columns = {key: _frames(value, f"{path}.{key}") for key, value in fields.items()}
    lengths = {str(key): len(column) for key, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidActionError(
            f"the fields of the chunk at {path} hold different numbers of actions: {lengths}",
            path=path,
        )
    count = min(lengths.values(), default=1)
    return [{key: column[at] for key, column in columns.items()} for at in range(count)]

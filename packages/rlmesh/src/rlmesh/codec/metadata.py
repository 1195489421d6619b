"""Metadata codec: strict, and lenient, which makes any mapping fit the same way every time."""

from __future__ import annotations

import dataclasses
import datetime
import re
import sys
from collections.abc import Mapping, Sequence, Set
from pathlib import PurePath
from typing import Any, Final, SupportsFloat, cast

from rlmesh.codec.elements import LIMIT, described, elements_of, is_too_large
from rlmesh.codec.meta_messages import (
    DEPTH,
    INT64,
    LIST_DEPTH,
    MAP_DEPTH,
    InvalidMetadataError,
    decode_meta,
    encode_meta,
)
from rlmesh.codec.plain import REFUSED, plain
from rlmesh.codec.tensors import loses_its_type, tensor_of
from rlmesh.spaces.coerce import shown
from rlmesh.wire.spaces.v1.spaces_pb2 import MetaMap

__all__ = [
    "InvalidMetadataError",
    "decode_meta",
    "encode_meta",
    "encode_meta_lenient",
    "made_to_fit",
    "sanitize_metadata",
]

LONGEST: Final = 4096  # characters of an object's text
ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


def sanitize_metadata(info: Mapping[Any, object]) -> dict[str, Any]:  # Any: any mapping fits
    """Return the mapping with everything in a form that metadata carries.

    What has no form of its own becomes text: integers beyond 64 bits, complex numbers, objects.
    Dates become ISO strings, sets sorted lists, dataclasses dictionaries, keys strings.

    Raises:
        InvalidMetadataError: it is no mapping, or holds itself; `path` says where.
    """
    if not isinstance(cast("object", info), Mapping):
        raise InvalidMetadataError(f"{shown(info)} is no mapping, so it is no metadata")
    return _Sanitizer(refuse_cycles=True, limit=sys.maxsize).mapping(info, "$", MAP_DEPTH)


def encode_meta_lenient(info: object, *, tensors: bool = False) -> tuple[MetaMap, list[str]]:
    """Return the message that carries an info, whatever is in it.

    An info holds a million elements at most, those of its arrays included: an array or a container
    that exceeds what is left of them becomes a short text with its shape and type. An array that
    travels as it is counts as one element for each 64 bytes.

    Args:
        info: what the environment gave.
        tensors: let arrays travel as they are, which the reader must have said it understands.

    Returns:
        The message, and the paths of what could not be carried as it was. None counts as an
        empty info; anything else that is no mapping is carried under the key `info`.
    """
    if info is None:
        return MetaMap(), []
    if not is_too_large(info, tensors):
        try:
            return encode_meta(cast("Mapping[str, object]", info), tensors=tensors), []
        except InvalidMetadataError:
            pass  # only odd infos pay for the second pass
    clean, changed = _cleaned(info, tensors)
    return encode_meta(clean, tensors=tensors), changed


def made_to_fit(
    info: object, *, tensors: bool = False
) -> tuple[Mapping[str, object], Sequence[str]]:
    """Return the mapping that `encode_meta_lenient` would carry, and the paths of what changed."""
    try:
        encode_meta(cast("Mapping[str, object]", info), tensors=tensors)
    except InvalidMetadataError:
        return _cleaned(info, tensors)
    return cast("Mapping[str, object]", info), ()


def _cleaned(info: object, tensors: bool) -> tuple[dict[str, object], list[str]]:
    sanitizer = _Sanitizer(refuse_cycles=False, limit=LIMIT, tensors=tensors)
    own = REFUSED if elements_of(info) > LIMIT else plain(info)
    if isinstance(own, dict):
        clean = sanitizer.mapping(cast("dict[object, object]", own), "$", MAP_DEPTH)
        return clean, sanitizer.changed
    return sanitizer.mapping({"info": info}, "$", MAP_DEPTH), ["$"]


class _Sanitizer:
    def __init__(self, *, refuse_cycles: bool, limit: int, tensors: bool = False) -> None:
        self.changed: list[str] = []
        self._refuse_cycles = refuse_cycles
        self._open: set[int] = set()
        self._left = limit
        self._tensors = tensors

    def mapping(
        self, value: Mapping[Any, object], path: str, depth: int
    ) -> dict[str, Any]:  # Any: of the vocabulary
        clean: dict[str, Any] = {}
        for key, child in list(value.items()):
            name = self._text(key if isinstance(key, str) else _text_of(key), path)
            if not isinstance(key, str):
                while name in value or name in clean:  # as for {"1": …, 1: …}
                    name = f"{name} ({type(key).__name__})"
                self.changed.append(f"{path}.{name}")
            clean[name] = self._clean(child, f"{path}.{name}", depth)
        return clean

    def _clean(self, value: object, path: str, depth: int) -> object:
        elements = elements_of(value, self._tensors)
        if elements > self._left:
            return self._changed(described(value), path)
        self._left -= elements
        if self._tensors and (array := tensor_of(value)) is not None:
            return array
        if self._tensors and loses_its_type(value):
            self.changed.append(path)
        own = plain(value)
        if own is REFUSED:
            self.changed.append(path)
            own = _nearest(value)
        match own:
            case None | bool() | float() | bytes():
                return own
            case int():
                return own if own in INT64 else self._changed(str(own), path)
            case str():
                return self._text(own, path)
            case _:
                return self._container(value, own, path, depth)

    def _container(self, value: object, own: object, path: str, depth: int) -> object:
        if id(value) in self._open:
            if self._refuse_cycles:
                raise InvalidMetadataError(f"the value at {path} holds itself", path=path)
            return self._changed("<itself>", path)
        if depth + MAP_DEPTH > DEPTH:
            return self._changed(shown(value), path)
        self._open.add(id(value))
        try:
            if isinstance(own, dict):
                entries = cast("dict[object, object]", own)
                return self.mapping(entries, path, depth + MAP_DEPTH)
            items = enumerate(cast("list[object]", own))
            return [self._clean(item, f"{path}[{i}]", depth + LIST_DEPTH) for i, item in items]
        finally:
            self._open.discard(id(value))

    def _text(self, text: str, path: str) -> str:
        try:
            text.encode()
        except UnicodeEncodeError:
            return self._changed(text.encode(errors="backslashreplace").decode(), path)
        return text

    def _changed(self, text: str, path: str) -> str:
        if path not in self.changed[-1:]:
            self.changed.append(path)
        return text


def _nearest(value: object) -> object:
    """Return the builtin value nearest to one that is none."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Set):
        return sorted(cast("Set[object]", value), key=_text_of)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, SupportsFloat) and not isinstance(value, PurePath):
        try:
            return float(value)
        except Exception:  # a foreign __float__ may raise anything; there is still its text
            return _text_of(value)
    return _text_of(value)


def _text_of(value: object) -> str:
    """Return an object's text without addresses, so that it is the same in every process."""
    try:
        return ADDRESS.sub("", str(value)[:LONGEST])
    except Exception:  # a foreign __str__ may raise anything; there is still its class
        return f"<{type(value).__module__}.{type(value).__qualname__}>"

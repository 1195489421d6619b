"""Sequences, graphs and alternatives as bodies: counts, then leaves, each after its length."""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np
from rlcore import InvalidValueError

from rlmesh.codec.batch import BatchCodec
from rlmesh.codec.bodies import Body, compile_body
from rlmesh.codec.codec import Codec
from rlmesh.codec.slabs import read_leaves, write_leaves
from rlmesh.spaces import Graph, OneOf, Sequence, Space
from rlmesh.spaces.coerce import invalid, items_of, shown
from rlmesh.spaces.graph import LINK, checked_links, graph_type, parts_of
from rlmesh.spaces.stacking import count_of
from rlmesh.values import Backend, Buffer

USUAL_ITEMS: Final = 4
_COUNT: Final = struct.Struct("<Q")
_GRAPH: Final = struct.Struct("<QQQ")  # nodes, edges, whether there are edges at all

# Any, in this room: what users pass, and what backends make.


class _Items:
    """Any number of values of one space, within a body."""

    def __init__(self, space: Space, backend: Backend, strict_nan: bool, path: str) -> None:
        self.codec = BatchCodec(space, backend, strict_nan, path)
        self.usual = sum(self.codec.fixed_sizes or ())
        self._path = path
        # Items without bytes get one each, or a small body could announce more than fit in memory.
        self._weightless = self.codec.fixed_sizes is not None and self.usual == 0

    def write(self, value: Any, count: int) -> list[Buffer]:
        """Return the parts of a body that hold so many items."""
        try:
            parts = write_leaves(self.codec.encode(value, count))
        except InvalidValueError as error:
            raise _of_item(error) from error
        return [*parts, bytes(count)] if self._weightless else parts

    def read(self, body: Buffer, at: int, count: int, owned: bool) -> tuple[Any, int]:
        """Return so many items, from an offset of the body on, and the offset after them."""
        leaves, end = read_leaves(body, at, self.codec.leaf_count, self._path)
        if self._weightless:
            end += count
            if end > len(body):
                raise invalid(self._path, f"announces {count} items in {len(body)} bytes")
        read = self.codec.decode_owned if owned else self.codec.decode
        try:
            return read(leaves, count), end
        except InvalidValueError as error:
            raise _of_item(error) from error


@compile_body.register
def _(space: Sequence, path: str, backend: Backend, strict_nan: bool) -> Body:
    items = _Items(space.feature_space, backend, strict_nan, f"{path}[*]")

    def write(value: Any) -> Buffer:
        if space.stack:
            count = count_of(space.feature_space, value, path)
        else:
            value, count = _listed(value, path)
        return b"".join((_COUNT.pack(count), *items.write(value, count)))

    def reader(owned: bool) -> Any:
        def read(body: Buffer) -> Any:
            if len(body) < _COUNT.size:
                raise invalid(path, f"ends after {len(body)} bytes, within its count")
            count: int = _COUNT.unpack_from(body)[0]
            value, end = items.read(body, _COUNT.size, count, owned)
            _check_end(body, end, path)
            return value if space.stack else tuple(items.codec.split(value, count))

        return read

    return Body(_COUNT.size + USUAL_ITEMS * items.usual, write, reader(False), reader(True))


@compile_body.register
def _(space: Graph, path: str, backend: Backend, strict_nan: bool) -> Body:
    nodes = _Items(space.node_space, backend, strict_nan, f"{path}.nodes[*]")
    edges = None
    if space.edge_space is not None:
        edges = _Items(space.edge_space, backend, strict_nan, f"{path}.edges[*]")
    made = graph_type(backend)

    def write(value: Any) -> Buffer:
        features, joins, links = parts_of(value, path)
        count = count_of(space.node_space, features, f"{path}.nodes")
        parts = nodes.write(features, count)
        if joins is None and links is None:
            return b"".join((_GRAPH.pack(count, 0, 0), *parts))
        if edges is None or space.edge_space is None or joins is None or links is None:
            raise invalid(path, "has edges without links, links without edges, or may have none")
        joined = count_of(space.edge_space, joins, f"{path}.edges")
        parts += edges.write(joins, joined)
        content = checked_links(links, count, joined, path).tobytes()
        return b"".join((_GRAPH.pack(count, joined, 1), *parts, content))

    def reader(owned: bool) -> Any:
        def read(body: Buffer) -> Any:
            if len(body) < _GRAPH.size:
                raise invalid(path, f"ends after {len(body)} bytes, within its counts")
            count, joined, any_edges = _GRAPH.unpack_from(body)
            if any_edges > 1 or joined > any_edges * len(body) or (any_edges and edges is None):
                raise invalid(path, f"announces {joined} edges, which it cannot have")
            features, at = nodes.read(body, _GRAPH.size, count, owned)
            if edges is None or not any_edges:
                _check_end(body, at, path)
                return made(features, None, None)
            joins, at = edges.read(body, at, joined, owned)
            _check_end(body, at + joined * 2 * LINK.itemsize, path)
            links = checked_links(
                np.frombuffer(bytearray(body[at:]), LINK).reshape(joined, 2), count, joined, path
            )
            return made(features, joins, backend.owned(links))

        return read

    return Body(_GRAPH.size + USUAL_ITEMS * nodes.usual, write, reader(False), reader(True))


@compile_body.register
def _(space: OneOf, path: str, backend: Backend, strict_nan: bool) -> Body:
    codecs = [Codec(child, backend, strict_nan, f"{path}[1]") for child in space]

    def write(value: Any) -> Buffer:
        index, child = space.parts(value, path)
        return b"".join((_COUNT.pack(index), *write_leaves(codecs[index].encode(child))))

    def reader(owned: bool) -> Any:
        def read(body: Buffer) -> Any:
            if len(body) < _COUNT.size:
                raise invalid(path, f"ends after {len(body)} bytes, within its number")
            index: int = _COUNT.unpack_from(body)[0]
            if index >= len(codecs):
                raise invalid(f"{path}[0]", f"is {index}; it must be 0 to {len(codecs) - 1}")
            codec = codecs[index]
            leaves, end = read_leaves(body, _COUNT.size, codec.leaf_count, path)
            _check_end(body, end, path)
            return index, codec.decode_owned(leaves) if owned else codec.decode(leaves)

        return read

    usual = max(codec.size_hint for codec in codecs)
    return Body(_COUNT.size + usual, write, reader(False), reader(True))


def _listed(value: Any, path: str) -> tuple[list[Any], int]:
    items = list(value) if type(value) is np.ndarray and value.ndim else items_of(value)
    if items is None:
        raise invalid(path, f"must be a tuple, not {shown(value)}")
    return items, len(items)


def _of_item(error: InvalidValueError) -> InvalidValueError:
    """Return the error about what is an item here, and a lane to the codec of the items."""
    message = error.message
    if message.startswith("in lane "):
        message = f"in item {message.removeprefix('in lane ')}"
    return InvalidValueError(message, path=error.path)


def _check_end(body: Buffer, end: int, path: str) -> None:
    if end != len(body):
        raise invalid(path, f"has {len(body)} bytes where its parts take {end}")

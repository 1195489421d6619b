"""Sequences, graphs and alternatives as bodies: counts, then leaves, each after its length."""

from __future__ import annotations

import struct
from collections.abc import Sequence as Items
from typing import Any, Final

import numpy as np
from rlcore import InvalidValueError

from rlmesh.codec.batch import BatchCodec
from rlmesh.codec.bodies import Body, compile_body
from rlmesh.codec.codec import Codec
from rlmesh.codec.slabs import read_leaves, write_leaves
from rlmesh.spaces import Graph, OneOf, Sequence
from rlmesh.spaces.coerce import invalid, items_of, shown
from rlmesh.spaces.graph import LINK, checked_links, graph_type, parts_of
from rlmesh.spaces.stacking import count_of
from rlmesh.values import Backend, Buffer

MOST_EMPTY: Final = 65_536  # items without bytes: nothing else bounds how many a peer announces
USUAL_ITEMS: Final = 4
_COUNT: Final = struct.Struct("<Q")
_GRAPH: Final = struct.Struct("<QQQ")  # nodes, edges, whether there are edges at all

# Any, in this room: what users pass, and what backends make.


@compile_body.register
def _(space: Sequence, path: str, backend: Backend, strict_nan: bool) -> Body:
    items = BatchCodec(space.feature_space, backend, strict_nan, f"{path}[*]")

    def write(value: Any) -> Buffer:
        if space.stack:
            count = count_of(space.feature_space, value, path)
        else:
            value, count = _listed(value, path)
        parts = write_leaves(_encoded(items, value, count))
        return b"".join((_COUNT.pack(_bounded(items, count, path)), *parts))

    def reader(owned: bool) -> Any:
        def read(body: Buffer) -> Any:
            if len(body) < _COUNT.size:
                raise invalid(path, f"ends after {len(body)} bytes, within its count")
            count = _bounded(items, _COUNT.unpack_from(body)[0], path)
            leaves, end = read_leaves(body, _COUNT.size, items.leaf_count, path)
            _check_end(body, end, path)
            value = _decoded(items, leaves, count, owned)
            return value if space.stack else tuple(items.split(value, count))

        return read

    return Body(_COUNT.size + USUAL_ITEMS * _usual(items), write, reader(False), reader(True))


@compile_body.register
def _(space: Graph, path: str, backend: Backend, strict_nan: bool) -> Body:
    nodes = BatchCodec(space.node_space, backend, strict_nan, f"{path}.nodes[*]")
    edges = None
    if space.edge_space is not None:
        edges = BatchCodec(space.edge_space, backend, strict_nan, f"{path}.edges[*]")
    made = graph_type(backend)

    def write(value: Any) -> Buffer:
        features, joins, links = parts_of(value, path)
        count = count_of(space.node_space, features, f"{path}.nodes")
        parts = write_leaves(_encoded(nodes, features, count))
        _bounded(nodes, count, path)
        if joins is None and links is None:
            return b"".join((_GRAPH.pack(count, 0, 0), *parts))
        if edges is None or space.edge_space is None or joins is None or links is None:
            raise invalid(path, "has edges without links, links without edges, or may have none")
        joined = count_of(space.edge_space, joins, f"{path}.edges")
        parts += write_leaves(_encoded(edges, joins, joined))
        content = checked_links(links, count, joined, path).tobytes()
        return b"".join((_GRAPH.pack(count, _bounded(edges, joined, path), 1), *parts, content))

    def reader(owned: bool) -> Any:
        def read(body: Buffer) -> Any:
            if len(body) < _GRAPH.size:
                raise invalid(path, f"ends after {len(body)} bytes, within its counts")
            count, joined, any_edges = _GRAPH.unpack_from(body)
            if any_edges > 1 or joined > any_edges * len(body) or (any_edges and edges is None):
                raise invalid(path, f"announces {joined} edges, which it cannot have")
            leaves, at = read_leaves(body, _GRAPH.size, nodes.leaf_count, path)
            features = _decoded(nodes, leaves, _bounded(nodes, count, path), owned)
            if edges is None or not any_edges:
                _check_end(body, at, path)
                return made(features, None, None)
            leaves, at = read_leaves(body, at, edges.leaf_count, path)
            _check_end(body, at + joined * 2 * LINK.itemsize, path)
            links = checked_links(
                np.frombuffer(bytearray(body[at:]), LINK).reshape(joined, 2), count, joined, path
            )
            return made(features, _decoded(edges, leaves, joined, owned), backend.owned(links))

        return read

    return Body(_GRAPH.size + USUAL_ITEMS * _usual(nodes), write, reader(False), reader(True))


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


def _encoded(codec: BatchCodec, value: Any, count: int) -> list[Buffer]:
    try:
        return codec.encode(value, count)
    except InvalidValueError as error:
        raise _of_item(error) from error


def _decoded(codec: BatchCodec, leaves: Items[Buffer], count: int, owned: bool) -> Any:
    try:
        return (codec.decode_owned if owned else codec.decode)(leaves, count)
    except InvalidValueError as error:
        raise _of_item(error) from error


def _of_item(error: InvalidValueError) -> InvalidValueError:
    """Return the error about what is an item here, and a lane to the codec of the items."""
    message = error.message
    if message.startswith("in lane "):
        message = f"in item {message.removeprefix('in lane ')}"
    return InvalidValueError(message, path=error.path)


def _bounded(codec: BatchCodec, count: int, path: str) -> int:
    """Return the count, if items without bytes are few enough."""
    if count > MOST_EMPTY and codec.fixed_sizes is not None and sum(codec.fixed_sizes) == 0:
        raise invalid(path, f"has {count} items without content; it can have {MOST_EMPTY}")
    return count


def _usual(codec: BatchCodec) -> int:
    return sum(codec.fixed_sizes or ())


def _check_end(body: Buffer, end: int, path: str) -> None:
    if end != len(body):
        raise invalid(path, f"has {len(body)} bytes where its parts take {end}")

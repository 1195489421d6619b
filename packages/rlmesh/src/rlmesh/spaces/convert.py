"""Spaces to their messages and back: one registration for each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import singledispatch
from typing import Any, Final

import numpy as np
from rlcore import Error, ProtocolException

from rlmesh.spaces.box import Box
from rlmesh.spaces.containers import Dict, Tuple
from rlmesh.spaces.discrete import Discrete
from rlmesh.spaces.graph import Graph
from rlmesh.spaces.multi import MultiBinary, MultiDiscrete
from rlmesh.spaces.one_of import OneOf
from rlmesh.spaces.sequence import Sequence
from rlmesh.spaces.space import Space, UnsupportedSpaceError
from rlmesh.spaces.text import ALPHANUMERIC, Text
from rlmesh.values import DTYPES, Array
from rlmesh.wire.spaces.v1 import spaces_pb2 as pb

DTYPE_NUMBERS: Final[Mapping[str, pb.DataType.ValueType]] = {
    name: pb.DataType.Value(f"DATA_TYPE_{name.upper()}") for name in DTYPES
}
DTYPE_NAMES: Final[Mapping[int, str]] = {number: name for name, number in DTYPE_NUMBERS.items()}


@singledispatch
def space_to_proto(space: Space) -> pb.SpaceSpec:
    """Return the message that describes a space.

    Raises:
        UnsupportedSpaceError: the protocol has no words for this kind.
    """
    raise UnsupportedSpaceError(f"{space!r} is of a kind that cannot be served")


@space_to_proto.register
def _(space: Box) -> pb.SpaceSpec:
    message = pb.SpaceSpec(shape=space.shape, dtype=DTYPE_NUMBERS[space.dtype])
    uniform = space.uniform_bounds
    if space.bounds_kind == "unbounded" or 0 in space.shape:
        message.box.unbounded = True
    elif uniform is not None:
        message.box.uniform.low, message.box.uniform.high = (b.tobytes() for b in uniform)
    else:
        message.box.elementwise.low = space.low.tobytes()
        message.box.elementwise.high = space.high.tobytes()
    return message


@space_to_proto.register
def _(space: Discrete) -> pb.SpaceSpec:
    discrete = pb.DiscreteSpec(
        n=space.n, start=space.start, value_dtype=_hint(space.value_dtype, space.wire_dtype)
    )
    return pb.SpaceSpec(dtype=DTYPE_NUMBERS[space.wire_dtype], discrete=discrete)


@space_to_proto.register
def _(space: MultiBinary) -> pb.SpaceSpec:
    multi_binary = pb.MultiBinarySpec(value_dtype=_hint(space.value_dtype, space.dtype))
    return pb.SpaceSpec(
        shape=space.shape, dtype=DTYPE_NUMBERS[space.dtype], multi_binary=multi_binary
    )


@space_to_proto.register
def _(space: MultiDiscrete) -> pb.SpaceSpec:
    start = space.start.reshape(-1).tolist() if space.start.any() else []
    multi_discrete = pb.MultiDiscreteSpec(
        nvec=space.nvec.reshape(-1).tolist(),
        start=start,
        value_dtype=_hint(space.value_dtype, space.wire_dtype),
    )
    return pb.SpaceSpec(
        shape=space.shape, dtype=DTYPE_NUMBERS[space.wire_dtype], multi_discrete=multi_discrete
    )


@space_to_proto.register
def _(space: Text) -> pb.SpaceSpec:
    # Published peers know gymnasium's default as any character.
    usual = space.charset == ALPHANUMERIC
    text = pb.TextSpec(
        min_length=space.min_length,
        max_length=space.max_length,
        charset="" if usual else space.charset,
        declared_charset=space.charset if usual else "",
    )
    return pb.SpaceSpec(dtype=DTYPE_NUMBERS[space.dtype], text=text)


@space_to_proto.register
def _(space: Dict) -> pb.SpaceSpec:
    spaces = [space_to_proto(child) for child in space.values()]
    return pb.SpaceSpec(dict=pb.DictSpec(keys=space.keys(), spaces=spaces))


@space_to_proto.register
def _(space: Tuple) -> pb.SpaceSpec:
    return pb.SpaceSpec(tuple=pb.TupleSpec(spaces=[space_to_proto(child) for child in space]))


@space_to_proto.register
def _(space: Sequence) -> pb.SpaceSpec:
    item = space_to_proto(space.feature_space)
    return pb.SpaceSpec(sequence=pb.SequenceSpec(space=item, stack=space.stack))


@space_to_proto.register
def _(space: Graph) -> pb.SpaceSpec:
    edges = None if space.edge_space is None else space_to_proto(space.edge_space)
    return pb.SpaceSpec(graph=pb.GraphSpec(nodes=space_to_proto(space.node_space), edges=edges))


@space_to_proto.register
def _(space: OneOf) -> pb.SpaceSpec:
    return pb.SpaceSpec(one_of=pb.OneOfSpec(spaces=[space_to_proto(child) for child in space]))


def space_from_proto(message: pb.SpaceSpec, path: str = "$") -> Space:
    """Return the space that a message describes.

    Raises:
        ProtocolException: it describes none; the text says which part, by its path.
    """
    read = _READERS.get(message.WhichOneof("spec"))
    if read is None:
        raise ProtocolException(f"the space at {path} has no kind that this build knows")
    try:
        return read(message, path)
    except ProtocolException:
        raise
    except (Error, ValueError, OverflowError) as error:
        raise ProtocolException(f"the peer's space at {path} cannot be: {error}") from error


def _read_box(message: pb.SpaceSpec, path: str) -> Space:
    name = _dtype(message)
    dtype = DTYPES[name]
    kind = message.box.WhichOneof("bounds")
    if kind is None:
        raise ProtocolException(f"the Box at {path} has no bounds")
    if kind == "unbounded":
        return Box(-np.inf, np.inf, message.shape, name)
    if kind == "uniform":
        shape: tuple[int, ...] = ()
        low, high = message.box.uniform.low, message.box.uniform.high
    else:
        shape = tuple(message.shape)
        low, high = message.box.elementwise.low, message.box.elementwise.high
    return Box(_bound(low, dtype, shape), _bound(high, dtype, shape), message.shape, name)


def _bound(content: bytes, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    return np.frombuffer(content, dtype).reshape(shape)


def _read_discrete(message: pb.SpaceSpec, path: str) -> Space:
    spec, wire = message.discrete, _dtype(message)
    return Discrete(spec.n, spec.start, _hinted(spec.value_dtype, wire), wire)


def _read_multi_binary(message: pb.SpaceSpec, path: str) -> Space:
    if DTYPES[_dtype(message)].itemsize != 1:
        raise ProtocolException(f"the MultiBinary space at {path} has elements wider than a byte")
    return MultiBinary(message.shape, _hinted(message.multi_binary.value_dtype, "uint8"))


def _read_multi_discrete(message: pb.SpaceSpec, path: str) -> Space:
    shape = tuple(message.shape)
    spec = message.multi_discrete
    nvec = np.array(spec.nvec, np.int64).reshape(shape)
    start = np.array(spec.start, np.int64).reshape(shape) if spec.start else None
    wire = _dtype(message)
    return MultiDiscrete(nvec, _hinted(spec.value_dtype, wire), start, wire)


def _read_text(message: pb.SpaceSpec, path: str) -> Space:
    text = message.text
    return Text(text.max_length, text.min_length, text.charset or text.declared_charset)


def _read_dict(message: pb.SpaceSpec, path: str) -> Space:
    keys, spaces = list(message.dict.keys), message.dict.spaces
    if len(keys) != len(spaces) or len(set(keys)) != len(keys):
        raise ProtocolException(f"the Dict space at {path} does not have one space for each key")
    children = [
        (key, space_from_proto(child, f"{path}.{key}"))
        for key, child in zip(keys, spaces, strict=True)
    ]
    return Dict(children, keep_order=True)


def _read_tuple(message: pb.SpaceSpec, path: str) -> Space:
    children = enumerate(message.tuple.spaces)
    return Tuple([space_from_proto(child, f"{path}[{index}]") for index, child in children])


def _read_sequence(message: pb.SpaceSpec, path: str) -> Space:
    item = space_from_proto(message.sequence.space, f"{path}[*]")
    return Sequence(item, message.sequence.stack)


def _read_graph(message: pb.SpaceSpec, path: str) -> Space:
    spec = message.graph
    edges = space_from_proto(spec.edges, f"{path}.edges") if spec.HasField("edges") else None
    return Graph(space_from_proto(spec.nodes, f"{path}.nodes"), edges)


def _read_one_of(message: pb.SpaceSpec, path: str) -> Space:
    children = enumerate(message.one_of.spaces)
    return OneOf([space_from_proto(child, f"{path}[{index}]") for index, child in children])


def _dtype(message: pb.SpaceSpec) -> str:
    return dtype_of(message.dtype)


def dtype_of(number: int) -> str:
    """Return the name of the element type of a number.

    Raises:
        ProtocolException: it is the number of none.
    """
    name = DTYPE_NAMES.get(number)
    if name is None:
        raise ProtocolException(f"{number} is not the number of an element type")
    return name


def _hint(value_dtype: str, wire_dtype: str) -> pb.DataType.ValueType:
    return pb.DATA_TYPE_UNSPECIFIED if value_dtype == wire_dtype else DTYPE_NUMBERS[value_dtype]


def _hinted(number: int, wire_dtype: str) -> str:
    return wire_dtype if number == pb.DATA_TYPE_UNSPECIFIED else dtype_of(number)


_READERS: Final[Mapping[str | None, Callable[[pb.SpaceSpec, str], Space]]] = {
    "box": _read_box,
    "discrete": _read_discrete,
    "multi_binary": _read_multi_binary,
    "multi_discrete": _read_multi_discrete,
    "text": _read_text,
    "dict": _read_dict,
    "tuple": _read_tuple,
    "sequence": _read_sequence,
    "graph": _read_graph,
    "one_of": _read_one_of,
}

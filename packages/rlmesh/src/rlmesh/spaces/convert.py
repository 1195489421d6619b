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
from rlmesh.spaces.multi import MultiBinary, MultiDiscrete
from rlmesh.spaces.space import Space, UnsupportedSpaceError
from rlmesh.spaces.text import Text
from rlmesh.values import DTYPES, Array
from rlmesh.wire.spaces.v1 import spaces_pb2 as pb

_NUMBERS: Final[Mapping[str, pb.DataType.ValueType]] = {
    name: pb.DataType.Value(f"DATA_TYPE_{name.upper()}") for name in DTYPES
}
_NAMES: Final[Mapping[int, str]] = {number: name for name, number in _NUMBERS.items()}


@singledispatch
def space_to_proto(space: Space) -> pb.SpaceSpec:
    """Return the message that describes a space.

    Raises:
        UnsupportedSpaceError: the protocol has no words for this kind.
    """
    raise UnsupportedSpaceError(f"{space!r} is of a kind that cannot be served")


@space_to_proto.register
def _(space: Box) -> pb.SpaceSpec:
    message = pb.SpaceSpec(shape=space.shape, dtype=_NUMBERS[space.dtype])
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
    discrete = pb.DiscreteSpec(n=space.n, start=space.start)
    return pb.SpaceSpec(dtype=_NUMBERS[space.dtype], discrete=discrete)


@space_to_proto.register
def _(space: MultiBinary) -> pb.SpaceSpec:
    return pb.SpaceSpec(
        shape=space.shape, dtype=_NUMBERS[space.dtype], multi_binary=pb.MultiBinarySpec()
    )


@space_to_proto.register
def _(space: MultiDiscrete) -> pb.SpaceSpec:
    start = space.start.reshape(-1).tolist() if space.start.any() else []
    multi_discrete = pb.MultiDiscreteSpec(nvec=space.nvec.reshape(-1).tolist(), start=start)
    return pb.SpaceSpec(
        shape=space.shape, dtype=_NUMBERS[space.dtype], multi_discrete=multi_discrete
    )


@space_to_proto.register
def _(space: Text) -> pb.SpaceSpec:
    text = pb.TextSpec(
        min_length=space.min_length, max_length=space.max_length, charset=space.charset
    )
    return pb.SpaceSpec(dtype=_NUMBERS[space.dtype], text=text)


@space_to_proto.register
def _(space: Dict) -> pb.SpaceSpec:
    spaces = [space_to_proto(child) for child in space.values()]
    return pb.SpaceSpec(dict=pb.DictSpec(keys=space.keys(), spaces=spaces))


@space_to_proto.register
def _(space: Tuple) -> pb.SpaceSpec:
    return pb.SpaceSpec(tuple=pb.TupleSpec(spaces=[space_to_proto(child) for child in space]))


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
    return Discrete(message.discrete.n, message.discrete.start, _dtype(message))


def _read_multi_binary(message: pb.SpaceSpec, path: str) -> Space:
    if DTYPES[_dtype(message)].itemsize != 1:
        raise ProtocolException(f"the MultiBinary space at {path} has elements wider than a byte")
    return MultiBinary(message.shape)


def _read_multi_discrete(message: pb.SpaceSpec, path: str) -> Space:
    shape = tuple(message.shape)
    spec = message.multi_discrete
    nvec = np.array(spec.nvec, np.int64).reshape(shape)
    start = np.array(spec.start, np.int64).reshape(shape) if spec.start else None
    return MultiDiscrete(nvec, _dtype(message), start)


def _read_text(message: pb.SpaceSpec, path: str) -> Space:
    return Text(message.text.max_length, message.text.min_length, message.text.charset)


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


def _dtype(message: pb.SpaceSpec) -> str:
    name = _NAMES.get(message.dtype)
    if name is None:
        raise ProtocolException(f"{message.dtype} is not the number of an element type")
    return name


_READERS: Final[Mapping[str | None, Callable[[pb.SpaceSpec, str], Space]]] = {
    "box": _read_box,
    "discrete": _read_discrete,
    "multi_binary": _read_multi_binary,
    "multi_discrete": _read_multi_discrete,
    "text": _read_text,
    "dict": _read_dict,
    "tuple": _read_tuple,
}

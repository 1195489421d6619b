"""Refuses a contract that promises more than could ever arrive, before any of it is built."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from google.protobuf.message import Message
from rlcore import ProtocolException

from rlmesh.spaces.shapes import MOST_DIMENSIONS
from rlmesh.transport.limits import MESSAGE_BYTES
from rlmesh.values import DTYPES
from rlmesh.wire.core.v1 import core_pb2
from rlmesh.wire.spaces.v1 import spaces_pb2

# A space takes some microseconds and kilobytes to build; with these it stays below a second or two.
MOST_SPACES = 10_000
MOST_LANES = 2**20

_SIZES = {
    number: DTYPES[name.removeprefix("DATA_TYPE_").lower()].itemsize
    for name, number in spaces_pb2.DataType.items()
    if name.removeprefix("DATA_TYPE_").lower() in DTYPES
}


def check_affordable(contract: core_pb2.EnvContract) -> None:
    """Refuse a contract whose values, for all its environments, cannot fit into a message.

    Raises:
        ProtocolException: a value would be larger, or there are more spaces or environments than
            any server of good will has.
    """
    lanes = contract.num_envs
    if lanes > MOST_LANES:
        raise _refused(contract, f"has {lanes} environments, more than {MOST_LANES}")
    for name in ("observation_space", "action_space"):
        size = _size(contract, getattr(contract.spec, name), name) * max(lanes, 1)
        if size > MESSAGE_BYTES:
            what = f"has an {name} whose values take {size} bytes, more than any message"
            raise _refused(contract, f"{what} ({MESSAGE_BYTES})")


def _size(contract: core_pb2.EnvContract, space: Message, name: str) -> int:
    spaces = size = 0
    waiting: list[Message] = [space]
    while waiting:
        message = waiting.pop()
        if isinstance(message, spaces_pb2.SpaceSpec):
            spaces += 1
            if spaces > MOST_SPACES:
                raise _refused(contract, f"has an {name} of more than {MOST_SPACES} spaces")
            if len(message.shape) > MOST_DIMENSIONS:
                what = f"has an {name} with an array of {len(message.shape)} dimensions"
                raise _refused(contract, f"{what}, more than {MOST_DIMENSIONS}")
            if message.shape:
                dims = [max(dim, 0) for dim in message.shape]
                size += math.prod(dims) * _SIZES.get(message.dtype, 1)
        for field, value in message.ListFields():
            if field.message_type is not None:
                waiting.extend(_each(value))
    return size


def _each(value: Any) -> Iterable[Message]:  # Any: a message, or a container of them
    return (value,) if isinstance(value, Message) else value


def _refused(contract: core_pb2.EnvContract, what: str) -> ProtocolException:
    return ProtocolException(
        f"the contract of {contract.spec.id[:100]!r} {what}",
        code="contract_too_large",
        hint="No honest server sends such a one: is it the server that you mean?",
    )

"""Contracts to their messages and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rlcore import ProtocolException

from rlmesh.codec.metadata import decode_meta, encode_meta, encode_meta_lenient
from rlmesh.spaces.convert import space_from_proto, space_to_proto
from rlmesh.specs import AutoresetMode, EnvContract
from rlmesh.wire.core.v1 import core_pb2 as pb
from rlmesh.wire.spaces.v1.spaces_pb2 import MetaMap

_NUMBERS: Final = {
    AutoresetMode.NEXT_STEP: pb.AUTORESET_MODE_NEXT_STEP,
    AutoresetMode.SAME_STEP: pb.AUTORESET_MODE_SAME_STEP,
    AutoresetMode.DISABLED: pb.AUTORESET_MODE_DISABLED,
}
_MODES: Final = {number: mode for mode, number in _NUMBERS.items()}


def contract_to_proto(contract: EnvContract) -> pb.EnvContract:
    """Return the message that carries a contract."""
    spec = pb.EnvSpec(
        id=contract.id,
        action_space=space_to_proto(contract.action_space),
        observation_space=space_to_proto(contract.observation_space),
        metadata=None if contract.metadata is None else encode_meta(contract.metadata),
    )
    return pb.EnvContract(
        spec=spec,
        num_envs=contract.num_envs,
        render_mode=contract.render_mode or "",
        autoreset_mode=_NUMBERS[contract.autoreset_mode],
    )


def contract_from_proto(message: pb.EnvContract) -> EnvContract:
    """Return the contract that a message carries.

    Raises:
        ProtocolException: it carries none: a space is missing or cannot be, or the autoreset mode
            is none that this build knows.
    """
    spec = message.spec
    for name in ("observation_space", "action_space"):
        if not spec.HasField(name):
            raise ProtocolException(f"the contract of {spec.id!r} has no {name}")
    mode = AutoresetMode.DISABLED
    if message.autoreset_mode != pb.AUTORESET_MODE_UNSPECIFIED:
        known = _MODES.get(message.autoreset_mode)
        if known is None:
            raise ProtocolException(
                f"the contract of {spec.id!r} has the autoreset mode {message.autoreset_mode}, "
                "which this build does not know"
            )
        mode = known
    return EnvContract(
        id=spec.id,
        observation_space=space_from_proto(spec.observation_space),
        action_space=space_from_proto(spec.action_space),
        metadata=decode_meta(spec.metadata) if spec.HasField("metadata") else None,
        num_envs=message.num_envs,
        render_mode=message.render_mode,
        autoreset_mode=mode,
    )


def contract_to_bytes(contract: EnvContract) -> bytes:
    """Return a contract as one message."""
    return contract_to_proto(contract).SerializeToString()


def contract_from_bytes(data: bytes) -> EnvContract:
    """Return the contract that `contract_to_bytes` wrote.

    Raises:
        ProtocolException: it is none.
    """
    return contract_from_proto(pb.EnvContract.FromString(data))


def info_to_bytes(info: Mapping[str, object], *, tensors: bool) -> tuple[bytes, list[str]]:
    """Return an info as one message, and the keys whose values had to be simplified.

    Args:
        info: the info.
        tensors: whether arrays keep their type and shape.
    """
    message, odd = encode_meta_lenient(info, tensors=tensors)
    return message.SerializeToString(), odd


def info_from_bytes(data: bytes) -> dict[str, object]:
    """Return the info that `info_to_bytes` wrote."""
    return decode_meta(MetaMap.FromString(data)) if data else {}

"""The handshake and the shutdown request as bytes."""

from __future__ import annotations

from google.protobuf.message import DecodeError
from rlcore import ProtocolException

from rlmesh.convert import contract_from_proto, contract_to_proto
from rlmesh.protocol.handshake import Hello, Peer, Welcome
from rlmesh.specs import EnvContract
from rlmesh.transport.affordable import check_affordable
from rlmesh.wire.core.v1 import core_pb2
from rlmesh.wire.env.v1 import env_pb2


def write_hello(hello: Hello) -> bytes:
    """Return a client's handshake as bytes."""
    base = core_pb2.HandshakeRequest(
        protocol_generation=hello.generation,
        peer_info=_peer_to_proto(hello.peer),
        capabilities=hello.capabilities,
        supported_workflow_editions=hello.editions,
        preferred_workflow_edition=hello.preferred,
    )
    return env_pb2.HandshakeRequest(base=base).SerializeToString()


def read_hello(data: bytes) -> Hello:
    """Return a client's handshake.

    Raises:
        ProtocolException: it is not one.
    """
    try:
        request = env_pb2.HandshakeRequest.FromString(data)
    except DecodeError as error:
        raise ProtocolException(f"not a handshake request: {error}") from error
    if not request.HasField("base"):
        raise ProtocolException("the handshake request has no base")
    base = request.base
    return Hello(
        generation=base.protocol_generation,
        editions=tuple(base.supported_workflow_editions),
        preferred=(
            base.preferred_workflow_edition if base.HasField("preferred_workflow_edition") else None
        ),
        capabilities=dict(base.capabilities),
        peer=_peer_from_proto(base.peer_info) if base.HasField("peer_info") else None,
    )


def write_welcome(welcome: Welcome, contract: EnvContract | None) -> bytes:
    """Return a server's answer as bytes, with the contract when the client can use it.

    Served models have none; their handshakes are of the same bytes otherwise.
    """
    base = core_pb2.HandshakeResponse(
        compatible=welcome.compatible,
        peer_info=_peer_to_proto(welcome.peer),
        capabilities=welcome.capabilities,
        supported_workflow_editions=welcome.editions,
        error_message=welcome.refusal,
        preferred_workflow_edition=welcome.preferred,
    )
    response = env_pb2.HandshakeResponse(base=base)
    if welcome.compatible and contract is not None:
        response.env_contract.CopyFrom(contract_to_proto(contract))
    return response.SerializeToString()


def read_welcome(data: bytes) -> tuple[Welcome, EnvContract | None]:
    """Return a server's answer, and the contract in it.

    Raises:
        ProtocolException: it is not one, or the contract in it cannot be understood or be true.
    """
    try:
        response = env_pb2.HandshakeResponse.FromString(data)
    except DecodeError as error:
        raise ProtocolException(f"not a handshake response: {error}") from error
    base = response.base
    welcome = Welcome(
        compatible=base.compatible,
        editions=tuple(base.supported_workflow_editions),
        preferred=(
            base.preferred_workflow_edition if base.HasField("preferred_workflow_edition") else None
        ),
        capabilities=dict(base.capabilities),
        peer=_peer_from_proto(base.peer_info) if base.HasField("peer_info") else None,
        refusal=base.error_message if base.HasField("error_message") else None,
    )
    if not response.HasField("env_contract"):
        return welcome, None
    check_affordable(response.env_contract)
    return welcome, contract_from_proto(response.env_contract)


def write_shutdown(reason: str) -> bytes:
    """Return a request to stop serving as bytes."""
    base = core_pb2.ShutdownRequest(reason=reason)
    return env_pb2.ShutdownRequest(base=base).SerializeToString()


def read_shutdown(data: bytes) -> str:
    """Return the reason in a request to stop serving.

    Raises:
        ProtocolException: it is not one.
    """
    try:
        return env_pb2.ShutdownRequest.FromString(data).base.reason
    except DecodeError as error:
        raise ProtocolException(f"not a shutdown request: {error}") from error


def write_shutdown_answer(accepted: bool, message: str) -> bytes:
    """Return the answer to a request to stop serving as bytes."""
    base = core_pb2.ShutdownResponse(accepted=accepted, message=message)
    return env_pb2.ShutdownResponse(base=base).SerializeToString()


def read_shutdown_answer(data: bytes) -> tuple[bool, str]:
    """Return whether the server stops, and what it says.

    Raises:
        ProtocolException: it is no such answer.
    """
    try:
        base = env_pb2.ShutdownResponse.FromString(data).base
    except DecodeError as error:
        raise ProtocolException(f"not a shutdown response: {error}") from error
    return base.accepted, base.message


def _peer_to_proto(peer: Peer | None) -> core_pb2.PeerInfo | None:
    if peer is None:
        return None
    return core_pb2.PeerInfo(
        component=peer.component,
        package_version=peer.package_version,
        language=peer.language,
        language_version=peer.language_version,
        os=peer.os,
        os_version=peer.os_version,
        arch=peer.arch,
        framework_versions=peer.framework_versions,
        extra=peer.extra,
    )


def _peer_from_proto(message: core_pb2.PeerInfo) -> Peer:
    return Peer(
        component=message.component,
        package_version=message.package_version,
        language=message.language,
        language_version=message.language_version,
        os=message.os,
        os_version=message.os_version,
        arch=message.arch,
        framework_versions=dict(message.framework_versions),
        extra=dict(message.extra),
    )

"""What clients ask of a served model as protobuf, as the client writes and reads it."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import DecodeError
from rlcore import ProtocolException

from rlmesh.convert import contract_to_proto
from rlmesh.protocol.model_faults import ModelFault, ModelFaultReceived
from rlmesh.protocol.model_requests import Leaves, Name, Resolved, Row, Timing
from rlmesh.specs import EnvContract
from rlmesh.transport.step_bytes import LEAF, REQUEST_ID, varint
from rlmesh.values import Buffer
from rlmesh.wire.model.v1 import model_pb2 as pb

# JoinRequest.predict, PredictRequest.context and PredictRequest.observation.
_PREDICT, _CONTEXT, _OBSERVATION = b"\x12", b"\x0a", b"\x12"


def write_resolve(
    name: Name, contract: EnvContract, *, edition: str, horizon: int, instruction: str | None
) -> bytes:
    """Return a request for a route."""
    resolve = pb.ResolveAdapterRequest(
        context=_context(name),
        env_spec=contract_to_proto(contract).spec,
        selected_workflow_edition=edition,
        execution_horizon=horizon,
        instruction=instruction,
    )
    return pb.JoinRequest(resolve_adapter=resolve, request_id=name.request_id).SerializeToString()


def write_predict(name: Name, leaves: Leaves, rows: Sequence[Row]) -> bytes:
    """Return a request for actions; by hand, so that a large observation is copied once."""
    context = _context(name).SerializeToString()
    parts: list[Buffer] = [_CONTEXT + varint(len(context)) + context]
    value: list[Buffer] = []
    for leaf in leaves:
        value += (LEAF + varint(len(leaf)), leaf)
    parts += (_OBSERVATION + varint(sum(map(len, value))), *value)
    rest = pb.PredictRequest(
        episode_info=[pb.EpisodeInfo(episode_id=row.episode_id, seed=row.seed) for row in rows]
    )
    parts.append(rest.SerializeToString())
    request_id = name.request_id.encode()
    return b"".join(
        (
            _PREDICT,
            varint(sum(map(len, parts))),
            *parts,
            REQUEST_ID,
            varint(len(request_id)),
            request_id,
        )
    )


def write_reset(name: Name, episode_ids: Sequence[str]) -> bytes:
    """Return the news that episodes have ended."""
    reset = pb.ResetAdapterRequest(context=_context(name), episode_ids=episode_ids)
    return pb.JoinRequest(reset_adapter=reset, request_id=name.request_id).SerializeToString()


def write_release(name: Name, reason: str) -> bytes:
    """Return the news that a route is not needed any more."""
    release = pb.ReleaseAdapterRequest(context=_context(name), reason=reason)
    return pb.JoinRequest(release_adapter=release, request_id=name.request_id).SerializeToString()


def read_resolved(data: bytes, request_id: str) -> Resolved:
    """Return what a resolve gave.

    Raises:
        ModelFaultReceived: the server refused it.
        ProtocolException: it is no reply to this request.
    """
    resolved = _read(data, request_id, "resolve_adapter").resolve_adapter
    chunk = resolved.native_chunk if resolved.HasField("native_chunk") else None
    return Resolved(chunk, tuple(resolved.history.keys))


def read_actions(data: bytes, request_id: str) -> tuple[list[Leaves], Timing]:
    """Return the actions over time that a predict gave, and what the server took for them.

    Raises:
        ModelFaultReceived: the model failed, or the server refused the request.
        ProtocolException: it is no reply to this request.
    """
    message = _read(data, request_id, "predict")
    frames: list[Leaves] = [action.leaves for action in message.predict.actions]
    if not frames:
        raise ProtocolException("the reply to a predict holds no action")
    timing = Timing(
        message.endpoint_total_ns,
        message.decode_ns,
        message.user_ns,
        message.encode_ns,
        message.queue_ns,
    )
    return frames, timing


def read_reset(data: bytes, request_id: str) -> None:
    """Check the reply to a reset; raises as `read_resolved`."""
    _read(data, request_id, "reset_adapter")


def read_released(data: bytes, request_id: str) -> None:
    """Check the reply to a release; raises as `read_resolved`."""
    _read(data, request_id, "release_adapter")


def _context(name: Name) -> pb.AdapterContext:
    return pb.AdapterContext(
        session_id=name.session_id, env_id=name.env_id, request_id=name.request_id
    )


def _read(data: bytes, request_id: str, kind: str) -> pb.JoinResponse:
    try:
        message = pb.JoinResponse.FromString(data)
    except DecodeError as error:
        raise ProtocolException(f"not a reply of this protocol: {error}") from error
    if message.request_id != request_id:
        raise ProtocolException(
            f"the reply is to request {message.request_id!r}, the request was {request_id!r}"
        )
    given = message.WhichOneof("kind")
    if given == "error":
        told = message.error
        raise ModelFaultReceived(
            ModelFault(int(told.code), told.message, told.is_recoverable, told.debug_info)
        )
    if given != kind:
        raise ProtocolException(f"the reply to a {kind} is a {given or 'message without content'}")
    return message

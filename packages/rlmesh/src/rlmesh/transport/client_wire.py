"""A session's messages as protobuf, as the client writes and reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from google.protobuf.message import DecodeError
from rlcore import ProtocolException

from rlmesh.codec.metadata import decode_meta, encode_meta
from rlmesh.protocol.faults import Fault
from rlmesh.protocol.messages import FaultReceived, Leaves, Rendering, ResetReply, StepReply
from rlmesh.transport.step_bytes import read_step_answer, step_tail
from rlmesh.transport.step_bytes import write_step as write_step_bytes
from rlmesh.wire.env.v1 import env_pb2


def write_configure(request_id: str, edition: str) -> bytes:
    """Return the message that pins the workflow edition."""
    configure = env_pb2.ConfigureEnvRequest(selected_workflow_edition=edition)
    return env_pb2.JoinRequest(configure=configure, request_id=request_id).SerializeToString()


def write_reset(
    request_id: str,
    *,
    seeds: Sequence[int | None],
    options: Mapping[str, object] | None,
    tensors: bool = False,
    timeout_ms: int,
    lanes: Sequence[int] = (),
    episode_ids: Sequence[str],
) -> bytes:
    """Return a reset as bytes; `tensors`: the server reads arrays in options as they are.

    Seeds with a None among them can be read by servers of ours only.
    """
    reset = env_pb2.ResetRequest(
        seeds=[seed or 0 for seed in seeds],
        unseeded=[place for place, seed in enumerate(seeds) if seed is None],
        options=None if options is None else encode_meta(options, tensors=tensors),
        timeout_ms=timeout_ms,
        env_indices=lanes,
        episode_ids=episode_ids,
    )
    return env_pb2.JoinRequest(reset=reset, request_id=request_id).SerializeToString()


def write_step(
    request_id: str,
    leaves: Leaves,
    *,
    timeout_ms: int,
    lanes: tuple[int, ...] = (),
    episode_ids: tuple[str, ...],
) -> bytes:
    """Return a step as bytes."""
    return write_step_bytes(request_id, leaves, step_tail(timeout_ms, lanes, episode_ids))


def write_render(request_id: str, lane: int, *, timeout_ms: int) -> bytes:
    """Return a render as bytes."""
    render = env_pb2.RenderRequest(env_indices=(lane,), timeout_ms=timeout_ms)
    return env_pb2.JoinRequest(render=render, request_id=request_id).SerializeToString()


def write_close(request_id: str, reason: str) -> bytes:
    """Return a close as bytes."""
    close = env_pb2.CloseEnvsRequest(reason=reason)
    return env_pb2.JoinRequest(close=close, request_id=request_id).SerializeToString()


def read_notice(data: bytes) -> int | None:
    """Return the position in the queue that a message tells; None: it is something else."""
    try:
        message = env_pb2.JoinResponse.FromString(data)
    except DecodeError as error:
        raise ProtocolException(f"not a reply of this protocol: {error}") from error
    return message.notice.position if message.HasField("notice") else None


def read_configured(data: bytes, request_id: str) -> None:
    """Check the reply to a configure.

    Raises:
        FaultReceived: the server refused the edition.
        ProtocolException: it is not the reply to this request.
    """
    _read(data, request_id, "configure")


def read_reset(data: bytes, request_id: str) -> ResetReply:
    """Return what a reset gave.

    Raises:
        FaultReceived: the reset failed.
        ProtocolException: it is not the reply to this request.
    """
    reset = _read(data, request_id, "reset").reset
    info = decode_meta(reset.infos) if reset.HasField("infos") else {}
    return ResetReply(reset.observation.leaves, info)


def read_step(data: bytes, request_id: str, lanes: int) -> StepReply:
    """Return what a step of so many lanes gave.

    Raises:
        FaultReceived: the step failed.
        ProtocolException: it is not the reply to this request.
    """
    return read_step_answer(data, request_id, lanes) or _read_step(data, request_id, lanes)


def read_render(data: bytes, request_id: str) -> Rendering:
    """Return what was drawn, or None when the environment drew nothing.

    Raises:
        FaultReceived: the render failed.
        ProtocolException: it is not the reply to this request.
    """
    render = _read(data, request_id, "render").render
    if render.HasField("text"):
        return render.text
    if render.HasField("several"):
        return list(render.several.frames) or list(render.several.texts)
    known = (env_pb2.RENDER_FORMAT_UNSPECIFIED, env_pb2.RENDER_FORMAT_PNG)
    if not render.HasField("frame") or render.format not in known:
        return None
    return render.frame


def read_closed(data: bytes, request_id: str) -> None:
    """Check the reply to a close.

    Raises:
        FaultReceived: closing failed.
        ProtocolException: it is not the reply to this request.
    """
    _read(data, request_id, "close")


def _read_step(data: bytes, request_id: str, lanes: int) -> StepReply:
    message = _read(data, request_id, "step")
    step = message.step
    rewards, terminated, truncated = step.rewards, step.terminated_mask, step.truncated_mask
    if not len(rewards) == len(terminated) == len(truncated) == lanes:
        raise ProtocolException(
            f"the step's reply has {len(rewards)} rewards, {len(terminated)} terminated and "
            f"{len(truncated)} truncated flags for {lanes} environment(s)"
        )
    info = decode_meta(step.infos) if step.HasField("infos") else {}
    completed = tuple([episode.episode_id for episode in step.completed_episodes])
    return StepReply(
        step.observation.leaves,
        rewards,
        terminated,
        truncated,
        info,
        completed,
        message.endpoint_total_ns,
        message.user_ns,
    )


def _read(data: bytes, request_id: str, kind: str) -> env_pb2.JoinResponse:
    try:
        message = env_pb2.JoinResponse.FromString(data)
    except DecodeError as error:
        raise ProtocolException(f"not a reply of this protocol: {error}") from error
    if message.request_id != request_id:
        raise ProtocolException(
            f"the reply is to request {message.request_id!r}, the request was {request_id!r}"
        )
    given = message.WhichOneof("kind")
    if given != kind:
        _refuse(message, given, kind)
    return message


def _refuse(message: env_pb2.JoinResponse, given: str | None, kind: str) -> NoReturn:
    if given != "error":
        raise ProtocolException(f"the reply to a {kind} is a {given or 'message without content'}")
    error = message.error
    raise FaultReceived(
        Fault(int(error.code), error.message, error.is_recoverable, error.debug_info)
    )

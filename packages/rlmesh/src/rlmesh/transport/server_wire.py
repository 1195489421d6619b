"""A session's messages as the server reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from google.protobuf.message import DecodeError
from rlcore import ProtocolException

from rlmesh.codec.metadata import decode_meta, encode_meta_lenient
from rlmesh.protocol.episodes import Episode
from rlmesh.protocol.faults import Fault, writable
from rlmesh.wire.env.v1 import env_pb2
from rlmesh.wire.spaces.v1 import spaces_pb2

# Most steps say nothing: these two stand for that, and are never changed.
_NO_INFOS = spaces_pb2.MetaMap()
_NOTHING_ODD: list[str] = []

Kind = Literal["reset", "step", "render", "close", "configure", ""]


@dataclass(slots=True)
class Request:
    """One request; the fields that its kind does not have are empty."""

    kind: Kind
    request_id: str
    lanes: Sequence[int] = ()
    timeout_ms: int = 0
    action: Sequence[bytes] | None = None
    episode_ids: Sequence[str] = ()
    seeds: Sequence[int] = ()
    options: dict[str, object] | None = None
    edition: str = ""


@dataclass(slots=True)
class Timing:
    """How long the parts of a request took, in nanoseconds."""

    total: int = 0
    decode: int | None = None
    user: int | None = None
    encode: int | None = None


@dataclass(slots=True)
class StepAnswer:
    """What the environment gave for a step of its one lane."""

    leaves: Sequence[bytes]
    reward: float
    terminated: bool
    truncated: bool
    info: Mapping[str, object] | None
    lanes: Sequence[int]
    cut_off: Sequence[Episode] = ()
    finished: Episode | None = None


def read_request(data: bytes) -> Request:
    """Return a request.

    Raises:
        ProtocolException: the bytes are not one.
    """
    try:
        message = env_pb2.JoinRequest.FromString(data)
    except DecodeError as error:
        raise ProtocolException(f"not a request of this protocol: {error}") from error
    kind = message.WhichOneof("kind")
    request_id = message.request_id
    if kind == "step":
        step = message.step
        return Request(
            "step",
            request_id,
            step.env_indices,
            step.timeout_ms,
            step.action.leaves if step.HasField("action") else None,
            step.episode_ids,
        )
    if kind == "reset":
        reset = message.reset
        return Request(
            "reset",
            request_id,
            reset.env_indices,
            reset.timeout_ms,
            episode_ids=reset.episode_ids,
            seeds=reset.seeds,
            options=decode_meta(reset.options) if reset.HasField("options") else None,
        )
    if kind == "render":
        return Request("render", request_id, message.render.env_indices, message.render.timeout_ms)
    if kind == "configure":
        edition = message.configure.selected_workflow_edition
        return Request("configure", request_id, edition=edition)
    return Request(cast("Kind", kind or ""), request_id)


def write_step(request_id: str, answer: StepAnswer, timing: Timing) -> tuple[bytes, list[str]]:
    """Return a step's reply as bytes, and the info keys whose values had to be simplified."""
    infos, odd = _infos(answer.info)
    message = env_pb2.JoinResponse()
    step = message.step  # filled in place: messages given to constructors are copied
    step.observation.SetInParent()  # a space without leaves still has values
    step.observation.leaves.extend(answer.leaves)
    step.rewards.append(answer.reward)
    step.terminated_mask = b"\1" if answer.terminated else b"\0"
    step.truncated_mask = b"\1" if answer.truncated else b"\0"
    if infos is not None:
        step.infos.CopyFrom(infos)
    if answer.lanes:
        step.env_indices.extend(answer.lanes)
    for episode in answer.cut_off:
        _write_episode(step.completed_episodes.add(), episode)
    if answer.finished is not None:
        record = step.completed_episodes.add()
        _write_episode(record, answer.finished)
        if infos is not None:
            record.final_info.CopyFrom(infos)
    return _reply(message, request_id, timing), odd


def write_reset(
    request_id: str, leaves: Sequence[bytes], info: Mapping[str, object] | None, timing: Timing
) -> tuple[bytes, list[str]]:
    """Return a reset's reply as bytes, and the info keys whose values had to be simplified."""
    infos, odd = _infos(info)
    reset = env_pb2.ResetResponse(observation=spaces_pb2.SpaceValue(leaves=leaves), infos=infos)
    return _reply(env_pb2.JoinResponse(reset=reset), request_id, timing), odd


def write_render(request_id: str, png: bytes | None, timing: Timing) -> bytes:
    """Return a render's reply as bytes."""
    render = env_pb2.RenderResponse(
        frame=png,
        format=env_pb2.RENDER_FORMAT_UNSPECIFIED if png is None else env_pb2.RENDER_FORMAT_PNG,
    )
    return _reply(env_pb2.JoinResponse(render=render), request_id, timing)


def write_configured(request_id: str, timing: Timing) -> bytes:
    """Return a configure's reply as bytes."""
    configure = env_pb2.ConfigureEnvResponse()
    return _reply(env_pb2.JoinResponse(configure=configure), request_id, timing)


def write_closed(request_id: str, episodes: Sequence[Episode], timing: Timing) -> bytes:
    """Return a close's reply as bytes, with the episodes that nothing reported before."""
    close = env_pb2.CloseEnvsResponse()
    for episode in episodes:
        _write_episode(close.final_episodes.add(), episode)
    return _reply(env_pb2.JoinResponse(close=close), request_id, timing)


def write_fault(
    request_id: str, fault: Fault, interrupted: Sequence[Episode], timing: Timing
) -> bytes:
    """Return a failed request's reply as bytes."""
    error = env_pb2.EnvError(
        code=cast("env_pb2.EnvErrorCode.ValueType", int(fault.code)),
        message=writable(fault.message),
        is_recoverable=fault.recoverable,
        debug_info=writable(fault.debug_info),
    )
    for episode in interrupted:
        _write_episode(error.interrupted_episodes.add(), episode)
    return _reply(env_pb2.JoinResponse(error=error), request_id, timing)


def _infos(info: Mapping[str, object] | None) -> tuple[spaces_pb2.MetaMap | None, list[str]]:
    if info is None:
        return None, []
    return encode_meta_lenient(info) if info else (_NO_INFOS, _NOTHING_ODD)


def _write_episode(record: env_pb2.EpisodeMetadata, episode: Episode) -> None:
    record.episode_id = episode.episode_id
    if episode.seed is not None:
        record.seed = episode.seed
    record.step_count = episode.steps
    record.cumulative_reward = episode.reward
    record.terminated = episode.terminated
    record.truncated = episode.truncated
    record.start_timestamp_ns = episode.started_ns
    record.end_timestamp_ns = episode.ended_ns


def _reply(message: env_pb2.JoinResponse, request_id: str, timing: Timing) -> bytes:
    message.request_id = request_id
    message.endpoint_total_ns = timing.total
    if timing.decode is not None:
        message.decode_ns = timing.decode
    if timing.user is not None:
        message.user_ns = timing.user
    if timing.encode is not None:
        message.encode_ns = timing.encode
    return message.SerializeToString()

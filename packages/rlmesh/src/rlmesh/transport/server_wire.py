"""A session's messages as protobuf, as the server reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from google.protobuf.message import DecodeError
from rlcore import ProtocolException

from rlmesh.codec.metadata import decode_meta, encode_meta_lenient
from rlmesh.protocol.episodes import Episode
from rlmesh.protocol.faults import writable
from rlmesh.protocol.messages import (
    Answer,
    Closed,
    CompletedEpisode,
    Configured,
    Kind,
    Refused,
    RenderAnswer,
    Rendering,
    Request,
    ResetAnswer,
    StepAnswer,
    Timing,
)
from rlmesh.transport.step_bytes import StepReader, write_step_answer
from rlmesh.wire.env.v1 import env_pb2
from rlmesh.wire.spaces.v1 import spaces_pb2


class ServerWire:
    """Reads one session's requests and writes the answers to them."""

    def __init__(self) -> None:
        self._steps = StepReader()

    def read(self, data: bytes) -> Request:
        """Return a request.

        Raises:
            ProtocolException: the bytes are not one.
        """
        return self._steps.read(data) or read_request(data)

    def write(self, request_id: str, answer: Answer) -> tuple[bytes, Sequence[str]]:
        """Return an answer as bytes, and the info keys whose values had to be simplified."""
        if isinstance(answer, StepAnswer):
            infos, completed, odd = step_infos(answer)
            return write_step_answer(request_id, answer, infos, completed), odd
        return write_answer(request_id, answer)


def step_infos(answer: StepAnswer) -> tuple[bytes | None, Sequence[bytes], Sequence[str]]:
    """Return a step's info and completed episodes as bytes, and the info keys simplified."""
    infos, odd = _info_bytes(answer.info, answer.tensors)
    completed = [_completed(episode, answer.tensors) for episode in answer.completed]
    return infos, completed, odd


def reset_infos(answer: ResetAnswer) -> tuple[bytes, Sequence[str]]:
    """Return a reset's info as bytes, empty where it has none, and the info keys simplified."""
    infos, odd = _info_bytes(answer.info, answer.tensors)
    return infos or b"", odd


def read_request(data: bytes) -> Request:
    """Return a request of any kind.

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
            seeds=_seeds(reset) if reset.unseeded else reset.seeds,
            options=decode_meta(reset.options) if reset.HasField("options") else None,
        )
    if kind == "render":
        return Request("render", request_id, message.render.env_indices, message.render.timeout_ms)
    if kind == "configure":
        edition = message.configure.selected_workflow_edition
        return Request("configure", request_id, edition=edition)
    return Request(cast("Kind", kind or ""), request_id)


def _seeds(reset: env_pb2.ResetRequest) -> Sequence[int | None]:
    seeds: list[int | None] = list(reset.seeds)
    for place in reset.unseeded:
        if place >= len(seeds):
            raise ProtocolException(f"place {place} of {len(seeds)} seeds is said to have none")
        seeds[place] = None
    return seeds


def write_answer(request_id: str, answer: Answer) -> tuple[bytes, Sequence[str]]:
    """Return an answer of any kind but a step's, and the info keys that had to be simplified."""
    odd: Sequence[str] = ()
    message = env_pb2.JoinResponse()
    match answer:
        case ResetAnswer():
            infos, odd = _infos(answer.info, answer.tensors)
            leaves = [bytes(leaf) for leaf in answer.leaves]
            message.reset.observation.CopyFrom(spaces_pb2.SpaceValue(leaves=leaves))
            if infos is not None:
                message.reset.infos.CopyFrom(infos)
        case RenderAnswer():
            render = message.render
            render.SetInParent()
            _write_drawn(render, answer.drawn)
        case Configured():
            message.configure.SetInParent()
        case Closed():
            message.close.SetInParent()
            for episode in answer.episodes:
                _write_episode(message.close.final_episodes.add(), episode)
        case Refused():
            _write_fault(message.error, answer)
        case StepAnswer():
            raise TypeError("a step's answer is written by hand")
    return _reply(message, request_id, answer.timing), odd


def write_notice(position: int) -> bytes:
    """Return the message that tells a waiting client its position in the queue."""
    return env_pb2.JoinResponse(notice=env_pb2.QueueNotice(position=position)).SerializeToString()


def _write_drawn(render: env_pb2.RenderResponse, drawn: Rendering) -> None:
    if isinstance(drawn, bytes):
        render.frame, render.format = drawn, env_pb2.RENDER_FORMAT_PNG
    elif isinstance(drawn, str):
        render.text = writable(drawn)
    elif drawn is not None:
        render.several.SetInParent()
        for one in drawn:
            if isinstance(one, bytes):
                render.several.frames.append(one)
            else:
                render.several.texts.append(writable(one))


def _write_fault(error: env_pb2.EnvError, refused: Refused) -> None:
    fault = refused.fault
    error.code = cast("env_pb2.EnvErrorCode.ValueType", int(fault.code))
    error.message = writable(fault.message)
    error.is_recoverable = fault.recoverable
    error.debug_info = writable(fault.debug_info)
    for episode in refused.interrupted:
        _write_episode(error.interrupted_episodes.add(), episode)


def _info_bytes(
    info: Mapping[str, object] | None, tensors: bool
) -> tuple[bytes | None, Sequence[str]]:
    if not info:
        return (None if info is None else b""), ()
    message, odd = encode_meta_lenient(info, tensors=tensors)
    return message.SerializeToString(), odd


def _infos(
    info: Mapping[str, object] | None, tensors: bool
) -> tuple[spaces_pb2.MetaMap | None, Sequence[str]]:
    return (None, ()) if info is None else encode_meta_lenient(info, tensors=tensors)


def _completed(completed: CompletedEpisode, tensors: bool) -> bytes:
    record = env_pb2.EpisodeMetadata()
    _write_episode(record, completed.episode)
    if completed.final_info is not None:
        infos, _ = encode_meta_lenient(completed.final_info, tensors=tensors)
        record.final_info.CopyFrom(infos)
    return record.SerializeToString()


def _write_episode(record: env_pb2.EpisodeMetadata, episode: Episode) -> None:
    record.episode_id = episode.episode_id
    if episode.seed is not None:
        record.seed = episode.seed
    record.env_index = episode.lane
    record.step_count = episode.steps
    record.cumulative_reward = episode.reward
    record.terminated = episode.terminated
    record.truncated = episode.truncated
    record.start_timestamp_ns = episode.started_ns
    record.end_timestamp_ns = episode.ended_ns


def _reply(message: env_pb2.JoinResponse, request_id: str, timing: Timing) -> bytes:
    message.request_id = request_id
    message.endpoint_total_ns = timing.total
    if timing.user is not None:
        message.user_ns = timing.user
    return message.SerializeToString()

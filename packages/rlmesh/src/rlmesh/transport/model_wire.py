"""What clients ask of a served model as protobuf, as the server reads and answers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from google.protobuf.message import DecodeError
from rlcore import ProtocolException, RLMeshException

from rlmesh.convert import contract_from_proto
from rlmesh.protocol.faults import writable
from rlmesh.protocol.model_faults import ModelFault, ModelFaultCode
from rlmesh.protocol.model_requests import Actions, Ask, Name, Resolved, Result, Row, Timing
from rlmesh.specs import EnvContract
from rlmesh.transport.affordable import check_affordable
from rlmesh.wire.core.v1 import core_pb2
from rlmesh.wire.model.v1 import model_pb2 as pb
from rlmesh.wire.spaces.v1 import spaces_pb2


@dataclass(frozen=True, slots=True)
class Resolve:
    """A route is wanted.

    Attributes:
        name: whose.
        contract: one lane of the environment that it is about; a fault: what is wrong with it.
        spaces: equal where two routes have the same spaces.
        edition: the workflow edition; empty: any.
        horizon: how many actions are executed of each answer; 0 counts as 1.
        delivers_history: whether the client sends the observations that it skipped.
        instruction: what to do, instead of what the environment says.
    """

    name: Name | None
    contract: EnvContract | ModelFault
    spaces: bytes
    edition: str
    horizon: int
    delivers_history: bool
    instruction: str | None


@dataclass(frozen=True, slots=True)
class Predict:
    """Actions are wanted."""

    ask: Ask


@dataclass(frozen=True, slots=True)
class Grouped:
    """Actions are wanted for several routes."""

    asks: tuple[Ask, ...]


@dataclass(frozen=True, slots=True)
class Reset:
    """Episodes have ended."""

    name: Name | None
    episode_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Release:
    """A route is not needed any more."""

    name: Name | None


@dataclass(frozen=True, slots=True)
class Close:
    """The client leaves."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing that this build knows is wanted."""


Request: TypeAlias = Resolve | Predict | Grouped | Reset | Release | Close | Unknown


@dataclass(frozen=True, slots=True)
class Released:
    """The answer to a release."""


@dataclass(frozen=True, slots=True)
class WasReset:
    """The answer to a reset."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The answer to a close."""


@dataclass(frozen=True, slots=True)
class Results:
    """The answer to grouped asks, in their order."""

    results: Sequence[Result]


Answer: TypeAlias = Resolved | Actions | Results | WasReset | Released | Closed | ModelFault


def read_request(data: bytes) -> tuple[str, Request]:
    """Return a request's id and the request.

    Raises:
        ProtocolException: the bytes are none.
    """
    try:
        message = pb.JoinRequest.FromString(data)
    except DecodeError as error:
        raise ProtocolException(f"not a request of this protocol: {error}") from error
    return message.request_id, _request(message)


def write_answer(request_id: str, answer: Answer, timing: Timing) -> bytes:
    """Return an answer as bytes."""
    message = pb.JoinResponse(
        request_id=request_id,
        endpoint_total_ns=timing.total,
        decode_ns=timing.decode,
        user_ns=timing.user,
        encode_ns=timing.encode,
        queue_ns=timing.queue,
        in_flight=timing.in_flight,
        held_episodes=timing.held_episodes,
    )
    if isinstance(answer, Actions):
        _write_actions(message.predict, answer)
    else:
        _write_rarer(message, answer)
    return message.SerializeToString()


def _write_rarer(message: pb.JoinResponse, answer: Answer) -> None:
    match answer:
        case ModelFault():
            _write_fault(message.error, answer)
        case Resolved():
            chunk = answer.native_chunk
            message.resolve_adapter.CopyFrom(pb.ResolveAdapterResponse(native_chunk=chunk))
        case Results():
            message.grouped_predict.SetInParent()
            for result in answer.results:
                one = message.grouped_predict.results.add()
                if isinstance(result, ModelFault):
                    _write_fault(one.error, result)
                else:
                    _write_actions(one.response, result)
        case WasReset():
            message.reset_adapter.SetInParent()
        case Released():
            message.release_adapter.SetInParent()
        case Closed():
            message.close.SetInParent()
        case Actions():
            _write_actions(message.predict, answer)


def _request(message: pb.JoinRequest) -> Request:
    match message.WhichOneof("kind"):
        case "predict":
            return Predict(_ask(message.predict))
        case "grouped_predict":
            return Grouped(tuple([_ask(group) for group in message.grouped_predict.groups]))
        case "resolve_adapter":
            resolve = message.resolve_adapter
            return Resolve(
                _name(resolve.context) if resolve.HasField("context") else None,
                _contract(resolve),
                _spaces(resolve.env_spec),
                resolve.selected_workflow_edition,
                resolve.execution_horizon,
                resolve.delivers_history,
                resolve.instruction if resolve.HasField("instruction") else None,
            )
        case "reset_adapter":
            reset = message.reset_adapter
            name = _name(reset.context) if reset.HasField("context") else None
            return Reset(name, tuple(reset.episode_ids))
        case "release_adapter":
            release = message.release_adapter
            return Release(_name(release.context) if release.HasField("context") else None)
        case "close":
            return Close(message.close.reason)
        case _:
            return Unknown()


def _contract(resolve: pb.ResolveAdapterRequest) -> EnvContract | ModelFault:
    if not resolve.HasField("env_spec"):
        return ModelFault(ModelFaultCode.INVALID_REQUEST, "the request has no env_spec")
    message = core_pb2.EnvContract(spec=resolve.env_spec, num_envs=1)
    if not message.spec.HasField("observation_space"):
        # Such a route predicts without observations.
        message.spec.observation_space.tuple.SetInParent()
    try:
        check_affordable(message)
        return contract_from_proto(message)
    except RLMeshException as error:
        return ModelFault(ModelFaultCode.INVALID_REQUEST, error.message)


def _spaces(spec: core_pb2.EnvSpec) -> bytes:
    both = core_pb2.EnvSpec(
        action_space=spec.action_space, observation_space=spec.observation_space
    )
    return both.SerializeToString(deterministic=True)


def _ask(message: pb.PredictRequest) -> Ask:
    return Ask(
        _name(message.context) if message.HasField("context") else None,
        message.observation.leaves if message.HasField("observation") else None,
        tuple(
            [
                Row(info.episode_id, info.seed if info.HasField("seed") else None)
                for info in message.episode_info
            ]
        ),
    )


def _name(context: pb.AdapterContext) -> Name:
    return Name(context.session_id, context.env_id, context.request_id)


def _write_actions(message: pb.PredictResponse, actions: Actions) -> None:
    name = actions.name
    message.context.session_id = name.session_id
    message.context.env_id = name.env_id
    message.context.request_id = name.request_id
    message.actions.extend(
        [spaces_pb2.SpaceValue(leaves=[bytes(leaf) for leaf in frame]) for frame in actions.frames]
    )


def _write_fault(message: pb.ModelError, fault: ModelFault) -> None:
    message.code = cast("pb.ModelErrorCode.ValueType", int(fault.code))
    message.message = writable(fault.message)
    message.is_recoverable = fault.recoverable
    message.debug_info = writable(fault.debug_info)

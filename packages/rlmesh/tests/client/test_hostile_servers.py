"""A client that dialled the wrong server is told so, soon, and without using up its machine."""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rlcore import Error, ProtocolException, RLMeshException, SessionBusy
from rlmesh import RemoteEnv as NativeEnv
from rlmesh.client.arguments import INT64
from rlmesh.numpy import RemoteEnv
from rlmesh.transport.affordable import MOST_LANES, MOST_SPACES
from rlmesh.transport.handshake_wire import read_welcome
from rlmesh.transport.limits import MESSAGE_BYTES
from rlmesh.wire.core.v1 import core_pb2
from rlmesh.wire.env.v1 import env_pb2
from rlmesh.wire.spaces.v1 import spaces_pb2 as pb

SOON_SECONDS = 3.0
LITTLE_BYTES = 64 * 2**20
Pretend = Callable[..., str]


class Script(grpc.GenericRpcHandler):
    """Answers every call with the bytes prepared for its method."""

    def __init__(self) -> None:
        self.handshake = b""
        self.join = b""
        self.crowded = 0

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[bytes, bytes]:
        if handler_call_details.method.endswith("/Join"):
            return grpc.stream_stream_rpc_method_handler(self._join)
        return grpc.unary_unary_rpc_method_handler(self._handshake)

    def _handshake(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        if self.crowded:
            self.crowded -= 1
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "Concurrent RPC limit exceeded!")
        return self.handshake

    def _join(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        context.send_initial_metadata(())
        for data in requests:
            reply = env_pb2.JoinResponse.FromString(self.join)
            reply.request_id = env_pb2.JoinRequest.FromString(data).request_id
            yield reply.SerializeToString()


@pytest.fixture
def pretend() -> Iterator[Pretend]:
    """Start a server that says what it is told to."""
    script = Script()
    server = grpc.server(
        futures.ThreadPoolExecutor(4),
        options=[("grpc.max_send_message_length", -1)],
    )
    server.add_generic_rpc_handlers((script,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()

    def say(handshake: bytes, join: bytes = b"", crowded: int = 0) -> str:
        script.handshake, script.join, script.crowded = handshake, join, crowded
        return f"127.0.0.1:{port}"

    yield say
    server.stop(None).wait(5)


def box(*shape: int, dtype: pb.DataType.ValueType = pb.DATA_TYPE_FLOAT32) -> pb.SpaceSpec:
    spec = pb.SpaceSpec(shape=shape, dtype=dtype)
    spec.box.unbounded = True
    return spec


def uniform(*shape: int) -> pb.SpaceSpec:
    spec = pb.SpaceSpec(shape=shape, dtype=pb.DATA_TYPE_UINT8)
    spec.box.uniform.low, spec.box.uniform.high = b"\0", b"\1"
    return spec


def nested(depth: int) -> pb.SpaceSpec:
    spec = box(1)
    for _ in range(depth):
        spec = pb.SpaceSpec(tuple=pb.TupleSpec(spaces=[spec]))
    return spec


def welcome(
    observation: pb.SpaceSpec | None = None, action: pb.SpaceSpec | None = None, lanes: int = 1
) -> bytes:
    spec = core_pb2.EnvSpec(
        id="x", observation_space=observation or box(1), action_space=action or box(1)
    )
    return env_pb2.HandshakeResponse(
        base=core_pb2.HandshakeResponse(compatible=True, supported_workflow_editions=["2026.06"]),
        env_contract=core_pb2.EnvContract(spec=spec, num_envs=lanes),
    ).SerializeToString()


def deep_bytes(depth: int) -> bytes:
    """Messages within one another, far deeper than anything would write them."""
    inner = b""
    for _ in range(depth):
        inner = b"\xaa\x01" + varint(len(inner)) + inner  # field 21, a message
    return inner


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


HUGE = {
    "two large dimensions": box(2**31 - 1, 2**31 - 1),
    "sixteen billion floats": box(2**34),
    "one message too much": box(MESSAGE_BYTES // 4 + 1),
    "nothing of something huge": box(0, 2**62),
    "an image that is too large": uniform(2**17, 2**17),
    "a thousand dimensions": box(*[1] * 1000),
    "a million dimensions": box(*[2**62] * 1_000_000),
    "negative dimensions": box(-1, 4),
    "many bits": pb.SpaceSpec(
        shape=[2**40], dtype=pb.DATA_TYPE_INT8, multi_binary=pb.MultiBinarySpec()
    ),
    "fewer categories than elements": pb.SpaceSpec(
        shape=[2**40], dtype=pb.DATA_TYPE_INT64, multi_discrete=pb.MultiDiscreteSpec(nvec=[3])
    ),
    "too many numbers": pb.SpaceSpec(
        dtype=pb.DATA_TYPE_INT64, discrete=pb.DiscreteSpec(n=INT64[-1], start=INT64[-1])
    ),
    "many large arrays": pb.SpaceSpec(tuple=pb.TupleSpec(spaces=[box(2**24)] * 64)),
    "many spaces": pb.SpaceSpec(tuple=pb.TupleSpec(spaces=[box(1)] * (MOST_SPACES + 1))),
}


@pytest.mark.parametrize("client", [RemoteEnv, NativeEnv])
@pytest.mark.parametrize("case", HUGE)
@pytest.mark.parametrize("side", ["observation", "action"])
def test_a_contract_that_cannot_be_true_is_refused_at_once(
    pretend: Pretend, client: Any, case: str, side: str
) -> None:
    spaces = (HUGE[case], None) if side == "observation" else (None, HUGE[case])
    address = pretend(welcome(*spaces))
    tracemalloc.start()
    started = time.monotonic()
    try:
        with pytest.raises(ProtocolException) as caught:
            client(address)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.monotonic() - started < SOON_SECONDS
    assert peak < LITTLE_BYTES
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("lanes", [MOST_LANES + 1, 2**31 - 1])
def test_more_environments_than_there_can_be_are_refused(pretend: Pretend, lanes: int) -> None:
    with pytest.raises(ProtocolException, match="environments, more than"):
        RemoteEnv(pretend(welcome(lanes=lanes)))


def test_the_largest_values_that_fit_are_welcome() -> None:
    _, contract = read_welcome(welcome(box(MESSAGE_BYTES // 4)))
    assert contract is not None
    assert math.prod(contract.observation_space.shape) * 4 == MESSAGE_BYTES


@pytest.mark.parametrize(
    "handshake",
    [
        b"",
        b"\xff" * 100,
        welcome()[:-1],
        deep_bytes(10_000),
        b"\x12" + varint(2**31 - 1) + b"\0",
    ],
    ids=["empty", "random", "cut", "deep", "long"],
)
def test_bytes_that_are_no_welcome_are_refused(pretend: Pretend, handshake: bytes) -> None:
    with pytest.raises(ProtocolException):
        RemoteEnv(pretend(handshake))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_welcome_with_any_byte_changed_is_read_or_refused(data: st.DataObject) -> None:
    whole = bytearray(welcome(nested(2), uniform(3, 2)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    try:
        read_welcome(bytes(whole[:cut]))
    except Error as error:
        assert isinstance(error, ProtocolException)  # noqa: PT017 - most of them are read well


REPLIES = {
    "nothing": env_pb2.JoinResponse(),
    "another kind": env_pb2.JoinResponse(close=env_pb2.CloseEnvsResponse()),
    "no observation": env_pb2.JoinResponse(reset=env_pb2.ResetResponse()),
    "a short leaf": env_pb2.JoinResponse(
        reset=env_pb2.ResetResponse(observation=pb.SpaceValue(leaves=[b"\0"]))
    ),
    "a long leaf": env_pb2.JoinResponse(
        reset=env_pb2.ResetResponse(observation=pb.SpaceValue(leaves=[bytes(2**20)]))
    ),
    "many leaves": env_pb2.JoinResponse(
        reset=env_pb2.ResetResponse(observation=pb.SpaceValue(leaves=[b"\0\0\0\0"] * 100_000))
    ),
    "an unknown fault": env_pb2.JoinResponse(
        error=env_pb2.EnvError.FromString(b"\x08\x63\x12\x01x")
    ),
}


@pytest.mark.parametrize("case", REPLIES)
def test_replies_that_cannot_be_are_errors_of_the_protocol(pretend: Pretend, case: str) -> None:
    env = RemoteEnv(pretend(welcome(), REPLIES[case].SerializeToString()))
    with pytest.raises(RLMeshException):
        env.reset()
    env.close()


def test_a_server_that_is_crowded_is_asked_again_for_as_long_as_one_waits(
    pretend: Pretend,
) -> None:
    address = pretend(welcome(), crowded=2)

    with pytest.raises(SessionBusy, match="Concurrent RPC limit"):
        RemoteEnv(address, wait_for_server_seconds=0)
    with RemoteEnv(address, wait_for_server_seconds=20) as env:
        assert env.observation_space.shape == (1,)

"""Whatever a server says on a lane, its client gets an answer or an error of ours, at once."""

from __future__ import annotations

import json
import socket
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlcore import Error, ProtocolException, RLMeshException
from rlmesh.transport.addresses import TcpAddress
from rlmesh.transport.frame_lane import FrameLane
from rlmesh.transport.frames import ADMITTED, HEAD, KINDS, MESSAGE, NOTICE, FrameEnd
from rlmesh.wire.env.v1 import env_pb2

ADDRESS = TcpAddress("127.0.0.1", 1)
NUMBERS = st.sampled_from([0, 1, 2, 3, 7, 8, 16, 100, 2**16, 2**31, 2**32 - 1])


@contextmanager
def lane_with(said: bytes, *, usual: int = 100) -> Generator[FrameLane]:
    """A client's lane to a server that has said this already, and hung up."""
    ours, theirs = socket.socketpair()
    theirs.sendall(said)
    theirs.shutdown(socket.SHUT_WR)
    end = FrameEnd(ours, limit=2**20)
    end.be_patient(5.0)
    lane = FrameLane(end, name="local", address=ADDRESS, timeout=5.0, usual=usual)
    try:
        yield lane
    finally:
        lane.close()
        theirs.close()


def frame(kind: int, body: bytes, number: int = 0) -> bytes:
    return HEAD.pack(len(body), kind, number, 0, 0, 0, 0) + body


def admission(**said: object) -> bytes:
    return frame(ADMITTED, json.dumps({"limit": 2**20, "memory": 0, "headers": {}} | said).encode())


def configured() -> bytes:
    reply = env_pb2.JoinResponse(configure=env_pb2.ConfigureEnvResponse(), request_id="1")
    return frame(MESSAGE, reply.SerializeToString(), 1)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\xff" * 100,
        frame(NOTICE, b"{}"),
        frame(NOTICE, b'{"position": -1}'),
        frame(NOTICE, b'{"position": "first"}'),
        frame(ADMITTED, b"[" * 50_000),
        frame(ADMITTED, b"{}"),
        admission(limit=-1),
        admission(limit=1.5),
        admission(limit=True),
        admission(limit=10**400),
        admission(memory=2**50),
        admission(memory="all"),
        admission(headers=[]),
        admission(headers={"rlmesh-lease-seconds": "soon"}),
        admission(headers={"rlmesh-lease-seconds": "-1"}),
        admission() + frame(MESSAGE, b"\xff", 1),
        admission() + frame(MESSAGE, b"", 1),
        HEAD.pack(2**32 - 1, ADMITTED, 0, 0, 0, 0, 0),
    ],
)
def test_an_admission_that_is_none_is_an_error_of_ours(said: bytes) -> None:
    with lane_with(said) as lane, pytest.raises(RLMeshException):
        lane.configure(1, "2026.06")


@st.composite
def replies(draw: st.DrawFn) -> bytes:
    """Return a reply whose head says anything, more often than not something nearly right."""
    kind = draw(st.sampled_from(list(KINDS)) | st.integers(0, 2**32 - 1))
    body = draw(st.binary(max_size=300))
    size = draw(st.just(len(body)) | NUMBERS)
    number = draw(st.sampled_from([2, 2, 2, 0, 1, 2**63]))
    tail, lanes, leaves, flags = draw(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS))
    if draw(st.booleans()):
        tail, lanes = 0, 1
    return HEAD.pack(size, kind, number, tail, lanes, leaves, flags) + body


@settings(max_examples=200, deadline=None)
@given(replies(), st.sampled_from([100, 20_000]))
def test_any_reply_to_a_step_is_read_or_an_error_of_ours(reply: bytes, usual: int) -> None:
    with lane_with(admission() + configured() + reply, usual=usual) as lane:
        lane.configure(1, "2026.06")
        try:
            lane.step(2, [b"\0" * 8], 1, 0, (), ())
        except Error as error:
            assert isinstance(error, RLMeshException)  # noqa: PT017 - some replies are well formed


@settings(max_examples=200, deadline=None)
@given(replies())
def test_any_reply_to_a_reset_is_read_or_an_error_of_ours(reply: bytes) -> None:
    with lane_with(admission() + configured() + reply) as lane:
        lane.configure(1, "2026.06")
        try:
            lane.reset(
                2, seeds=(), options=None, tensors=False, timeout_ms=0, lanes=(), episode_ids=()
            )
        except Error as error:
            assert isinstance(error, RLMeshException)  # noqa: PT017 - some replies are well formed


def test_memory_is_not_taken_from_over_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    with lane_with(admission(memory=4096)) as lane:
        monkeypatch.setattr(lane._end, "is_local", False)  # pyright: ignore[reportPrivateUsage] # no network here
        with pytest.raises(ProtocolException, match="memory over a network"):
            lane.configure(1, "2026.06")

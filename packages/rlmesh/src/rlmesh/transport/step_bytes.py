"""The two messages of a step, written and read by hand.

They are the hot path: the general message classes would copy an observation three times and cost
more than everything else that is done for a step. What is rare in them is left to those classes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from google.protobuf.message import DecodeError
from rlcore import ProtocolException

from rlmesh.codec.metadata import decode_meta
from rlmesh.protocol.messages import Buffer, Leaves, Request, StepAnswer, StepReply
from rlmesh.wire.env.v1 import env_pb2
from rlmesh.wire.spaces.v1 import spaces_pb2

# A message field's number and wire type in one byte each.
STEP: Final = b"\x12"  # JoinRequest.step and JoinResponse.step
REQUEST_ID: Final = b"\x2a"
VALUE: Final = b"\x0a"  # StepRequest.action and StepResponse.observation
LEAF: Final = b"\x0a"
REWARDS, TERMINATED, TRUNCATED = b"\x12", b"\x1a", b"\x22"
INFOS, COMPLETED, LANES = b"\x2a", b"\x32", b"\x3a"
TOTAL_NS, DECODE_NS, USER_NS, ENCODE_NS = b"\x30", b"\x58", b"\x60", b"\x68"
NO_INFOS: Final = b"\x2a\x00"

_STEP, _REQUEST_ID, _VALUE, _LEAF, _REWARDS, _TERMINATED, _TRUNCATED = (
    tag[0] for tag in (STEP, REQUEST_ID, VALUE, LEAF, REWARDS, TERMINATED, TRUNCATED)
)
_TIMES: Final = tuple(tag[0] for tag in (TOTAL_NS, DECODE_NS, USER_NS, ENCODE_NS))
_ONE_BYTE: Final = tuple(bytes((n,)) for n in range(0x80))
# What follows a single lane's observation: a reward, and the flags.
_ONE_LANE: Final = struct.Struct("<2sd2sB2sB")
_ONE_REWARD, _ONE_TERMINATED, _ONE_TRUNCATED = b"\x12\x08", b"\x1a\x01", b"\x22\x01"
_MASKS: Final[tuple[bytes, bytes]] = (b"\0", b"\1")
# Copied out of the message where that is cheaper than a view of it.
_SMALL: Final = 512
_LONGEST_VARINT: Final = 10


def varint(number: int) -> bytes:
    """Return a non-negative number as protobuf writes it."""
    if number < 0x80:
        return _ONE_BYTE[number]
    if number < 0x4000:
        return bytes((number & 0x7F | 0x80, number >> 7))
    if number < 0x200000:
        return bytes((number & 0x7F | 0x80, number >> 7 & 0x7F | 0x80, number >> 14))
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)


@lru_cache(maxsize=64)
def step_tail(timeout_ms: int, lanes: tuple[int, ...], episode_ids: tuple[str, ...]) -> bytes:
    """Return what of a step request stays the same for an episode."""
    return env_pb2.StepRequest(
        timeout_ms=timeout_ms, env_indices=lanes, episode_ids=episode_ids
    ).SerializeToString()


def write_step(request_id: str, leaves: Leaves, tail: bytes) -> bytes:
    """Return a step request; `tail` comes from `step_tail`."""
    parts, size = _value(leaves)
    name = request_id.encode()
    return b"".join(
        (STEP, varint(size + len(tail)), *parts, tail, REQUEST_ID, varint(len(name)), name)
    )


def write_step_answer(
    request_id: str, answer: StepAnswer, infos: bytes | None, completed: Sequence[bytes]
) -> bytes:
    """Return the response to a step; infos and episodes are given as messages' bytes."""
    parts, size = _value(answer.leaves)
    rewards = answer.rewards
    if len(rewards) == 1:
        marks = _ONE_LANE.pack(
            _ONE_REWARD,
            rewards[0],
            _ONE_TERMINATED,
            answer.terminated[0],
            _ONE_TRUNCATED,
            answer.truncated[0],
        )
    else:
        lanes = len(rewards)
        count = varint(lanes)
        packed = struct.pack(f"<{lanes}d", *rewards)
        marks = b"".join(
            (
                *(REWARDS, varint(len(packed)), packed),
                *(TERMINATED, count, answer.terminated),
                *(TRUNCATED, count, answer.truncated),
            )
        )
    rest = marks + write_step_rest(infos, completed)
    if answer.lanes:
        numbers = b"".join(map(varint, answer.lanes))
        rest += LANES + varint(len(numbers)) + numbers
    name, timing = request_id.encode(), answer.timing
    end = REQUEST_ID + varint(len(name)) + name + TOTAL_NS + varint(timing.total)
    if timing.user is not None:
        end += USER_NS + varint(timing.user)
    return b"".join((STEP, varint(size + len(rest)), *parts, rest, end))


def write_step_rest(infos: bytes | None, completed: Sequence[bytes]) -> bytes:
    """Return what a step's answer has of infos and episodes, given as messages' bytes."""
    rest = b""
    if infos is not None:
        rest = INFOS + varint(len(infos)) + infos if infos else NO_INFOS
    for episode in completed:
        rest += COMPLETED + varint(len(episode)) + episode
    return rest


def read_step_rest(rest: bytes) -> tuple[dict[str, object], tuple[str, ...]]:
    """Return the info and the ids of the episodes that `write_step_rest` wrote.

    Raises:
        ProtocolException: they cannot be read.
    """
    try:
        more = env_pb2.StepResponse.FromString(rest)
    except DecodeError as error:
        raise ProtocolException(f"the infos of a step cannot be read: {error}") from error
    info = decode_meta(more.infos) if more.HasField("infos") else {}
    return info, tuple([episode.episode_id for episode in more.completed_episodes])


def read_reset_rest(rest: bytes) -> dict[str, object]:
    """Return the info of a reset from the bytes of its message.

    Raises:
        ProtocolException: it cannot be read.
    """
    try:
        return decode_meta(spaces_pb2.MetaMap.FromString(rest)) if rest else {}
    except DecodeError as error:
        raise ProtocolException(f"the infos of a reset cannot be read: {error}") from error


def read_step_tail(tail: bytes) -> tuple[tuple[int, ...], int, tuple[str, ...]]:
    """Return the lanes, the timeout in milliseconds and the episode ids from `step_tail`.

    Raises:
        ProtocolException: they cannot be read.
    """
    try:
        told = env_pb2.StepRequest.FromString(tail)
    except DecodeError as error:
        raise ProtocolException(f"the lanes of a step cannot be read: {error}") from error
    return tuple(told.env_indices), told.timeout_ms, tuple(told.episode_ids)


class StepReader:
    """Reads the step requests of one session; it remembers what repeats from step to step."""

    def __init__(self) -> None:
        self._tail = b""
        self._known = env_pb2.StepRequest()

    def read(self, data: bytes) -> Request | None:
        """Return a step, or None for a message that is no step or is written in another order."""
        try:
            if data[0] != _STEP:
                return None
            size, at = _take_varint(data, 1)
            end = at + size
            if data[at] != _VALUE:
                return None
            leaves, at = _take_leaves(data, at + 1)
            tail = data[at:end]
            if at > end or data[end] != _REQUEST_ID or data[end + 1] != len(data) - end - 2:
                return None
            request_id = data[end + 2 :].decode()
            if tail != self._tail:
                known = env_pb2.StepRequest.FromString(tail)
                if known.HasField("action"):
                    return None
                self._known, self._tail = known, tail
        except (IndexError, UnicodeDecodeError, DecodeError):
            return None  # the general reader says what is wrong with it
        known = self._known
        return Request(
            "step", request_id, known.env_indices, known.timeout_ms, leaves, known.episode_ids
        )


def read_step_answer(data: bytes, request_id: str, lanes: int) -> StepReply | None:
    """Return the answer to a step, or None for what is none or is written in another order.

    Raises:
        ProtocolException: its info cannot be read.
    """
    name = request_id.encode()
    try:
        if data[0] != _STEP:
            return None
        size, at = _take_varint(data, 1)
        end = at + size
        named = REQUEST_ID + varint(len(name)) + name
        if data[at] != _VALUE or not data.startswith(named, end):
            return None
        served_ns, user_ns = _take_times(data, end + len(named))
        leaves, at = _take_leaves(data, at + 1)
        if lanes == 1:
            marks = _ONE_LANE.unpack_from(data, at)
            if marks[0] != _ONE_REWARD or marks[2] != _ONE_TERMINATED or marks[4] != _ONE_TRUNCATED:
                return None
            rewards: Sequence[float] = (marks[1],)
            terminated = _MASKS[1 if marks[3] else 0]
            truncated = _MASKS[1 if marks[5] else 0]
            at += _ONE_LANE.size
        else:
            packed, at = _take_field(data, at, _REWARDS)
            rewards = struct.unpack(f"<{lanes}d", packed)
            terminated, at = _take_field(data, at, _TERMINATED)
            truncated, at = _take_field(data, at, _TRUNCATED)
            if len(terminated) != lanes or len(truncated) != lanes:
                return None
        rest = data[at:end]
        if at > end:
            return None
        if rest == NO_INFOS or not rest:
            return StepReply(leaves, rewards, terminated, truncated, {}, (), served_ns, user_ns)
        more = env_pb2.StepResponse.FromString(rest)
        if more.HasField("observation") or more.rewards or more.terminated_mask:
            return None
    except (IndexError, struct.error, DecodeError):
        return None
    info = decode_meta(more.infos) if more.HasField("infos") else {}
    completed = tuple([episode.episode_id for episode in more.completed_episodes])
    return StepReply(leaves, rewards, terminated, truncated, info, completed, served_ns, user_ns)


def _value(leaves: Leaves) -> tuple[list[Buffer], int]:
    """Return a value's field in parts, ready to be joined, and the bytes they have."""
    parts: list[Buffer] = [VALUE, b""]
    size = 0
    for leaf in leaves:
        length = len(leaf)
        head = LEAF + varint(length)
        size += len(head) + length
        parts += (head, leaf)
    parts[1] = varint(size)
    return parts, size + 1 + len(parts[1])


def _take_leaves(data: bytes, at: int) -> tuple[list[Buffer], int]:
    """Return a value's leaves and where it ends.

    Raises:
        IndexError: it is cut off, or no value.
    """
    size, at = _take_varint(data, at)
    end = at + size
    if end > len(data):
        raise IndexError(end)
    leaves: list[Buffer] = []
    while at < end:
        if data[at] != _LEAF:
            raise IndexError(at)
        length = data[at + 1]
        at += 2
        if length > 0x7F:
            length, at = _take_varint(data, at - 1)
        stop = at + length
        leaves.append(data[at:stop] if length < _SMALL else memoryview(data)[at:stop])
        at = stop
    if at != end:
        raise IndexError(at)
    return leaves, end


def _take_field(data: bytes, at: int, tag: int) -> tuple[bytes, int]:
    if data[at] != tag:
        raise IndexError(at)
    size, at = _take_varint(data, at + 1)
    if at + size > len(data):
        raise IndexError(at)
    return data[at : at + size], at + size


def _take_times(data: bytes, at: int) -> tuple[int, int]:
    """Return how long a server had a step, and its environment, in ns; 0 where it does not tell."""
    times = dict.fromkeys(_TIMES, 0)
    while at < len(data) and (tag := data[at]) in times:
        times[tag], at = _take_varint(data, at + 1)
    return times[_TIMES[0]], times[_TIMES[2]]


def _take_varint(data: bytes, at: int) -> tuple[int, int]:
    digit = data[at]
    if digit < 0x80:
        return digit, at + 1
    number, shift = digit & 0x7F, 7
    for place in range(at + 1, at + _LONGEST_VARINT):
        digit = data[place]
        number |= (digit & 0x7F) << shift
        if digit < 0x80:
            return number, place + 1
        shift += 7
    raise IndexError(at)

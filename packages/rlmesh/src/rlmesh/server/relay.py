"""Messages between a server and the processes of its environments, over a socket pair."""

from __future__ import annotations

import io
import pickle
import socket
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from rlmesh.convert import info_from_bytes, info_to_bytes
from rlmesh.protocol.messages import (
    Answer,
    Buffer,
    CompletedEpisode,
    Request,
    ResetAnswer,
    StepAnswer,
)

Note = Any  # whatever the two sides agree on; see `env_process`

HEAD: Final = struct.Struct("<QI")
MOST_PARTS: Final = 512  # a system call takes so many buffers at least
# What an environment's process may send, beside plain values.
_OURS: Final = {
    "rlmesh.protocol.messages": {
        "Closed",
        "CompletedEpisode",
        "RenderAnswer",
        "ResetAnswer",
        "StepAnswer",
        "Timing",
    },
    "rlmesh.protocol.episodes": {"Episode"},
    "rlmesh.protocol.faults": {"Fault", "FaultCode"},
    "rlmesh.server.relay": {"Told"},
}


class Ended(Exception):
    """The other side has gone."""


@dataclass(frozen=True, slots=True)
class Told:
    """An answer on its way: its infos are bytes, and its leaves travel beside it.

    Attributes:
        answer: the answer without them.
        infos: of the answer, then of each episode that it completes; None where there is none.
        odd: the keys of infos whose values had to be simplified.
    """

    answer: Answer
    infos: tuple[bytes | None, ...] = ()
    odd: tuple[str, ...] = ()


def send(end: socket.socket, note: Note, parts: Sequence[Buffer] = ()) -> None:
    """Send a note, and buffers beside it.

    Raises:
        Ended: the other side has gone.
    """
    data = pickle.dumps(note, protocol=5)
    sizes = struct.pack(f"<{len(parts)}Q", *[len(part) for part in parts])
    waiting = [memoryview(HEAD.pack(len(data), len(parts)) + sizes + data)]
    waiting += [memoryview(part) for part in parts if len(part)]
    try:
        while waiting:
            sent = end.sendmsg(waiting[:MOST_PARTS])
            while waiting and sent >= len(waiting[0]):
                sent -= len(waiting.pop(0))
            if sent:
                waiting[0] = waiting[0][sent:]
    except OSError as error:
        raise Ended(str(error)) from error


def receive(
    end: socket.socket, load: Callable[[bytes], Note], ready: Callable[[], None] | None = None
) -> tuple[Note, list[memoryview]]:
    """Return the next note and the buffers beside it, which are writable and the caller's.

    Args:
        end: where from.
        load: reads the note.
        ready: waits until there is something to read; it may raise.

    Raises:
        Ended: the other side has gone.
    """

    def exactly(size: int) -> memoryview:
        room = memoryview(bytearray(size))
        at = 0
        while at < size:
            if ready is not None:
                ready()
            try:
                got = end.recv_into(room[at:])
            except OSError as error:
                raise Ended(str(error)) from error
            if not got:
                raise Ended("it closed the connection")
            at += got
        return room

    length, count = HEAD.unpack(exactly(HEAD.size))
    sizes = struct.unpack(f"<{count}Q", exactly(8 * count))
    note = load(bytes(exactly(length)))
    return note, [exactly(size) for size in sizes]


def load_trusted(data: bytes) -> Note:
    """Return a note of the server."""
    return pickle.loads(data)  # it comes from the process that started this one


def load_ours(data: bytes) -> Note:
    """Return a note of an environment's process, which can hold nothing but our own messages.

    Raises:
        pickle.UnpicklingError: it holds something else.
    """
    return _Ours(io.BytesIO(data)).load()


def apart(request: Request) -> tuple[Request, Sequence[Buffer]]:
    """Return a request without its action, and that."""
    plain = replace(
        request,
        action=None if request.action is None else [],
        # They may be views of a message of protobuf's.
        lanes=tuple(request.lanes),
        episode_ids=tuple(request.episode_ids),
        seeds=tuple(request.seeds),
    )
    return plain, request.action or ()


def pack(answer: Answer, *, tensors: bool) -> tuple[Told, Sequence[Buffer]]:
    """Return an answer as it travels, and its leaves."""
    if not isinstance(answer, StepAnswer | ResetAnswer):
        return Told(answer), ()
    completed = answer.completed if isinstance(answer, StepAnswer) else ()
    odd: list[str] = []
    infos: list[bytes | None] = []
    for info in (answer.info, *(one.final_info for one in completed)):
        if not info:
            infos.append(None if info is None else b"")
            continue
        data, simplified = info_to_bytes(info, tensors=tensors)
        infos.append(data)
        odd += simplified
    if isinstance(answer, StepAnswer):
        episodes = [CompletedEpisode(one.episode) for one in completed]
        bare = replace(answer, leaves=(), info=None, completed=episodes, lanes=tuple(answer.lanes))
        return Told(bare, tuple(infos), tuple(odd)), answer.leaves
    return Told(replace(answer, leaves=(), info=None), tuple(infos), tuple(odd)), answer.leaves


def unpack(told: Told, leaves: Sequence[Buffer]) -> Answer:
    """Return the answer that `pack` packed."""
    answer = told.answer
    if not isinstance(answer, StepAnswer | ResetAnswer):
        return answer
    infos = [None if data is None else info_from_bytes(data) for data in told.infos]
    answer.leaves, answer.info = leaves, infos[0]
    if isinstance(answer, StepAnswer):
        answer.completed = [
            CompletedEpisode(one.episode, info)
            for one, info in zip(answer.completed, infos[1:], strict=True)
        ]
    return answer


class _Ours(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        if name in _OURS.get(module, ()):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"an environment's process sent a {module}.{name}")

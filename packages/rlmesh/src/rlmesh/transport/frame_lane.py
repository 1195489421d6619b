"""A session over frames: the client's side of a local or a second TCP socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NoReturn, cast

import numpy as np
from rlcore import Error, ProtocolException

from rlmesh.protocol.messages import Buffer, Leaves, Rendering, ResetReply, StepReply
from rlmesh.protocol.opening import lease_told
from rlmesh.transport import client_wire
from rlmesh.transport.addresses import Address
from rlmesh.transport.eager import eager
from rlmesh.transport.failures import refusal_of, too_late
from rlmesh.transport.frame_wire import Layout, Layouts, marks_of, pieces, views
from rlmesh.transport.frames import (
    ADMITTED,
    HEAD,
    HEAD_SIZE,
    IN_MEMORY,
    MESSAGE,
    NOTE_LIMIT,
    NOTICE,
    REFUSED,
    RESET_ANSWER,
    STEP,
    STEP_ANSWER,
    Broken,
    Frame,
    FrameEnd,
    Garbled,
    Overdue,
    TooLarge,
    read_headers,
)
from rlmesh.transport.shared_memory import SharedMemory
from rlmesh.transport.step_bytes import read_reset_rest, read_step_rest, step_tail

# Up to here the codec copies what it reads, so that one buffer serves for all answers.
COPIED: Final = 8192
PARTING_SECONDS = 0.2
GLANCE_SECONDS = 1.0
ONE = marks_of(1)
ONE_SIZE = ONE.size


class FrameLane:
    """Sends a request and waits for its answer, one at a time; see `Lane`.

    A lane that failed or timed out is over, so that the late answer of an abandoned request is
    never taken for the answer to the next one.
    """

    def __init__(
        self,
        end: FrameEnd,
        *,
        name: str,
        address: Address,
        timeout: float | None,
        usual: int,
    ) -> None:
        self.name = name
        self.lease_seconds = 0.0
        self._hear: Callable[[int], None] | None = None
        self.is_open = True
        self.owns_memory = usual > COPIED
        self._end = end
        self._address = address
        self._timeout = timeout
        self._limit = end.limit
        self._sent, self._got = Layouts(), Layouts()
        self._told: object = None
        self._receive_into = eager(end.socket)
        self._server_limit = end.limit
        self._memory: SharedMemory | None = None
        self._small = memoryview(bytearray(COPIED))
        # The form of the last step's answer: the next one that is like it is read without a look.
        self._room = 0
        self._flags, self._start = 0, ONE_SIZE
        self.be_patient(timeout)

    def hear(self, told: Callable[[int], None] | None) -> None:
        """Set who hears the position in the queue, where the session has to be waited for."""
        self._hear = told

    def configure(self, number: int, edition: str) -> None:
        """Wait for the session, and pin the workflow edition."""
        self._await_admission()
        name = str(number)
        reply = self._exchange(
            number, client_wire.write_configure(name, edition), "opening a session"
        )
        client_wire.read_configured(_message(reply), name)

    def be_patient(self, seconds: float | None) -> None:
        """Set how long each reply may take from now on."""
        self._timeout = seconds
        self._end.be_patient(seconds, glance=GLANCE_SECONDS)

    def resume(self) -> None:
        """Wait until the server has taken the session up again."""
        self._await_admission()

    def reset(
        self,
        number: int,
        *,
        seeds: Sequence[int | None],
        options: Mapping[str, object] | None,
        tensors: bool,
        timeout_ms: int,
        lanes: tuple[int, ...],
        episode_ids: tuple[str, ...],
    ) -> ResetReply:
        """Start episodes."""
        name = str(number)
        request = client_wire.write_reset(
            name,
            seeds=seeds,
            options=options,
            tensors=tensors,
            timeout_ms=timeout_ms,
            lanes=lanes,
            episode_ids=episode_ids,
        )
        reply = self._exchange(number, request, "reset")
        if reply.kind != RESET_ANSWER:
            return client_wire.read_reset(_message(reply), name)
        leaves, rest = self._leaves(reply, HEAD_SIZE)
        return ResetReply(leaves, read_reset_rest(rest))

    def step(
        self,
        number: int,
        leaves: Leaves,
        count: int,
        timeout_ms: int,
        lanes: tuple[int, ...],
        episode_ids: tuple[str, ...],
    ) -> StepReply:
        """Step `count` environments."""
        self.begin_step(number, leaves, count, timeout_ms, lanes, episode_ids)
        return self.end_step(number, count)

    def begin_step(
        self,
        number: int,
        leaves: Leaves,
        count: int,
        timeout_ms: int,
        lanes: tuple[int, ...],
        episode_ids: tuple[str, ...],
    ) -> None:
        """Send a step without waiting for its answer."""
        told = (timeout_ms, lanes, episode_ids)
        tail = b"" if told == self._told else step_tail(timeout_ms, lanes, episode_ids)
        self._told = told
        sizes = tuple(map(len, leaves))
        layout = self._sent.find(sizes) or self._sent.of(leaves)
        size = HEAD_SIZE + layout.span + len(tail)
        if size > self._server_limit:
            raise self._too_large("step", size)
        head = HEAD.pack(size - HEAD_SIZE, STEP, number, len(tail), 0, len(sizes), 0)
        try:
            self._end.send(pieces(head, layout, leaves, tail), size)
        except BaseException as error:
            self._fail(error, "step")

    def end_step(self, number: int, count: int) -> StepReply:
        """Wait for the answer to the step that was begun."""
        room = self._room
        try:
            buffer = fresh(room) if room else self._small
            try:
                got = self._receive_into(buffer)
            except (BlockingIOError, TimeoutError):
                got = self._end.wait(buffer)
            if count == 1 and got > ONE_SIZE:
                length, kind, answered, rest, of, _, flags, reward, *marks = ONE.unpack_from(buffer)
                if (
                    kind == STEP_ANSWER
                    and answered == number
                    and length == got - HEAD_SIZE
                    and not rest
                    and of == 1
                    and flags == self._flags
                ):
                    known = self._got.recall(bytes(buffer[ONE_SIZE : self._start]))
                    if known is not None and got == (
                        self._start if flags else ONE_SIZE + known.span
                    ):
                        found = self._found(known, buffer[:got], self._start, flags)
                        terminated, truncated, served_ns, user_ns = marks
                        return StepReply(
                            found, (reward,), terminated, truncated, {}, (), served_ns, user_ns
                        )
            if got == 0:
                raise Broken("the other side has gone")
            frame = self._end.finish(buffer, got)
        except BaseException as error:
            self._fail(error, "step")
        return self._read_step(frame, number, count)

    def render(self, number: int, lane: int, *, timeout_ms: int) -> Rendering:
        """Return what a lane's environment draws."""
        name = str(number)
        request = client_wire.write_render(name, lane, timeout_ms=timeout_ms)
        return client_wire.read_render(_message(self._exchange(number, request, "render")), name)

    def say_goodbye(self, number: int, reason: str, seconds: float) -> None:
        """End the session in good order."""
        self._end.be_patient(seconds if self._timeout is None else min(seconds, self._timeout))
        name = str(number)
        try:
            reply = self._exchange(number, client_wire.write_close(name, reason), "close")
            client_wire.read_closed(_message(reply), name)
        finally:
            self.close()

    def close(self) -> None:
        """Hang up without a word; an unanswered request is abandoned."""
        if not self.is_open:
            return
        self.is_open = False
        self._end.close()
        if self._memory is not None:
            self._memory.close()

    def _await_admission(self) -> None:
        """Wait until the server has a session for this client; it may have to queue for it."""
        try:
            frame = self._end.receive(limit=NOTE_LIMIT)
            while frame.kind == NOTICE:
                if self._hear is not None:
                    self._hear(_whole(frame.note(), "position"))
                frame = self._end.receive(limit=NOTE_LIMIT)
            if frame.kind == REFUSED:
                raise self._refusal(frame, "opening a session")
            if frame.kind != ADMITTED:
                raise Garbled("no admission")
            note = frame.note()
            self._server_limit = min(self._limit, _whole(note, "limit"))
            self.lease_seconds = lease_told(read_headers(note))
            memory = _whole(note, "memory")
            if memory and not self._end.is_local:
                raise Garbled("an offer of memory over a network")
            if memory:
                self._memory = SharedMemory.received(self._end.socket, memory)
        except BaseException as error:
            self._fail(error, "opening a session")

    def _exchange(self, number: int, request: bytes, operation: str) -> Frame:
        size = HEAD_SIZE + len(request)
        if size > self._server_limit:
            raise self._too_large(operation, size)
        head = HEAD.pack(len(request), MESSAGE, number, 0, 0, 0, 0)
        try:
            self._end.send((head, request), size)
            try:
                got = self._receive_into(self._small)
            except (BlockingIOError, TimeoutError):
                got = self._end.wait(self._small)
            if got == 0:
                raise Broken("the other side has gone")
            frame = self._end.finish(self._small, got)
        except BaseException as error:
            self._fail(error, operation)
        self._check(frame, number, operation)
        return frame

    def _read_step(self, frame: Frame, number: int, count: int) -> StepReply:
        self._check(frame, number, "step")
        if frame.kind != STEP_ANSWER:
            return client_wire.read_step(_message(frame), str(number), count)
        if frame.lanes != count:
            raise ProtocolException(
                f"the step's reply is about {frame.lanes} environment(s), not {count}"
            )
        marks = marks_of(count)
        if len(frame.view) < marks.size:
            raise ProtocolException("the step's reply is cut off")
        found = marks.unpack_from(frame.view)
        leaves, rest = self._leaves(frame, marks.size)
        info, completed = read_step_rest(rest) if rest else ({}, ())
        *rewards, terminated, truncated, served_ns, user_ns = found[7:]
        return StepReply(
            leaves, rewards, terminated, truncated, info, completed, served_ns, user_ns
        )

    def _leaves(self, frame: Frame, at: int) -> tuple[list[Buffer], bytes]:
        """Return the leaves of an answer, whose table begins at `at`, and the bytes after them."""
        view, in_memory = frame.view, frame.flags & IN_MEMORY
        try:
            layout, start = self._got.read(view, at, frame.leaves)
        except Garbled as error:
            raise ProtocolException(f"the reply cannot be read: {error}") from error
        stop = start if in_memory else start + layout.size
        memory = self._memory
        if stop + frame.tail != len(view) or (
            in_memory and (memory is None or layout.size > memory.size)
        ):
            raise ProtocolException("the reply cannot be read: its parts do not fill it")
        if frame.kind == STEP_ANSWER:
            self._start, self._flags = start, in_memory
            # Some more than it was, as infos and text are of many lengths.
            size = len(view) + (frame.tail + 7) // 8 * 4
            self._room = max(self._room, size) if size > COPIED else 0
        return self._found(layout, view, start, in_memory), bytes(view[stop:])

    def _found(self, layout: Layout, view: memoryview, start: int, in_memory: int) -> list[Buffer]:
        """Return the leaves of an answer that begin at `start`, or are in the shared memory."""
        if in_memory:
            return views(self._copied(layout), 0, layout)
        if view.obj is not self._small.obj:
            return views(view, start, layout)
        # The next answer overwrites the small buffer.
        if self.owns_memory:
            return views(memoryview(bytearray(view)), start, layout)
        content = bytes(view)
        return [content[start + begin : start + end] for begin, end in layout.slices]

    def _copied(self, layout: Layout) -> memoryview:
        memory = self._memory
        if memory is None or layout.size > memory.size:
            raise Garbled("an answer in memory that is not shared")
        copied = fresh(layout.size)
        copied[:] = memory.view[: layout.size]
        return copied

    def _check(self, frame: Frame, number: int, operation: str) -> None:
        if frame.kind == REFUSED:
            error = self._refusal(frame, operation)
            self.close()
            raise error
        if frame.number != number:
            self.close()
            raise ProtocolException(
                f"the reply is to request {frame.number}, the request was {number}"
            )

    def _fail(self, error: BaseException, operation: str) -> NoReturn:
        if isinstance(error, Error):
            self.close()
            raise error
        if isinstance(error, Overdue | BlockingIOError | TimeoutError):
            self.close()
            raise too_late(operation, self._address, self._timeout) from error
        if isinstance(error, Broken | OSError):
            said = self._last_words(operation)
            self.close()
            reason = str(error) if isinstance(error, Broken) else error.strerror or str(error)
            raise (said or self._refused("UNAVAILABLE", reason, operation)) from error
        self.close()
        if isinstance(error, TooLarge):
            raise ProtocolException(
                f"{operation} at {self._address}: a message is too large: it has {error.size} "
                f"bytes, the limit is {self._limit}",
                code="message_too_large",
            ) from error
        if isinstance(error, Garbled):
            raise ProtocolException(
                f"{operation} at {self._address} was answered by {error}"
            ) from error
        raise error

    def _last_words(self, operation: str) -> Error | None:
        """Return why the server ended the connection, if it said so."""
        try:
            self._end.be_patient(PARTING_SECONDS)
            frame = self._end.receive(limit=NOTE_LIMIT)
            return self._refusal(frame, operation) if frame.kind == REFUSED else None
        except (OSError, Broken, Overdue, Garbled, TooLarge):
            return None

    def _refusal(self, frame: Frame, operation: str) -> Error:
        try:
            note = frame.note()
        except Garbled as error:
            return ProtocolException(f"{operation} at {self._address} was answered by {error}")
        return self._refused(str(note.get("code")), str(note.get("details")), operation)

    def _refused(self, code: str, details: str, operation: str) -> Error:
        return refusal_of(
            code,
            details,
            operation=operation,
            address=self._address,
            seconds=self._timeout,
            joined=True,
        )

    def _too_large(self, operation: str, size: int) -> ProtocolException:
        limit = self._server_limit
        text = (
            f"{operation}: the message has {size} bytes, the limit is {limit}"
            if limit == self._limit
            else f"{operation} at {self._address}: a message is too large: it has {size} bytes, "
            f"the server takes {limit}"
        )
        return ProtocolException(text, code="message_too_large")


def fresh(size: int) -> memoryview:
    """Return memory that nobody has used, with whatever is in it."""
    return memoryview(cast("bytes", np.empty(size, np.uint8)))


def _message(frame: Frame) -> bytes:
    if frame.kind != MESSAGE:
        raise ProtocolException(f"the reply is a frame of kind {frame.kind:#x}")
    return bytes(frame.body)


def _whole(note: Mapping[str, object], name: str) -> int:
    number = note.get(name, 0)
    if not isinstance(number, int) or number < 0:
        raise Garbled(f"an admission whose {name} is {number!r}")
    return number

"""A session's messages over frames, as the server carries them."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

from rlcore import ProtocolException
from rlcore.log import logger

from rlmesh.protocol.messages import Answer, Buffer, Request, ResetAnswer, StepAnswer
from rlmesh.protocol.opening import SHUTTING_DOWN
from rlmesh.transport.carrier import Session
from rlmesh.transport.client_process import ClientProcess
from rlmesh.transport.eager import eager
from rlmesh.transport.failures import brief
from rlmesh.transport.frame_wire import Layouts, marks_of, pieces, table_size, views
from rlmesh.transport.frames import (
    HEAD,
    HEAD_SIZE,
    IN_MEMORY,
    MESSAGE,
    PULSE,
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
)
from rlmesh.transport.server_wire import read_request, reset_infos, step_infos, write_answer
from rlmesh.transport.shared_memory import SharedMemory
from rlmesh.transport.step_bytes import read_step_tail, write_step_rest
from rlmesh.transport.traffic import Traffic

log = logger("rlmesh", "server")
# Requests up to this size are read where the last one was.
ROOM = 65_536
# Leaves that are larger together go through memory that both sides share, where there is some.
IN_MEMORY_FROM = 65_536
# How long the rest of a request may take, and the client to take up an answer.
FRAME_SECONDS = 30.0
# How long an answer that is on its way may take when its connection is to end.
SENDING_SECONDS = 0.5
ONE = marks_of(1)
PARTING = {"code": "UNAVAILABLE", "details": SHUTTING_DOWN}


class FrameCarrier:
    """Carries a session over one connection, in the session's thread.

    Args:
        end: the connection.
        memory: what the client reads large answers from; None: they are sent.
        stopping: whether the server is.
        client: the process at the other end; None: unknown.
        on_release: called when the connection is closed.
        silence_seconds: after how long in silence the client counts as gone, unless its process is
            known to be running; None: it gives no sign of life.
    """

    def __init__(
        self,
        end: FrameEnd,
        *,
        memory: SharedMemory | None,
        stopping: Callable[[], bool],
        client: ClientProcess | None,
        on_release: Callable[[FrameCarrier], None],
        silence_seconds: float | None = None,
    ) -> None:
        self.kind = "tcp" if not end.is_local else "unix" if memory is None else "shared-memory"
        self.traffic = Traffic()
        self._end = end
        self._memory = memory
        self._stopping = stopping
        self._client = client
        self._on_release = on_release
        self._silence_seconds = silence_seconds
        self._sending = False
        self._requests, self._answers = Layouts(), Layouts()
        self._lanes: tuple[int, ...] = ()
        self._timeout_ms = 0
        self._episode_ids: tuple[str, ...] = ()
        self._view = memoryview(bytearray(ROOM))
        self._number = 0

    def serve(self, session: Session, /) -> None:
        """Answer requests until the connection breaks or the session is over."""
        try:
            self._end.be_patient(min(FRAME_SECONDS, self._silence_seconds or FRAME_SECONDS))
            self._serve(session)
        except Overdue:
            pass  # the client may come back over another connection
        except (Broken, OSError):
            if self._client is not None and self._client.has_ended():
                session.end("its client's process has ended")
        except TooLarge as error:
            self._refuse(
                session,
                "RESOURCE_EXHAUSTED",
                f"a message is larger than max ({error.size} vs. {self._end.limit})",
            )
        except (Garbled, ProtocolException) as error:
            self._refuse(session, "INVALID_ARGUMENT", brief(str(error)))
        except Exception:
            log.exception("a connection of session %s failed", session.id)
            session.end("its carrier failed")
        finally:
            self.release()

    def cut(self) -> None:
        """Break the connection, once an answer that is being sent has been taken up."""
        with contextlib.suppress(OSError):
            self._end.socket.shutdown(socket.SHUT_RD)
        if self._sending:
            # To somebody who takes it up slowly, or never.
            timer = threading.Timer(SENDING_SECONDS, self._stop_sending)
            timer.daemon = True
            timer.start()

    def _stop_sending(self) -> None:
        if self._sending:
            with contextlib.suppress(OSError):
                self._end.socket.shutdown(socket.SHUT_RDWR)

    def break_off(self) -> None:
        """Break the connection at once: the session hangs in its environment."""
        with contextlib.suppress(OSError, Overdue):
            if not self._sending:
                self._end.say(REFUSED, PARTING)
            self._end.socket.shutdown(socket.SHUT_RDWR)

    def _serve(self, session: Session) -> None:
        end, answer_of, traffic = self._end, session.answer, self.traffic
        receive_into = eager(end.socket)
        while True:
            try:
                got = 0 if end.has_more else receive_into(self._view)
            except (BlockingIOError, TimeoutError):
                self._bear_silence()
                continue
            if got == 0 and not end.has_more:
                if self._stopping():
                    end.say(REFUSED, PARTING)
                    return
                raise Broken("the client has gone")
            request = self._repeated(got)
            if request is None:
                frame = end.finish(self._view, got)
                traffic.received += len(frame.view)
                if frame.kind == PULSE:
                    continue
                number = frame.number
                request = self._step(frame) if frame.kind == STEP else _rare_request(frame)
            else:
                traffic.received += got
                number = self._number
            answer, over = answer_of(request)
            if self._reply(session, request, number, answer, over):
                return
            if self._stopping():
                session.end(SHUTTING_DOWN)
                end.say(REFUSED, PARTING)
                return

    def _reply(
        self, session: Session, request: Request, number: int, answer: Answer, over: bool
    ) -> bool:
        """Send an answer, or a fault where it cannot be written; return whether all is over."""
        try:
            if type(answer) is StepAnswer:
                return self._answer_step(session, number, answer, over)
            return self._answer(session, request, number, answer, over)
        except (Broken, OSError, Overdue):
            raise
        except Exception as error:
            # Where part of it is on its way, nothing can be said any more.
            if self._sending:
                raise
            log.exception("the answer to a %s cannot be written", request.kind)
            return self._instead(number, session.unwritable(request.kind, error))

    def _bear_silence(self) -> None:
        # Where the client gives no sign of life, it may just have nothing to ask.
        if self._silence_seconds is None:
            return
        if self._client is None or not self._client.is_running():
            raise Broken("the client has fallen silent")

    def _repeated(self, got: int) -> Request | None:
        """Return a step that is there whole and of a form that was met before; else None."""
        if got < HEAD_SIZE or self._end.has_more:
            return None
        view = self._view
        size, kind, number, tail, _, leaves, _ = HEAD.unpack_from(view)
        if kind != STEP or tail or size != got - HEAD_SIZE:
            return None
        start = HEAD_SIZE + table_size(leaves)
        layout = self._requests.recall(bytes(view[HEAD_SIZE:start])) if start <= got else None
        if layout is None or layout.span != size or len(layout.slices) != leaves:
            return None
        if layout.kept is None:
            layout.kept = views(view, start, layout)
        self._number = number
        return Request(
            "step", str(number), self._lanes, self._timeout_ms, layout.kept, self._episode_ids
        )

    def _step(self, frame: Frame) -> Request:
        view = frame.view
        layout, start = self._requests.read(view, HEAD_SIZE, frame.leaves)
        stop = start + layout.size
        if stop + frame.tail != len(view):
            raise Garbled("a step whose parts do not fill it")
        if frame.tail:
            told = read_step_tail(bytes(view[stop:]))
            self._lanes, self._timeout_ms, self._episode_ids = told
        return Request(
            "step",
            str(frame.number),
            self._lanes,
            self._timeout_ms,
            views(view, start, layout),
            self._episode_ids,
        )

    def _answer_step(self, session: Session, number: int, answer: StepAnswer, over: bool) -> bool:
        tail = b""
        if answer.info or answer.completed:
            infos, completed, odd = step_infos(answer)
            tail = write_step_rest(infos, completed)
            if odd:
                session.note_simplified(odd)
        leaves, rewards = answer.leaves, answer.rewards
        sizes = tuple(map(len, leaves))
        layout = self._answers.find(sizes) or self._answers.of(leaves)
        lanes = len(rewards)
        marks = ONE if lanes == 1 else marks_of(lanes)
        memory = self._memory
        flags, body = 0, layout.span
        if memory is not None and IN_MEMORY_FROM <= layout.size <= memory.size:
            memory.write(layout.slices, leaves)
            self.traffic.shared += layout.size
            flags, body = IN_MEMORY, len(layout.table)
        size = marks.size + body + len(tail)
        if marks.size + layout.span + len(tail) > self._end.limit:
            return self._too_large(session, "step", number, size)
        head = marks.pack(
            size - HEAD_SIZE,
            STEP_ANSWER,
            number,
            len(tail),
            lanes,
            len(sizes),
            flags,
            *rewards,
            answer.terminated,
            answer.truncated,
            answer.timing.total,
            answer.timing.user or 0,
        )
        self.traffic.sent += size
        self._sending = True
        if flags:
            self._end.send((head, layout.table, tail), size)
        else:
            self._end.send(pieces(head, layout, leaves, tail), size)
        self._sending = False
        return over

    def _answer(
        self, session: Session, request: Request, number: int, answer: Answer, over: bool
    ) -> bool:
        parts: list[Buffer]
        if isinstance(answer, ResetAnswer):
            tail, odd = reset_infos(answer)
            layout = self._answers.of(answer.leaves)
            size = HEAD_SIZE + layout.span + len(tail)
            head = HEAD.pack(
                size - HEAD_SIZE, RESET_ANSWER, number, len(tail), 0, len(answer.leaves), 0
            )
            parts = list(pieces(head, layout, answer.leaves, tail))
        else:
            data, odd = write_answer(request.request_id, answer)
            size = HEAD_SIZE + len(data)
            parts = [HEAD.pack(len(data), MESSAGE, number, 0, 0, 0, 0), data]
        if odd:
            session.note_simplified(odd)
        if size > self._end.limit:
            return self._too_large(session, request.kind, number, size)
        self.traffic.sent += size
        self._sending = True
        self._end.send(parts, size)
        self._sending = False
        return over

    def _too_large(self, session: Session, operation: str, number: int, size: int) -> bool:
        return self._instead(number, session.too_large(operation, size, self._end.limit))

    def _instead(self, number: int, answer: Answer) -> bool:
        data, _ = write_answer(str(number), answer)
        head = HEAD.pack(len(data), MESSAGE, number, 0, 0, 0, 0)
        self.traffic.sent += HEAD_SIZE + len(data)
        self._end.send((head, data), HEAD_SIZE + len(data))
        return True

    def _refuse(self, session: Session, code: str, details: str) -> None:
        session.end("its client broke the protocol")
        with contextlib.suppress(OSError, Overdue):
            self._end.say(REFUSED, {"code": code, "details": details})

    def release(self) -> None:
        """Close the connection and what belongs to it."""
        self._end.close()
        if self._memory is not None:
            self._memory.close()
        if self._client is not None:
            self._client.close()
            self._client = None
        self._on_release(self)


def _rare_request(frame: Frame) -> Request:
    if frame.kind != MESSAGE:
        raise Garbled(f"a frame of kind {frame.kind:#x} instead of a request")
    return read_request(bytes(frame.body))

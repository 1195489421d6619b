"""Frames on a socket: a head that says what follows and how much, then the body; one at a time."""

from __future__ import annotations

import contextlib
import json
import math
import socket
import ssl
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Final, cast

from rlmesh.protocol.messages import Buffer

# size of the body, kind, number of the request, bytes of the tail, lanes, leaves, flags
HEAD: Final = struct.Struct("<IIQIIII")
HEAD_SIZE: Final = HEAD.size

# What a frame is. The numbers are far from anything that another protocol begins with.
OPEN, WELCOME, ADMITTED, REFUSED, NOTICE = (0x524C4D00 + n for n in range(1, 6))
MESSAGE, STEP, STEP_ANSWER, RESET_ANSWER = (0x524C4D00 + n for n in range(6, 10))
# Nothing but that a client is still there.
PULSE: Final = 0x524C4D0A
KINDS: Final = range(OPEN, PULSE + 1)

# Flag: the leaves are in the memory that both sides share.
IN_MEMORY: Final = 1
# Bytes up to which one copy costs less than handing the system several pieces.
JOINED: Final = 16_384
# Pieces that one call of the system takes.
MOST_PIECES: Final = 512
NOTE_LIMIT: Final = 65_536
# Seconds that any system can wait: 68 years.
LONGEST_WAIT: Final = 2.0**31 - 1


class Broken(Exception):
    """The connection is lost."""


class Overdue(Exception):
    """The other side takes too long."""


class Garbled(Exception):
    """What came is no frame, or none that may come here."""


class TooLarge(Exception):
    """A frame is larger than messages may be; `size` says by what."""

    def __init__(self, size: int) -> None:
        super().__init__(f"a frame of {size} bytes")
        self.size = size


class Frame:
    """A frame that was received whole; `view` is all of it, the head included."""

    __slots__ = ("flags", "kind", "lanes", "leaves", "number", "tail", "view")

    def __init__(self, view: memoryview) -> None:
        self.view = view
        _, self.kind, self.number, self.tail, self.lanes, self.leaves, self.flags = (
            HEAD.unpack_from(view)
        )

    @property
    def body(self) -> memoryview:
        """What follows the head."""
        return self.view[HEAD_SIZE:]

    def note(self) -> dict[str, object]:
        """Return the body as what is said in words.

        Raises:
            Garbled: it is not.
        """
        try:
            said: object = json.loads(bytes(self.body))
            json.dumps(said, ensure_ascii=False).encode()  # half a character cannot be written
        except (ValueError, RecursionError) as error:
            raise Garbled("a note that is not JSON") from error
        if not isinstance(said, dict):
            raise Garbled("a note that is not an object")
        return cast("dict[str, object]", said)


class FrameEnd:
    """One end of a connection that carries frames; one thread uses it at a time.

    Every wait lasts twice the patience at most: as long again where something did arrive.
    """

    def __init__(self, connected: socket.socket, *, limit: int) -> None:
        self.socket = connected
        self.limit = limit
        self.is_local = hasattr(socket, "AF_UNIX") and connected.family == socket.AF_UNIX
        self._seals = isinstance(connected, ssl.SSLSocket)
        self._patience: float | None = None
        self._glance: float | None = None
        self._ahead = b""
        if not self.is_local:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def peer(self) -> str:
        """Where the other side is, for people to read."""
        if self.is_local:
            return "unix"
        host, port = self.socket.getpeername()[:2]
        return f"{host}:{port}"

    @property
    def has_more(self) -> bool:
        """Whether more than one frame had arrived, and the rest waits here."""
        return bool(self._ahead)

    def be_patient(self, seconds: float | None, *, glance: float | None = None) -> None:
        """Set how long each wait may take; None: for ever.

        Args:
            seconds: how long.
            glance: how often to look up meanwhile. A Ctrl-C that comes just before the system is
                asked to wait does not end that wait; it is heard at the next glance.
        """
        if seconds is not None:
            seconds = min(seconds, LONGEST_WAIT)
        self._patience = seconds
        if glance is not None and seconds is not None:
            # An even part of the whole, so that the last glance is at its end.
            glance = None if seconds <= glance else seconds / math.ceil(seconds / glance)
        self._glance = glance
        if self._seals:
            # TLS waits by itself, and would not hear of the system's limit.
            self.socket.settimeout(self._glance or seconds)
            return
        self.socket.settimeout(None)
        self.socket.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVTIMEO, _limit(self._glance or seconds)
        )
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _limit(seconds))

    def send(self, parts: Sequence[Buffer], size: int) -> None:
        """Send pieces that have `size` bytes together.

        Raises:
            OSError: the connection is lost, or a wait took too long.
            Overdue: the other side takes it up too slowly.
        """
        if size <= JOINED or self._seals or len(parts) > MOST_PIECES:
            data = b"".join(parts)
            sent = self.socket.send(data)
            if sent < size:
                self._send_on(memoryview(data)[sent:])
            return
        sent = self.socket.sendmsg(parts)
        if sent < size:
            for part in parts:
                length = len(part)
                if sent >= length:
                    sent -= length
                    continue
                self._send_on(memoryview(part)[sent:])
                sent = 0

    def say(self, kind: int, note: Mapping[str, object], *, number: int = 0) -> None:
        """Send what is said in words.

        Raises:
            OSError: the connection is lost.
        """
        body = json.dumps(note).encode()
        head = HEAD.pack(len(body), kind, number, 0, 0, 0, 0)
        self.send((head, body), HEAD_SIZE + len(body))

    def receive(self, *, limit: int | None = None) -> Frame:
        """Return the next frame, in fresh memory.

        Raises:
            Broken: the connection is lost.
            Overdue: it does not come in time.
            TooLarge: it is larger than the limit.
            Garbled: it is no frame.
        """
        return self.finish(memoryview(bytearray(HEAD_SIZE)), 0, limit=limit)

    def finish(self, view: memoryview, got: int, *, limit: int | None = None) -> Frame:
        """Return the frame whose first `got` bytes are in the view, which may hold what follows.

        The frame is in the view's memory where it fits, else in fresh memory.

        Raises:
            Broken: the connection is lost.
            Overdue: it does not come in time.
            TooLarge: it is larger than the limit.
            Garbled: it is no frame.
        """
        if self._ahead:
            view, got = self._with_ahead(view, got)
        started = time.monotonic()
        while got < HEAD_SIZE:
            got += self._more(view[got:], started)
        size, kind, _, _, _, _, _ = HEAD.unpack_from(view)
        if kind not in KINDS:
            raise Garbled("something else than a frame")
        size += HEAD_SIZE
        if size > (self.limit if limit is None else limit):
            raise TooLarge(size)
        if size > len(view):
            larger = memoryview(bytearray(size))
            larger[:got] = view[:got]
            view = larger
        while got < size:
            got += self._more(view[got:size], started, whole=True)
        if got > size:
            self._ahead = bytes(view[size:got])
        return Frame(view[:size])

    def wait(self, view: memoryview) -> int:
        """Receive into the view after a first wait of one glance has brought nothing.

        Raises:
            Overdue: nothing comes in time.
            Broken: the connection is lost.
        """
        if self._glance is None:
            raise Overdue("nothing came in time")
        return self._more(view, time.monotonic() - self._glance)

    def close(self) -> None:
        """End the connection for both sides, whoever else has a copy of it."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def _with_ahead(self, view: memoryview, got: int) -> tuple[memoryview, int]:
        data, self._ahead = self._ahead + bytes(view[:got]), b""
        if len(data) > len(view):
            view = memoryview(bytearray(len(data)))
        view[: len(data)] = data
        return view, len(data)

    def _more(self, view: memoryview, started: float, *, whole: bool = False) -> int:
        flags = socket.MSG_WAITALL if whole and not self._seals else 0
        while True:
            try:
                got = self.socket.recv_into(view, 0, flags)
                break
            except (BlockingIOError, TimeoutError) as error:
                if self._glance is None or self._is_overdue(started - self._glance / 2):
                    raise Overdue("nothing came in time") from error
            except OSError as error:
                raise Broken(error.strerror or str(error)) from error
        if got == 0:
            raise Broken("the other side has gone")
        if got < len(view):
            self._check(started)
        return got

    def _send_on(self, view: memoryview) -> None:
        started = time.monotonic()
        while view:
            view = view[self.socket.send(view) :]
            self._check(started)

    def _check(self, started: float) -> None:
        if self._is_overdue(started):
            raise Overdue("it came too slowly")

    def _is_overdue(self, started: float) -> bool:
        return self._patience is not None and time.monotonic() - started >= self._patience


def _limit(seconds: float | None) -> bytes:
    # Zero would mean for ever.
    whole = 0 if seconds is None else int(seconds)
    part = 0 if seconds is None else max(int((seconds - whole) * 1e6), 1 if whole == 0 else 0)
    return struct.pack("@ll", whole, part)


def read_headers(note: Mapping[str, object]) -> dict[str, str]:
    """Return the headers in a note.

    Raises:
        Garbled: there are none.
    """
    given = note.get("headers")
    if not isinstance(given, dict):
        raise Garbled("a note without headers")
    told = cast("dict[object, object]", given)
    return {str(name): value for name, value in told.items() if isinstance(value, str)}

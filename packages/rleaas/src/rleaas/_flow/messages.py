"""Server-sent events: bytes as they come, messages as they are complete."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from rlcore import UnexpectedReply

EVENT_STREAM = "text/event-stream"
LARGEST = 16 * 1024 * 1024
"""A message that is longer never ends, for all that is known."""

_LONGEST_RETRY = 30.0


@dataclass(frozen=True, slots=True)
class Message:
    """What was sent under one event name; `id` is where to go on after it."""

    data: str
    event: str = "message"
    id: str = ""


class Messages:
    """Makes messages of pieces that may end anywhere.

    `last_id` is the id that was sent last, with a message or alone; `retry` how many seconds the
    sender wants somebody to wait who comes back.
    """

    def __init__(self) -> None:
        self.last_id: str | None = None
        self.retry: float | None = None
        self._ready: deque[Message] = deque()
        self._rest = bytearray()
        self._data: list[str] = []
        self._size = 0
        self._event = ""
        self._id: str | None = None

    def forget(self) -> None:
        """Forget what has come of an unfinished message: the connection is another one."""
        self._rest.clear()
        self._begin()

    def feed(self, piece: bytes) -> None:
        """Take the next bytes.

        Raises:
            UnexpectedReply: a message has no end.
        """
        self._rest += piece
        # A carriage return at the end may be half of a line break.
        whole = self._rest.rfind(b"\n") + 1
        if whole:
            for line in bytes(self._rest[:whole]).split(b"\n")[:-1]:
                self._line(line.rstrip(b"\r").decode("utf-8", "replace"))
            del self._rest[:whole]
        if len(self._rest) + self._size > LARGEST:
            raise UnexpectedReply(
                f"a message of the stream is longer than {LARGEST} bytes",
                hint="Check that base_url is an rleaas server.",
            )

    def next(self) -> Message | None:
        """Return the oldest complete message, if there is one."""
        return self._ready.popleft() if self._ready else None

    def _line(self, line: str) -> None:
        if not line:
            # Not before: what was cut off has not been heard.
            self.last_id = self._id
            if self._data:
                self._ready.append(
                    Message("\n".join(self._data), self._event or "message", self.last_id or "")
                )
            self._begin()
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._size += len(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isdecimal():
            self.retry = min(int(value[:9]) / 1000, _LONGEST_RETRY)

    def _begin(self) -> None:
        self._id = self.last_id
        self._data = []
        self._size = 0
        self._event = ""

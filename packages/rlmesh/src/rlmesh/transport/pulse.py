"""Frames whose client shows that it is alive, also while it asks for nothing.

The system answers for a connection as long as somebody between the two sides keeps it open. Only
what a client sends itself tells that it is still there.
"""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Sequence

from rlmesh.protocol.messages import Leaves, StepReply
from rlmesh.transport.frame_lane import FrameLane
from rlmesh.transport.frames import HEAD, PULSE, Frame
from rlmesh.transport.limits import SILENT_PART

BEAT = HEAD.pack(0, PULSE, 0, 0, 0, 0, 0)
# How many beats fall into the silence after which a client counts as gone.
BEATS = 3


class PulsingLane(FrameLane):
    """A lane that sends something now and then while its client asks for nothing."""

    _in_use: threading.Lock

    def configure(self, number: int, edition: str) -> None:
        """Wait for the session, pin the workflow edition, and begin to show life."""
        self._in_use = threading.Lock()
        super().configure(number, edition)
        self.show_life(self.lease_seconds)

    def resume(self) -> None:
        """Wait until the server has taken the session up again, and go on showing life."""
        self._in_use = threading.Lock()
        super().resume()
        self.show_life(self.lease_seconds)

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
        with self._in_use:
            super().begin_step(number, leaves, count, timeout_ms, lanes, episode_ids)

    def end_step(self, number: int, count: int) -> StepReply:
        """Wait for the answer to the step that was begun."""
        with self._in_use:
            return super().end_step(number, count)

    def _exchange(self, number: int, request: bytes, operation: str) -> Frame:
        with self._in_use:
            return super()._exchange(number, request, operation)

    def show_life(self, lease_seconds: float) -> None:
        """Send something so often that no more than a part of the lease passes in silence."""
        if lease_seconds:
            _heart.keep(self, lease_seconds * SILENT_PART / BEATS)

    def beat(self) -> None:
        """Send something, unless a request is under way, which shows the same."""
        if not self._in_use.acquire(blocking=False):
            return
        try:
            connected = self._end.socket
            # Not waiting: where nothing can be sent any more, the next request finds out why.
            if isinstance(connected, ssl.SSLSocket):
                connected.send(BEAT)
            else:
                connected.send(BEAT, socket.MSG_DONTWAIT)
        except OSError:
            return
        finally:
            self._in_use.release()


class _Heart:
    """One thread that lets all lanes of this process beat; it forgets lanes that are forgotten."""

    def __init__(self) -> None:
        self._lanes: weakref.WeakKeyDictionary[PulsingLane, tuple[float, float]] = (
            weakref.WeakKeyDictionary()
        )
        self._news = threading.Condition()
        self._pid = 0

    def keep(self, lane: PulsingLane, pause: float) -> None:
        """Let a lane beat with these pauses, for as long as it is open."""
        if self._pid != os.getpid():
            # After a fork: the lanes there are belong to the process that has the thread.
            self._news = threading.Condition()
            self._lanes = weakref.WeakKeyDictionary()
            self._pid = os.getpid()
            threading.Thread(target=self._run, name="rlmesh-pulse", daemon=True).start()
        with self._news:
            self._lanes[lane] = pause, time.monotonic() + pause
            self._news.notify()

    def _run(self) -> None:
        while True:
            for lane in self._due():
                lane.beat()
            with self._news:
                now = time.monotonic()
                nexts = [due for _, due in self._lanes.values()]
                self._news.wait(max(0.0, min(nexts) - now) if nexts else None)

    def _due(self) -> Sequence[PulsingLane]:
        now = time.monotonic()
        found: list[PulsingLane] = []
        with self._news:
            for lane, (pause, due) in list(self._lanes.items()):
                if not lane.is_open:
                    del self._lanes[lane]
                elif due <= now:
                    self._lanes[lane] = pause, now + pause
                    found.append(lane)
        return found


_heart = _Heart()

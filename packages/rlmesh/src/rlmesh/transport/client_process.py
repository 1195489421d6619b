"""The process at the other end of a unix socket, which the system tells of."""

from __future__ import annotations

import os
import select
import socket
import struct
from pathlib import Path

EXIT_MS = 200
CREDENTIALS = struct.Struct("3i")
# As proc(5) names them: stopped by a signal, and by a debugger.
STOPPED = (b"T", b"t")


class ClientProcess:
    """A process that has a socket, for as long as this is open; whoever forked from it has not."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._descriptor = os.pidfd_open(pid)

    def has_ended(self, *, wait_ms: int = EXIT_MS) -> bool:
        """Tell whether it has ended; its sockets close a moment before that."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(wait_ms))

    def is_running(self) -> bool:
        """Tell whether it is there and could send something: it is not stopped."""
        try:
            state = Path(f"/proc/{self._pid}/stat").read_bytes().rpartition(b") ")[2][:1]
        except OSError:
            state = b""
        # Asked afterwards, as the number may have been another's by then.
        return not self.has_ended(wait_ms=0) and state not in STOPPED

    def close(self) -> None:
        """Forget it."""
        os.close(self._descriptor)


def client_process(connected: socket.socket) -> ClientProcess | None:
    """Return the process that connected a unix socket; None where the system does not tell."""
    if not hasattr(os, "pidfd_open") or not hasattr(socket, "SO_PEERCRED"):
        return None
    try:
        credentials = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        pid: int = CREDENTIALS.unpack(credentials)[0]
        # 0 where it lives in a namespace that cannot be seen from here.
        return ClientProcess(pid) if pid > 0 else None
    except OSError:
        return None

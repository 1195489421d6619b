"""Memory that a server writes and one client of the same machine reads."""

from __future__ import annotations

import contextlib
import mmap
import os
import socket
import sys
from collections.abc import Sequence
from typing import Final

from rlmesh.protocol.messages import Leaves
from rlmesh.transport.frames import Broken, Garbled

# Nobody can take pages away from under the other side, and the client cannot write.
_SEAL, _SHRINK, _GROW, _FUTURE_WRITE = 0x1, 0x2, 0x4, 0x10  # linux/fcntl.h
_ADD_SEALS, _GET_SEALS = 1033, 1034
_MARK: Final = b"m"


class SharedMemory:
    """One piece of memory, mapped here and at the other side of a unix socket.

    The server writes an answer into it before it sends the frame about it; the client has copied
    it out before it asks again.

    Attributes:
        size: its bytes.
        view: all of it, writable where it was made.
    """

    def __init__(self, descriptor: int, size: int, *, writable: bool) -> None:
        access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        self.size = size
        self._mapped = mmap.mmap(descriptor, size, mmap.MAP_SHARED, access)
        self.view = memoryview(self._mapped)

    @staticmethod
    def is_offered() -> bool:
        """Whether this system has what it takes."""
        return sys.platform == "linux" and hasattr(os, "memfd_create")

    @classmethod
    def made(cls, size: int) -> tuple[SharedMemory, int]:
        """Return new memory, and its descriptor, which is to be closed once it was passed on.

        Raises:
            OSError: the system has none to give.
        """
        import fcntl

        descriptor = os.memfd_create("rlmesh", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(descriptor, size)
            memory = cls(descriptor, size, writable=True)
            seals = _SEAL | _SHRINK | _GROW
            try:
                fcntl.fcntl(descriptor, _ADD_SEALS, seals | _FUTURE_WRITE)
            except OSError:  # kernels before 5.1 have not got the last one
                fcntl.fcntl(descriptor, _ADD_SEALS, seals)
        except BaseException:
            os.close(descriptor)
            raise
        return memory, descriptor

    @classmethod
    def received(cls, connected: socket.socket, size: int) -> SharedMemory:
        """Return the memory that comes next on a unix socket.

        Raises:
            Broken: the connection is lost.
            Garbled: what comes is no memory of that size, or could be cut off while it is read.
            OSError: the system refuses to map it.
        """
        import fcntl

        mark, descriptors, _, _ = socket.recv_fds(connected, 1, 1)
        try:
            if not mark:
                raise Broken("the other side has gone")
            if mark != _MARK or len(descriptors) != 1:
                raise Garbled("something else than memory")
            seals = fcntl.fcntl(descriptors[0], _GET_SEALS)
            if not seals & _SHRINK or os.fstat(descriptors[0]).st_size < size:
                raise Garbled("memory that is not sealed")
            return cls(descriptors[0], size, writable=False)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    @staticmethod
    def send(connected: socket.socket, descriptor: int) -> None:
        """Pass memory on over a unix socket.

        Raises:
            OSError: the connection is lost.
        """
        socket.send_fds(connected, [_MARK], [descriptor])

    def write(self, slices: Sequence[tuple[int, int]], leaves: Leaves) -> None:
        """Put leaves where they belong."""
        view = self.view
        for (begin, end), leaf in zip(slices, leaves, strict=True):
            view[begin:end] = leaf

    def close(self) -> None:
        """Give it back; what was copied from it stays."""
        self.view.release()
        with contextlib.suppress(BufferError):  # someone still reads it; it goes with them
            self._mapped.close()

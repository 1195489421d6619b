"""Where a server's lanes listen: a private unix socket, and a second TCP port."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import socket
import tempfile
import time
import weakref
from pathlib import Path
from typing import cast

from rlcore import BindError
from rlcore.log import logger

from rlmesh.transport.addresses import UNIX_PATH_LIMIT, Address, TcpAddress, UnixAddress

log = logger("rlmesh", "server")
SOCKET_NAME = "lane"
FOLDER_PREFIX = ".rlm-lane-"
# What a killed server left behind is removed by the next one, a minute later: by then, one that
# was only just starting would listen.
LEFT_BEHIND_SECONDS = 60.0
MOST_CLEARED = 32
PROBE_SECONDS = 0.01
BACKLOG = 128


class Listeners:
    """Listening sockets, which are taken when this is made.

    Args:
        address: where the server itself is dialled.
        lane_port: the second port, where that is by TCP; 0: a free one.

    Attributes:
        sockets: those that listen.
        port: the second port; None: there is none.
        path: the unix socket; None: there is none.
        beside: the same from the folder of the server's own socket; None: it is elsewhere.

    Raises:
        BindError: the second port that was asked for cannot be had.
    """

    def __init__(self, address: Address, lane_port: int) -> None:
        self.sockets: list[socket.socket] = []
        self._folders: list[Path] = []
        # A server that is dropped without a shutdown leaves nothing behind.
        weakref.finalize(self, _close, self.sockets, self._folders)
        try:
            self.port = self._listen_tcp(address, lane_port)
            found = self._listen_local(address)
        except BaseException:
            self.close()
            raise
        self.path = None if found is None else str(found)
        self.beside: str | None = None
        if found is not None and isinstance(address, UnixAddress):
            folder = Path(address.path).parent
            self.beside = str(found.relative_to(folder)) if found.is_relative_to(folder) else None

    def close(self) -> None:
        """Listen no more, and remove the socket's folder."""
        _close(self.sockets, self._folders)

    def _listen_tcp(self, address: Address, port: int) -> int | None:
        if not isinstance(address, TcpAddress):
            return None
        place = (address.host, port)
        try:
            family, kind, _, _, target = socket.getaddrinfo(
                *place, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            listener = socket.socket(family, kind)
            self.sockets.append(listener)
            if os.name == "posix":
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                with contextlib.suppress(OSError):
                    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listener.bind(target)
            listener.listen(BACKLOG)
        except OSError as error:
            where = TcpAddress(address.host, port)
            raise BindError(
                f"cannot offer lanes at {where}: {error.strerror or error}",
                address=str(where),
                hint="Give another lane_port=, or lanes=False.",
            ) from error
        return cast("int", listener.getsockname()[1])

    def _listen_local(self, address: Address) -> Path | None:
        if not hasattr(socket, "AF_UNIX"):
            return None
        for parent in _parents(address):
            try:
                _clear_up(Path(parent))
                folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=parent))  # 0700
                self._folders.append(folder)
                path = folder / SOCKET_NAME
                if len(str(path).encode()) <= UNIX_PATH_LIMIT:
                    listener = socket.socket(socket.AF_UNIX)
                    self.sockets.append(listener)
                    listener.bind(str(path))
                    path.chmod(0o600)
                    listener.listen(BACKLOG)
                    return path
            except OSError as error:
                log.info("no lane in %s: %s", parent, error)
            _remove(self._folders)
        return None


def _close(sockets: list[socket.socket], folders: list[Path]) -> None:
    for listener in sockets:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # which wakes the thread that accepts
        listener.close()
    sockets.clear()
    _remove(folders)


def _remove(folders: list[Path]) -> None:
    while folders:
        shutil.rmtree(folders.pop(), ignore_errors=True)


def _parents(address: Address) -> list[str]:
    # Beside the socket that is dialled, so that whoever reaches it reaches this one too.
    beside = [str(Path(address.path).parent)] if isinstance(address, UnixAddress) else []
    return [*beside, tempfile.gettempdir()]


def _clear_up(parent: Path) -> None:
    """Remove the folders of servers that were killed."""
    for folder in itertools.islice(parent.glob(f"{FOLDER_PREFIX}*"), MOST_CLEARED):
        path = folder / SOCKET_NAME
        try:
            old = time.time() - path.lstat().st_mtime > LEFT_BEHIND_SECONDS
            if not old or folder.lstat().st_uid != os.getuid():
                continue
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(PROBE_SECONDS)
                probe.connect(str(path))
        except ConnectionRefusedError:
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # it has just been removed, or is busy

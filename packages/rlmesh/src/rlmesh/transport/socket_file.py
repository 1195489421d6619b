"""A unix socket's file: its owner's alone, never another server's, gone with the server."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rlmesh.transport.addresses import UNIX_PATH_LIMIT

PROBE_SECONDS = 1.0
LOCK_SECONDS = 5.0
LOCK_GLANCE_SECONDS = 0.01
OWNER_ONLY = 0o600
OWNER_FOLDER = 0o700
# gRPC removes the file at the path that it bound when it stops; below a folder that nobody can
# guess that path is nobody's.
NAME_BYTES = 8
# Characters that gRPC takes in a path as they are; it reads others as parts of a URI.
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-")

# Some file systems have no hard links.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class SocketFileError(Exception):
    """The path cannot be had; the text says why."""


@dataclass(frozen=True, slots=True)
class SocketFile:
    """The file of a bound socket, as it was made."""

    path: str
    device: int
    inode: int

    def remove(self) -> None:
        """Remove the file, unless another one has taken its place."""
        with contextlib.suppress(OSError, SocketFileError), _only_one(Path(self.path).parent):
            found = os.lstat(self.path)
            if (found.st_dev, found.st_ino) == (self.device, self.inode):
                Path(self.path).unlink()


def make_socket_file(path: str, bind: Callable[[str], None]) -> SocketFile:
    """Bind a listening socket so that its file appears at the path, for its owner only.

    The file that nobody listens at any more is replaced; anything else there is left alone. Of
    several servers that want the path at once, one gets it.

    Args:
        path: the absolute path.
        bind: binds and listens at the path that it is given, which is another one.

    Raises:
        SocketFileError: the path is taken, or the folder not there or not ours.
    """
    folder = Path(path).parent
    if not folder.is_dir():
        raise SocketFileError(f"the folder {str(folder)!r} does not exist")
    try:
        with _private_folder(folder) as private, _bindable(private, path) as (there, made):
            bind(there)
            # Nobody else can look in here: the mode is right before there is anything to open.
            made.chmod(OWNER_ONLY)
            with _only_one(folder):
                _clear(path)
                _move(made, path)
            found = os.lstat(path)
            return SocketFile(path, found.st_dev, found.st_ino)
    except OSError as error:
        raise SocketFileError(_reason(error, folder)) from error


@contextmanager
def _private_folder(folder: Path) -> Generator[Path]:
    made = Path(tempfile.mkdtemp(prefix=".rlm-", dir=folder))  # 0700 from the start
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def _only_one(folder: Path) -> Generator[None]:
    # Looking, removing and taking the path are one act: else two servers could each find the same
    # old file, and the slower one remove the new file of the faster.
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        patience = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > patience:
                    raise SocketFileError(f"the folder {str(folder)!r} stays locked") from error
                time.sleep(LOCK_GLANCE_SECONDS)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _bindable(private: Path, path: str) -> Generator[tuple[str, Path]]:
    """Yield what to bind, and the file that it makes.

    The system lists a socket by the name that it was bound under. That name ends with the path
    itself wherever it fits, so that people and tools find the server by it.
    """
    known, unknown = path.lstrip("/"), secrets.token_hex(NAME_BYTES)
    if _can_be_bound(f"{private}/{known}"):
        yield f"{private}/{known}", _made_in(private, known)
        return
    # A path beside a long one is longer still, and gRPC reads some characters in its own way: then
    # the folder gets another name for a moment.
    with tempfile.TemporaryDirectory(prefix="rlm-") as elsewhere:
        alias = Path(elsewhere, "d")
        alias.symlink_to(private)
        for name in (known, unknown):
            if _can_be_bound(f"{alias}/{name}"):
                yield f"{alias}/{name}", _made_in(private, name)
                return
        raise SocketFileError(f"the path {str(alias)!r} is too long to be bound")


def _made_in(private: Path, name: str) -> Path:
    made = private / name
    made.parent.mkdir(OWNER_FOLDER, parents=True, exist_ok=True)
    return made


def _can_be_bound(path: str) -> bool:
    outside = ".." in path.split("/")
    return _PLAIN.issuperset(path) and len(path) <= UNIX_PATH_LIMIT and not outside


def _clear(path: str) -> None:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise SocketFileError("there is a file or folder at that path, and it is not a socket")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(PROBE_SECONDS)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink(missing_ok=True)
            return
        except (BlockingIOError, TimeoutError):
            pass  # somebody listens, and is busy
    raise SocketFileError("another server is listening there")


def _move(made: Path, path: str) -> None:
    try:
        os.link(made, path)  # unlike a rename it never replaces what came there meanwhile
    except FileExistsError as error:
        raise SocketFileError("something else took the path at the same moment") from error
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        made.rename(path)


def _reason(error: OSError, folder: Path) -> str:
    if isinstance(error, PermissionError) and not os.access(folder, os.W_OK | os.X_OK):
        return f"the folder {str(folder)!r} is not writable"
    return error.strerror or str(error)

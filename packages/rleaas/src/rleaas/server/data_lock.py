"""One server for each data directory."""

import fcntl
import os
import stat
from pathlib import Path

from rlcore import ConfigurationError


class DataLock:
    """Held while a server uses its data directory; the system lets go of it if the server dies."""

    def __init__(self, data_dir: Path, *, shared: bool = False) -> None:
        """Take the lock; `shared` is for servers whose database is elsewhere.

        Raises:
            ConfigurationError: another server has it, or the directory cannot be written to.
        """
        path = data_dir / "server.lock"
        try:
            data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            _keep_private(data_dir)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise ConfigurationError(
                f"the data directory {str(data_dir)!r} cannot be used: {error.strerror}",
                code="data_directory",
                hint="Choose another with --data",
            ) from error
        try:
            fcntl.flock(self._file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.pread(self._file, 20, 0).decode("ascii", "replace").strip()
            os.close(self._file)
            raise ConfigurationError(
                f"the data directory {str(data_dir)!r} is in use by the server with pid {owner}",
                code="data_directory_in_use",
                hint="Stop that server, or choose another directory with --data",
            ) from error
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let another server have the directory."""
        os.close(self._file)


def _keep_private(directory: Path) -> None:
    """Let nobody else in; one that belongs to others, or to all like /tmp, is theirs to guard."""
    found = directory.stat()
    if found.st_uid == os.geteuid() and not found.st_mode & stat.S_ISVTX:
        directory.chmod(0o700)

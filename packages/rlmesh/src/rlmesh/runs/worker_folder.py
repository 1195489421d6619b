"""The folder of a run's private server; those of runs that were killed are swept away."""

import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

PREFIX = "rlmesh-run-"
_OWNER = "owner"


class WorkerFolder:
    """A folder that only this user can enter, locked for as long as its run lives.

    Attributes:
        path: where it is.
    """

    def __init__(self) -> None:
        import fcntl  # not on every system, where runs without workers work as well

        sweep()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        # Whoever sweeps finds it locked or not at all.
        fresh = self.path / f".{_OWNER}"
        self._lock = os.open(fresh, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        fresh.rename(self.path / _OWNER)

    def remove(self) -> None:
        """Remove it, and what is left in it; a second call does nothing."""
        shutil.rmtree(self.path, ignore_errors=True)
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)


def sweep() -> None:
    """Remove the folders of this user's runs that were killed."""
    for found in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        # What cannot be looked at is another's, or somebody else sweeps it now.
        with contextlib.suppress(OSError):
            about = found.lstat()
            if stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and _is_left(found):
                shutil.rmtree(found, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    import fcntl

    lock = os.open(folder / _OWNER, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True

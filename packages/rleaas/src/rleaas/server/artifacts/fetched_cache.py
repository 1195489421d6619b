"""Files of a place elsewhere that were fetched, kept on this machine for whoever asks next."""

import os
import secrets
from pathlib import Path
from typing import Final

from rleaas.server.artifacts.incoming import PREFIX
from rleaas.training.file_digest import file_digest

MOST_BYTES: Final = 2 * 1024**3


class FetchedCache:
    """A directory of files under their digests, the least used of which make room.

    What is taken out of it is a link: it stays, whoever removes the file itself meanwhile, also
    another server with the same directory. A file is checked each time that it is taken.

    Args:
        directory: where they lie.
        most_bytes: how much may lie there.
    """

    def __init__(self, directory: Path, most_bytes: int = MOST_BYTES) -> None:
        self._directory = directory
        self._most_bytes = most_bytes

    def take(self, sha256: str, target: Path) -> bool:
        """Put the file at the target, which nobody may write to; False: it is not here.

        One whose bytes are others is removed.
        """
        kept = self._directory / sha256
        try:
            os.link(kept, target)
        except FileNotFoundError:
            return False
        if file_digest(target) != sha256:
            target.unlink()
            kept.unlink(missing_ok=True)
            return False
        os.utime(target)  # of the file, however many links it has: it was used just now
        return True

    def keep(self, sha256: str, source: Path) -> None:
        """Keep a file that was checked, and remove those that were not used for longest."""
        size = source.stat().st_size
        if size > self._most_bytes:
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        part = self._directory / f"{PREFIX}{secrets.token_hex(8)}"
        os.link(source, part)
        part.replace(self._directory / sha256)
        # Where both are the same file already, a rename does nothing.
        part.unlink(missing_ok=True)
        self._make_room()

    def drop(self, sha256: str) -> None:
        """Forget a file that is wanted no more."""
        (self._directory / sha256).unlink(missing_ok=True)

    def _make_room(self) -> None:
        found: list[tuple[int, int, Path]] = []
        for path in self._directory.iterdir():
            try:
                facts = path.stat()
            except FileNotFoundError:
                continue  # another server made room
            found.append((facts.st_mtime_ns, facts.st_size, path))
        left = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if left <= self._most_bytes:
                return
            path.unlink(missing_ok=True)
            left -= size

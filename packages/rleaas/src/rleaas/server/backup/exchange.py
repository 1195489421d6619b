"""Files and directories put in the place of others: all of them, or as it was."""

import secrets
import shutil
from pathlib import Path
from typing import Final, Self

from rleaas.server.backup.files import FOLDERS, SECRET

REPLACED: Final = ".replaced-"


class Exchange:
    """Puts files and directories in the place of others; undone when the block raises."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._old = data_dir / f"{REPLACED}{secrets.token_hex(6)}"
        self._moves: list[tuple[Path, Path]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            for source, target in reversed(self._moves):
                target.rename(source)
        if self._old.exists():
            shutil.rmtree(self._old)

    def put_all(self, staging: Path) -> None:
        """Put everything of a data directory in its place; what the backup has not goes."""
        for name in (*FOLDERS, SECRET):
            self.take_away(self._data_dir / name)
            if (staging / name).exists():
                self._move(staging / name, self._data_dir / name)

    def put(self, source: Path, target: Path) -> None:
        """Put something in the place of what is there."""
        self.take_away(target)
        self._move(source, target)

    def take_away(self, target: Path) -> None:
        """Move what is there out of the way."""
        if target.exists() or target.is_symlink():
            self._old.mkdir(mode=0o700, exist_ok=True)
            self._move(target, self._old / f"{len(self._moves)}-{target.name}")

    def _move(self, source: Path, target: Path) -> None:
        source.rename(target)
        self._moves.append((source, target))

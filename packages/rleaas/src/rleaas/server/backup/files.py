"""The files of a data directory: which of them a backup has, and where they may be put back."""

import os
import re
import secrets
import shutil
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rleaas.server.backup.archive import damaged

SECRET: Final = "server.key"
# Before artifacts, checkpoints had a folder of their own.
FOLDERS: Final = ("artifacts", "assets", "checkpoints", "logs", "reports")
PREFIX: Final = "files/"
# Written beside their place, and not there yet.
_UNFINISHED: Final = re.compile(r"\.incoming-.*|.*\.part")
_STAGING: Final = ".backup-"
_LEFT_BEHIND_SECONDS: Final = 24 * 3600.0
_PART: Final = re.compile(r"[^/\\\x00]{1,255}")
_READ_ONLY_TO_OTHERS: Final = 0o600


@dataclass(frozen=True, slots=True)
class Held:
    """A file as it was at one moment: later bytes are not part of it."""

    name: str
    path: Path
    size: int


@contextmanager
def staging(data_dir: Path) -> Generator[Path]:
    """A directory beside the files, for links to them; what a killed backup left there goes."""
    for old in data_dir.glob(f"{_STAGING}*"):
        if time.time() - old.stat().st_mtime > _LEFT_BEHIND_SECONDS:
            shutil.rmtree(old)
    place = data_dir / f"{_STAGING}{secrets.token_hex(6)}"
    place.mkdir(mode=0o700)
    try:
        yield place
    finally:
        shutil.rmtree(place)


def hold(data_dir: Path, place: Path) -> list[Held]:
    """Link every file into a directory, so that what is deleted or replaced from now on is kept."""
    found: list[Held] = []
    for relative in _relative(data_dir):
        source, link = data_dir / relative, place / relative
        link.parent.mkdir(parents=True, exist_ok=True)
        try:
            _link(source, link)
        except FileNotFoundError:
            continue  # removed just now: nothing refers to it any more
        found.append(Held(relative.as_posix(), link, link.stat().st_size))
    return found


def is_there(data_dir: Path) -> list[str]:
    """Return what a server has in the directory already."""
    own = [name for name in (SECRET, "rleaas.db", "rleaas.db-wal") if (data_dir / name).exists()]
    return own + [
        folder
        for folder in FOLDERS
        if (data_dir / folder).is_symlink() or any(_files_below(data_dir / folder))
    ]


def place_of(member: str) -> Path:
    """Return where a member belongs, relative to the data directory.

    Raises:
        RLEaaSError: it belongs nowhere there.
    """
    parts = member.removeprefix(PREFIX).split("/")
    known = parts == [SECRET] or (len(parts) > 1 and parts[0] in FOLDERS)
    if not known or any(part in (".", "..") or not _PART.fullmatch(part) for part in parts):
        raise damaged(f"member {member!r} has no place in a data directory")
    return Path(*parts)


def put(place: Path, chunks: Iterator[bytes]) -> None:
    """Write a file, with the directories above it."""
    place.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(
        place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _READ_ONLY_TO_OTHERS
    )
    with os.fdopen(descriptor, "wb") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


def _relative(data_dir: Path) -> Iterator[Path]:
    if (data_dir / SECRET).is_file():
        yield Path(SECRET)
    for folder in FOLDERS:
        for path in _files_below(data_dir / folder):
            yield path.relative_to(data_dir)


def _files_below(folder: Path) -> Iterator[Path]:
    for directory, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(directory) / name
            if not _UNFINISHED.fullmatch(name) and path.is_file():
                yield path


def _link(source: Path, link: Path) -> None:
    if not source.is_symlink():
        try:
            os.link(source, link)
        except OSError as error:
            if isinstance(error, FileNotFoundError):
                raise
        else:
            return
    # On another file system, or one without links.
    shutil.copy2(source, link)

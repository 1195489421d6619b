"""The file of a backup: a zip whose manifest names every member with its size and SHA-256.

What is read from one is believed only as far as it was checked: names, kinds of members, sizes
before anything is unpacked, and digests while it is.
"""

import hashlib
import json
import os
import secrets
import stat
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, Self, cast

from rlcore import ConfigurationError, Error, RLEaaSError

MANIFEST: Final = "manifest.json"
FORMAT: Final = "rleaas-backup"
FORMAT_VERSION: Final = 1
_MOST_MANIFEST: Final = 256 * 1024**2
_CHUNK: Final = 1024 * 1024
_PACKED: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_ENCRYPTED: Final = 0x1

Facts = dict[str, object]


@dataclass(frozen=True, slots=True)
class Member:
    """What the manifest says of a member."""

    size: int
    sha256: str


def damaged(what: str) -> RLEaaSError:
    """The failure of an archive that cannot be used."""
    return RLEaaSError(
        f"the backup cannot be used: {what}",
        code="backup_damaged",
        hint="Use another backup; nothing was restored from this one",
    )


class ArchiveWriter:
    """A context manager: the archive appears in its place, as a whole, when it is finished."""

    def __init__(self, target: Path) -> None:
        """Begin beside the place.

        Raises:
            ConfigurationError: there is something already, or nothing can be written there.
        """
        if target.exists():
            raise ConfigurationError(
                f"{str(target)!r} is there already",
                code="backup_exists",
                hint="Choose another name with --to",
            )
        self._target = target
        self._part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        try:
            # It holds the server's secret: nobody else may read it.
            descriptor = os.open(self._part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise ConfigurationError(
                f"a backup cannot be written to {str(target.parent)!r}: {error.strerror}",
                code="backup_not_writable",
                hint="Choose another place with --to",
            ) from error
        self._file = os.fdopen(descriptor, "w+b")
        self._zip = zipfile.ZipFile(self._file, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
        self.members: dict[str, Member] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._zip.close()
        finally:
            self._file.close()
            self._part.unlink(missing_ok=True)

    def add(self, name: str, chunks: Iterator[bytes], *, pack: bool = True) -> None:
        """Add a member; what is packed already need not be packed again."""
        digest, size = hashlib.sha256(), 0
        kind = zipfile.ZIP_DEFLATED if pack else zipfile.ZIP_STORED
        with self._zip.open(_info(name, kind), "w", force_zip64=True) as member:
            for chunk in chunks:
                digest.update(chunk)
                size += len(chunk)
                member.write(chunk)
        self.members[name] = Member(size, digest.hexdigest())

    def finish(self, facts: Facts) -> None:
        """Write the manifest, and put the archive in its place."""
        named = {
            name: {"size": one.size, "sha256": one.sha256} for name, one in self.members.items()
        }
        manifest = {"format": FORMAT, "format_version": FORMAT_VERSION, **facts, "members": named}
        self._zip.writestr(_info(MANIFEST, zipfile.ZIP_DEFLATED), json.dumps(manifest, indent=1))
        self._zip.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        # Not `replace`: what came there meanwhile stays.
        os.link(self._part, self._target)


@dataclass(slots=True)
class ArchiveReader:
    """A context manager over an archive whose names, kinds and sizes have been checked."""

    path: Path
    manifest: Facts = field(default_factory=dict[str, object])
    members: dict[str, Member] = field(default_factory=dict[str, Member])
    _zip: zipfile.ZipFile | None = None
    _file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._file = self.path.open("rb")
        except FileNotFoundError as error:
            raise ConfigurationError(
                f"there is no backup {str(self.path)!r}", code="backup_not_found"
            ) from error
        except OSError as error:
            raise damaged(f"{str(self.path)!r} cannot be read: {error.strerror}") from error
        try:
            with _blamed_on_the_archive():
                self._zip = zipfile.ZipFile(self._file)
            self._take_manifest()
            self._require_what_it_says()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # Also what is read of a member that was given up in the middle.
        assert self._file is not None
        self._file.close()

    @property
    def size(self) -> int:
        """The bytes of all members together."""
        return sum(one.size for one in self.members.values())

    def read(self, name: str) -> Iterator[bytes]:
        """The bytes of a member; its end is reached only if they are those of the manifest.

        Raises:
            RLEaaSError: they are not.
        """
        expected = self.members.get(name)
        if expected is None:
            raise damaged(f"it has no member {name!r}")
        digest, size = hashlib.sha256(), 0
        with _blamed_on_the_archive(name), self._opened.open(name) as member:
            while chunk := member.read(_CHUNK):
                size += len(chunk)
                if size > expected.size:
                    raise damaged(f"member {name!r} is larger than its manifest says")
                digest.update(chunk)
                yield chunk
        if size != expected.size or digest.hexdigest() != expected.sha256:
            raise damaged(f"member {name!r} is not what its manifest says")

    def lines(self, name: str, most: int) -> Iterator[bytes]:
        """The lines of a member, none of which may be longer than `most` bytes."""
        rest = b""
        for chunk in self.read(name):
            *whole, rest = (rest + chunk).split(b"\n")
            if len(rest) > most:
                raise damaged(f"a line of member {name!r} is longer than {most} bytes")
            yield from whole
        if rest:
            raise damaged(f"member {name!r} ends in the middle of a line")

    @property
    def _opened(self) -> zipfile.ZipFile:
        assert self._zip is not None  # inside the block
        return self._zip

    def _take_manifest(self) -> None:
        with _blamed_on_the_archive(MANIFEST):
            info = self._opened.getinfo(MANIFEST)
            if info.file_size > _MOST_MANIFEST:
                raise damaged("its manifest is too large")
            with self._opened.open(info) as member:
                text = member.read(_MOST_MANIFEST + 1)
            found: object = json.loads(text)
        if not isinstance(found, dict):
            raise damaged("its manifest is no object")
        self.manifest = cast("Facts", found)
        if self.manifest.get("format") != FORMAT:
            raise damaged("it was not made by `rleaas db backup`")
        version = self.manifest.get("format_version")
        if version != FORMAT_VERSION:
            raise ConfigurationError(
                f"the backup has format {version!r}, and this rleaas reads {FORMAT_VERSION}",
                code="backup_newer",
                hint="Use the rleaas that made it, or a newer one",
            )
        named = self.manifest.get("members")
        if not isinstance(named, dict):
            raise damaged("its manifest names no members")
        for name, one in cast("dict[str, object]", named).items():
            self.members[name] = _member(name, one)

    def _require_what_it_says(self) -> None:
        infos = self._opened.infolist()
        names = [info.filename for info in infos]
        if len(names) != len(set(names)):
            raise damaged("it has two members of one name")
        if set(names) != {MANIFEST, *self.members}:
            odd = sorted(set(names) ^ {MANIFEST, *self.members})[0]
            raise damaged(f"its manifest and its content differ about {odd!r}")
        for info in infos:
            kind = stat.S_IFMT(info.external_attr >> 16)
            if info.is_dir() or kind not in (0, stat.S_IFREG):
                raise damaged(f"member {info.filename!r} is no file")
            if info.compress_type not in _PACKED or info.flag_bits & _ENCRYPTED:
                raise damaged(f"member {info.filename!r} is packed in a way that is not used here")
            if info.filename != MANIFEST and info.file_size != self.members[info.filename].size:
                raise damaged(f"member {info.filename!r} has not the size of its manifest")


def _info(name: str, kind: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.compress_type = kind
    info.external_attr = (stat.S_IFREG | 0o600) << 16
    return info


def _member(name: str, said: object) -> Member:
    facts = cast("Facts", said) if isinstance(said, dict) else {}
    size, sha256 = facts.get("size"), facts.get("sha256")
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise damaged(f"its manifest gives member {name!r} no size")
    if not isinstance(sha256, str):
        raise damaged(f"its manifest gives member {name!r} no digest")
    return Member(size, sha256)


@contextmanager
def _blamed_on_the_archive(name: str | None = None) -> Generator[None]:
    """Turn what the libraries raise about bytes that are wrong into the failure of an archive."""
    where = "" if name is None else f" in member {name!r}"
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError) as error:
        raise damaged(f"it is not a whole archive{where}: {error}") from error
    except (ValueError, RuntimeError, OSError) as error:
        # Also what is told to be encrypted, nested without end, or to stand before the file.
        if isinstance(error, Error):
            raise
        raise damaged(f"it cannot be read{where}: {error}") from error


def chunks_of(file: IO[bytes], most: int) -> Iterator[bytes]:
    """The first `most` bytes of an open file, in pieces."""
    while most > 0 and (chunk := file.read(min(_CHUNK, most))):
        most -= len(chunk)
        yield chunk

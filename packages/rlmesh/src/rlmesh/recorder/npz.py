"""Trajectory files: NumPy's own npz, written from spools and read without trusting it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.lib import format as npy
from rlcore import BundleError

from rlmesh.recorder.columns import Array, Member

LARGEST_MEMBER: Final = 4 * 2**30
"""Bytes of the largest array that is read; a small file can claim to unpack to any number."""

_FAST: Final = 1  # of zlib's levels: three times as fast as its default, a tenth larger
_ENDING: Final = ".npy"


def write_npz(
    target: Path | IO[bytes], members: Iterable[tuple[Member, int]], small: Mapping[str, Array]
) -> None:
    """Write arrays: those of `members` with so many rows, and the small ones.

    The same arrays give the same bytes.

    Raises:
        OSError: the disk does not take them.
    """
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=_FAST) as archive:
        for name, array in small.items():
            content = io.BytesIO()
            npy.write_array(content, array, allow_pickle=False)
            archive.writestr(_entry(name), content.getbuffer(), zipfile.ZIP_DEFLATED, _FAST)
        for member, rows in members:
            with archive.open(_entry(member.name), "w", force_zip64=True) as file:
                shape = (rows, *member.shape)
                facts = {"descr": member.dtype.str, "fortran_order": False, "shape": shape}
                npy.write_array_header_1_0(file, facts)
                for block in member.spool.blocks():
                    file.write(block)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name + _ENDING)  # of 1980, so that files can be compared
    entry.compress_type = zipfile.ZIP_DEFLATED
    # zipfile has no public word for the level of one entry before Python 3.13.
    for attribute in ("compress_level", "_compresslevel"):
        if hasattr(entry, attribute):
            setattr(entry, attribute, _FAST)
    return entry


class Npz:
    """The arrays of a trajectory file, each read when it is asked for.

    Args:
        file: the file, which can seek.
        name: what errors call it.

    Raises:
        BundleError: it is no such file.
    """

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._name = name
        self._read: dict[str, Array] = {}
        try:
            self._archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise BundleError(f"{name!r} is no trajectory file: {error}", path=name) from error
        self.names = frozenset(
            entry.removesuffix(_ENDING)
            for entry in self._archive.namelist()
            if entry.endswith(_ENDING)
        )

    def array(self, name: str) -> Array:
        """Return one array.

        Raises:
            BundleError: it is missing, damaged, too large, or of objects.
        """
        known = self._read.get(name)
        if known is not None:
            return known
        try:
            array = self._load(name)
        except KeyError as error:
            raise self._wrong(f"it has no array {name!r}") from error
        except BundleError:
            raise
        except (zipfile.BadZipFile, OSError, ValueError, EOFError, NotImplementedError) as error:
            raise self._wrong(f"the array {name!r} is damaged: {error}") from error
        except Exception as error:  # zlib.error, and whatever a foreign header makes of NumPy
            raise self._wrong(f"the array {name!r} is damaged: {error}") from error
        self._read[name] = array
        return array

    def close(self) -> None:
        """Let go of the file."""
        self._archive.close()

    def _load(self, name: str) -> Array:
        entry = self._archive.getinfo(name + _ENDING)
        if entry.file_size > LARGEST_MEMBER:
            raise self._wrong(f"the array {name!r} has {entry.file_size} bytes")
        with self._archive.open(entry) as file:
            version = npy.read_magic(file)
            if version != (1, 0):
                raise self._wrong(f"the array {name!r} is of npy version {version}")
            shape, by_column, dtype = npy.read_array_header_1_0(file)
            if dtype.hasobject or by_column:
                raise self._wrong(f"the array {name!r} is of a kind that nobody records")
            wanted = int(dtype.itemsize)
            for side in shape:
                wanted *= int(side)
            # What the header claims is believed only as far as the file has bytes for it.
            if min((0, *shape)) < 0 or wanted > entry.file_size:
                raise self._wrong(f"the array {name!r} claims {wanted} bytes and has fewer")
            content = bytearray(wanted)
            view, at = memoryview(content), 0
            while at < wanted:
                part = file.read(min(wanted - at, 1 << 20))
                if not part:
                    raise self._wrong(f"the array {name!r} ends after {at} of {wanted} bytes")
                view[at : at + len(part)] = part
                at += len(part)
            if file.read(1):  # reads the checksum as well
                raise self._wrong(f"the array {name!r} has more bytes than it claims")
        found: np.ndarray[Any, Any] = np.frombuffer(content, dtype).reshape(shape)
        return found

    def _wrong(self, why: str) -> BundleError:
        return BundleError(f"{self._name!r} cannot be read: {why}", path=self._name)

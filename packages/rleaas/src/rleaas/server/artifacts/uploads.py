"""Whether what a worker sends is a checkpoint; nothing of it is unpickled."""

import json
import struct
import zipfile
from pathlib import Path
from typing import Final, cast

from rlcore import InvalidRequestError

from rleaas.server.artifacts.manifests import UNREADABLE, read_manifest
from rleaas.training.archive_formats import (
    MANIFEST,
    POLICY_FORMAT,
    STATE_FORMAT,
    STATE_TENSORS,
    STATE_TREE,
    WEIGHTS,
)

JsonObject = dict[str, object]
_MOST_MEMBERS: Final = 10_000
# Of every member together, unpacked: a file that grows to more fills the disks of who opens it.
_MOST_BYTES: Final = 64 * 1024**3
_LONGEST_HEADER: Final = 16 * 1024**2
_LENGTH: Final = struct.Struct("<Q")


def require_policy(path: Path, algorithm: object, what: str) -> JsonObject:
    """What a policy file says about itself.

    Args:
        path: the file.
        algorithm: what it has to be of.
        what: how messages call it.

    Raises:
        InvalidRequestError: it is no policy file (`checkpoint_unreadable`), or is of another
            algorithm (`checkpoint_of_other_algorithm`).
    """
    manifest = read_manifest(path)
    if manifest is None:
        raise _refused(what, f"it is no archive with a {MANIFEST} that can be read")
    if manifest.get("format") != POLICY_FORMAT:
        raise _refused(what, f"its format is {manifest.get('format')!r}, not {POLICY_FORMAT!r}")
    try:
        with _opened(path) as archive:
            _require_tensors(archive, WEIGHTS)
    except UNREADABLE as error:
        raise _refused(what, error) from error
    if manifest.get("algorithm") != algorithm:
        raise InvalidRequestError(
            f"{what} is of {manifest.get('algorithm')!r}, and its job trains {algorithm!r}",
            status_code=422,
            code="checkpoint_of_other_algorithm",
            hint="Send the checkpoints of a job to that job",
        )
    return manifest


def require_state(path: Path, what: str) -> None:
    """Refuse a file that no training can go on from.

    Raises:
        InvalidRequestError: it is no state file (`checkpoint_unreadable`).
    """
    try:
        with _opened(path) as archive:
            with archive.open(STATE_TREE) as member:
                # The format is what is written first; the tree after it may be large.
                begins = member.read(len(_BEGINNING))
            if begins != _BEGINNING:
                raise ValueError(f"its {STATE_TREE} does not begin with the format {STATE_FORMAT}")
            _require_tensors(archive, STATE_TENSORS)
    except UNREADABLE as error:
        raise _refused(what, error) from error


_BEGINNING: Final = json.dumps({"format": STATE_FORMAT})[:-1].encode()


def _opened(path: Path) -> zipfile.ZipFile:
    archive = zipfile.ZipFile(path)
    try:
        members = archive.infolist()
        if len(members) > _MOST_MEMBERS:
            raise ValueError(f"it has {len(members)} members, more than {_MOST_MEMBERS}")
        size = sum(member.file_size for member in members)
        if size > _MOST_BYTES:
            raise ValueError(f"it has {size} bytes when it is unpacked, more than {_MOST_BYTES}")
    except BaseException:
        archive.close()
        raise
    return archive


def _require_tensors(archive: zipfile.ZipFile, name: str) -> None:
    """Read what a safetensors member says about its tensors, and whether they can all be there."""
    whole = archive.getinfo(name).file_size
    with archive.open(name) as member:
        begins = member.read(_LENGTH.size)
        if len(begins) < _LENGTH.size:
            raise ValueError(f"its {name} is cut short")
        (length,) = cast("tuple[int]", _LENGTH.unpack(begins))
        if length > min(_LONGEST_HEADER, whole - _LENGTH.size):
            raise ValueError(f"its {name} has no header that can be read")
        header: object = json.loads(member.read(length))
    if not isinstance(header, dict):
        raise ValueError(f"its {name} has no header that can be read")
    ends = [_end_of(name, *one) for one in cast("JsonObject", header).items()]
    if max(ends, default=0) != whole - _LENGTH.size - length:
        raise ValueError(f"its {name} has not the size of its tensors")


def _end_of(member: str, name: str, told: object) -> int:
    if name == "__metadata__":
        return 0
    offsets = cast("JsonObject", told).get("data_offsets") if isinstance(told, dict) else None
    match offsets:
        case [int(begin), int(end)] if 0 <= begin <= end:
            return end
        case _:
            raise ValueError(f"its {member} says nothing of the place of {name[:100]!r}")


def _refused(what: str, why: object) -> InvalidRequestError:
    told = f"{type(why).__name__}: {why}" if isinstance(why, Exception) else why
    return InvalidRequestError(
        f"{what} is not a file that a training writes: {told}",
        status_code=422,
        code="checkpoint_unreadable",
        hint="Write it with rleaas.training.checkpoint_file or state_file of this version",
    )

"""Checkpoints as files to give out: the same checkpoint makes the same bytes each time."""

import hashlib
import tempfile
import zipfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rlcore import CheckpointCorrupted, ServerFailure, UnsupportedRequestError

from rleaas.server.rules import agent_exports as rules

_CHUNK: Final = 1024 * 1024
_ALWAYS: Final = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip can name


@dataclass(frozen=True, slots=True)
class Source:
    """A checkpoint's file, with what is on record about it."""

    checkpoint_id: str
    path: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that can be given out."""

    path: Path
    sha256: str
    size_bytes: int


def require_available(form: str) -> None:
    """Refuse a form that no checkpoint of this server can have.

    Raises:
        UnsupportedRequestError: it is one of those.
    """
    why = rules.UNAVAILABLE.get(form)
    if why is not None:
        raise UnsupportedRequestError(
            f"this server cannot export {form}: {why}",
            code="export_format_unavailable",
            hint="Use format 'huggingface' or 'pytorch'",
        )


@contextmanager
def artifact(source: Source, form: str, facts: Mapping[str, object] | None) -> Generator[Artifact]:
    """The checkpoint in a form, while the block lasts; `facts` None leaves them out.

    `pytorch` is the checkpoint's own file, a zip of torch tensors. `huggingface` is a zip with the
    files of a model repository: that file, and with facts a model card and a configuration.

    Raises:
        UnsupportedRequestError: the form is not one that can be made.
        ServerFailure: the checkpoint's file is gone.
        CheckpointCorrupted: it is not the one that was stored.
    """
    require_available(form)
    require_whole(source)
    if form == "pytorch":
        yield Artifact(source.path, source.sha256, source.path.stat().st_size)
        return
    with tempfile.TemporaryDirectory(prefix="rleaas-export-") as directory:
        path = Path(directory) / f"{source.checkpoint_id}-{form}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            _add(archive, f"{source.checkpoint_id}.zip", source.path)
            if facts is not None:
                archive.writestr(_entry("README.md"), rules.model_card(facts))
                archive.writestr(_entry("config.json"), rules.config_json(facts))
        yield Artifact(path, digest(path), path.stat().st_size)


def require_whole(source: Source) -> None:
    """Check that the file is there and is the one that was stored.

    Raises:
        ServerFailure: it is gone.
        CheckpointCorrupted: it is another.
    """
    if not source.path.is_file():
        raise ServerFailure(
            f"the file of checkpoint {source.checkpoint_id!r} is gone from the server's data "
            "directory",
            code="checkpoint_file_missing",
            retryable=False,
        )
    actual = digest(source.path)
    if actual != source.sha256:
        raise CheckpointCorrupted(source.checkpoint_id, source.sha256, actual)


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _add(archive: zipfile.ZipFile, name: str, path: Path) -> None:
    with path.open("rb") as file, archive.open(_entry(name), "w", force_zip64=True) as member:
        while chunk := file.read(_CHUNK):
            member.write(chunk)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _ALWAYS)
    entry.external_attr = 0o644 << 16
    return entry

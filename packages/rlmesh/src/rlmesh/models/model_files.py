"""Files that hold policies: what is in them, and what they are known by."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Any, Final, cast

from rlcore import ConfigurationError

_MANIFEST: Final = "manifest.json"
_MANIFEST_LIMIT: Final = 16 * 1024 * 1024  # a page of text; more is nobody's manifest


class ModelFileError(ConfigurationError):
    """A file cannot be loaded as a model: it is missing, damaged, or of no known kind."""

    default_code = "model_file"


class FileKind(Enum):
    """What a file of a policy is."""

    SB3 = "stable-baselines3"
    MANIFEST = "a checkpoint with a manifest"
    TORCHSCRIPT = "TorchScript"
    EXPORTED = "torch.export"
    STATE_DICT = "torch state dict"
    ONNX = "ONNX"


def digest_of(*paths: Path) -> str:
    """Return `sha256:` and the digest of a file, or of several one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return f"sha256:{digest.hexdigest()}"


def kind_of(path: Path) -> FileKind:
    """Return what is in a file, by its content and not its name, but for ONNX.

    Raises:
        ModelFileError: it is not there, or nothing that can be loaded.
    """
    if path == Path():  # an empty text
        raise ModelFileError("no file is named", hint="Give the file of a policy.")
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise ModelFileError(f"{str(path)!r} {what}", hint="Give the file of a policy.")
    if path.suffix.lower() == ".onnx":
        return FileKind.ONNX
    if zipfile.is_zipfile(path):
        return _kind_of_zip(path)
    raise ModelFileError(
        f"{path.name!r} is no file of a policy that can be loaded",
        hint="These can: a stable-baselines3 zip, a torch file (TorchScript, torch.export, a state "
        "dict), an ONNX file named *.onnx, a checkpoint of rleaas.",
    )


def manifest_format(path: Path) -> str | None:
    """Return the `format` of the manifest inside a zip file, or None where there is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(_MANIFEST).file_size > _MANIFEST_LIMIT:
                return None
            content: object = json.loads(archive.read(_MANIFEST))
    except (KeyError, ValueError, zipfile.BadZipFile, OSError):
        return None
    found = cast("dict[str, Any]", content).get("format") if isinstance(content, dict) else None
    return found if isinstance(found, str) else None


def unreadable(path: Path, kind: str, error: BaseException) -> ModelFileError:
    """Return the error about a file whose content cannot be loaded."""
    return ModelFileError(
        f"{path.name!r} cannot be loaded as {kind}: {type(error).__name__}: {error}",
        hint="Save it again, with versions of its libraries that are like those installed here.",
    )


def _kind_of_zip(path: Path) -> FileKind:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile as error:
        raise unreadable(path, "a zip file", error) from error
    if manifest_format(path) is not None:
        return FileKind.MANIFEST
    if "data" in names and _has(names, "stable_baselines3_version"):
        return FileKind.SB3
    if _has(names, "constants.pkl") and any("/code/" in name for name in names):
        return FileKind.TORCHSCRIPT
    if path.suffix == ".pt2" or _has(names, "serialized_exported_program.json", "archive_format"):
        return FileKind.EXPORTED
    if _has(names, "data.pkl"):
        return FileKind.STATE_DICT
    raise ModelFileError(
        f"{path.name!r} is a zip file, and holds no policy that can be loaded",
        hint="stable-baselines3 saves one with model.save(...).",
    )


def _has(names: Iterable[str], *wanted: str) -> bool:
    return any(name.rpartition("/")[2].removeprefix("_") in wanted for name in names)

"""What a checkpoint's file says about itself, as far as it is one of ours."""

import json
import lzma
import zipfile
import zlib
from pathlib import Path
from typing import Final, cast

from rleaas.server.rules.json_values import problem_with
from rleaas.training.archive_formats import MANIFEST

_LIMIT: Final = 4 * 1024 * 1024
JsonObject = dict[str, object]
# Archives come from workers: damaged ones fail in many ways, encrypted ones with RuntimeError.
UNREADABLE: Final = (
    OSError,
    EOFError,
    KeyError,
    RuntimeError,
    ValueError,
    lzma.LZMAError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_manifest(path: Path) -> JsonObject | None:
    """The manifest in a file; None: it has none that can be read, as a file of another maker."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(MANIFEST).file_size > _LIMIT:
                return None
            found: object = json.loads(archive.read(MANIFEST))
    except UNREADABLE:
        return None
    if not isinstance(found, dict):
        return None
    manifest = cast("JsonObject", found)
    return manifest if problem_with(manifest) is None else None

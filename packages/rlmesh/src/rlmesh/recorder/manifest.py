"""The list of a bundle's files with their digests, by which tampering and damage are noticed."""

from __future__ import annotations

import json
from typing import Final

from rlcore import BundleError

from rlmesh.recorder.files import LARGEST_TEXT, Files, digest

MANIFEST: Final = "manifest.json"
MANIFEST_SCHEMA: Final = "rlmesh.manifest.v1"


def verify(files: Files) -> bool:
    """Return whether a bundle has a manifest, whose every file is as it says.

    Raises:
        BundleError: a file is missing, or is not the one that was recorded.
    """
    names = files.names()
    if MANIFEST not in names:
        return False
    for path, facts in _listed(files).items():
        if path not in names:
            raise BundleError(f"{path!r} is missing from the bundle", path=path)
        try:
            with files.open(path) as file:
                sha256, size = digest(file)
        except BundleError:
            raise
        except Exception as error:  # zlib.error, a wrong checksum, a file that ends too soon
            raise BundleError(f"{path!r} is damaged: {error}", path=path) from error
        if (sha256, size) != facts:
            raise BundleError(
                f"{path!r} is not the file that was recorded: its SHA-256 differs",
                path=path,
                code="tampered",
                hint="Get the bundle again; verify=False reads it as it is.",
            )
    return True


def _listed(files: Files) -> dict[str, tuple[str, int]]:
    try:
        document = json.loads(files.read(MANIFEST, LARGEST_TEXT))
        if document["schema"] != MANIFEST_SCHEMA:
            raise BundleError(f"the manifest is of schema {document['schema']!r}", path=MANIFEST)
        listed = {
            str(path): (str(facts["sha256"]), int(facts["bytes"]))
            for path, facts in document["files"].items()
        }
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        if isinstance(error, BundleError):
            raise
        raise BundleError(f"the manifest cannot be read: {error}", path=MANIFEST) from error
    if "result.json" not in listed:
        raise BundleError("the manifest does not list 'result.json'", path=MANIFEST)
    return listed

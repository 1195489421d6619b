"""Reading a bundle back, whoever wrote it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, cast

from rlcore import BundleError, Error

from rlmesh.recorder.files import LARGEST_TEXT, Files, files_of, inside
from rlmesh.recorder.manifest import MANIFEST
from rlmesh.recorder.manifest import verify as verified
from rlmesh.recorder.records import SCHEMA, ResultSet, WorkloadRecord
from rlmesh.recorder.rows import Row

RESULT: Final = "result.json"
DETAILS: Final = "details.json"
DETAILS_SCHEMA: Final = "rlmesh.details.v1"


def load(path: str | Path, *, verify: bool = True) -> ResultSet:
    """Return what a bundle says; media and trajectories are read when they are asked for.

    Bundles of the published recorder are read as well: they have no trajectories, no manifest
    (`verified` is false) and no outcomes but those that their episodes imply.

    Args:
        path: a folder or a zip file. Nothing of a zip is unpacked to the disk.
        verify: compare every file with the digest that the bundle's manifest has of it.

    Raises:
        BundleError: it is no bundle, it is damaged, or a file is not the one that was recorded.
    """
    files = files_of(Path(path))
    try:
        return _loaded(files, verify=verify)
    except BaseException:
        files.close()
        raise


def _loaded(files: Files, *, verify: bool) -> ResultSet:
    names = files.names()
    if RESULT not in names:
        raise BundleError(f"there is no {RESULT!r}, so this is no bundle", path=RESULT)
    sound = verified(files) if verify else False
    document = _document(files, RESULT)
    if document.data.get("schema") != SCHEMA:
        raise BundleError(
            f"{RESULT!r} is of schema {document.data.get('schema')!r:.80}",
            path=RESULT,
            hint=f"This version reads {SCHEMA!r}.",
        )
    more = _document(files, DETAILS) if DETAILS in names else None
    if more is not None and more.data.get("schema") != DETAILS_SCHEMA:
        schema = more.data.get("schema")
        raise BundleError(f"{DETAILS!r} is of schema {schema!r:.80}", path=DETAILS)
    try:
        rows = list(document.rows("workloads"))
        details = [None] * len(rows) if more is None else list(more.rows("workloads"))
        if len(details) != len(rows):
            raise BundleError(f"there are {len(rows)} workloads, and details of {len(details)}")
        found = ResultSet(
            result_set_id=document.text("resultSetId"),
            workloads=[
                WorkloadRecord.from_dict(row, its, files)
                for row, its in zip(rows, details, strict=True)
            ],
            recorded_at=document.maybe_text("recordedAt"),
            verified=sound,
            files=files,
        )
    except Error as error:
        raise BundleError(f"{RESULT!r} is no result of a run: {error}", path=RESULT) from error
    _require_files(found, names)
    return found


def _document(files: Files, path: str) -> Row:
    try:
        document: object = json.loads(files.read(path, LARGEST_TEXT))
    except (ValueError, RecursionError) as error:
        if isinstance(error, BundleError):
            raise
        raise BundleError(f"{path!r} is no JSON: {error}", path=path) from error
    if not isinstance(document, dict):
        raise BundleError(f"{path!r} is no JSON object", path=path)
    return Row(cast("object", document), repr(path))


def _require_files(found: ResultSet, names: frozenset[str]) -> None:
    for workload in found.workloads:
        for episode in workload.episodes:
            paths = [media.path for media in episode.media]
            if episode.trajectory is not None:
                paths.append(episode.trajectory.path)
                if episode.trajectory.parquet is not None:
                    paths.append(episode.trajectory.parquet)
            for path in paths:
                if inside(path) in (RESULT, DETAILS, MANIFEST):
                    raise BundleError(f"{path!r} is no file of an episode", path=path)
                if path not in names:
                    raise BundleError(f"{path!r} is missing from the bundle", path=path)

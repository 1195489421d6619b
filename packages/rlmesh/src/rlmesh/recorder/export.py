"""Writing a bundle: a folder or a zip, its manifest last."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rlcore import ConfigurationError, RecordingError

from rlmesh.recorder.loading import DETAILS, DETAILS_SCHEMA, RESULT
from rlmesh.recorder.manifest import MANIFEST, MANIFEST_SCHEMA
from rlmesh.recorder.records import ResultSet
from rlmesh.recorder.sinks import REPORT, Sink, sink_of

_BLOCK: Final = 1 << 20


def export(
    found: ResultSet,
    path: str | Path,
    *,
    archive: bool | str | None = None,
    recorded_at: str | None = None,
    report: bool = False,
) -> Path:
    """Write a result set with its media and trajectories, and return where it is.

    A bundle that is there already is replaced as a whole; other files beside it in the folder stay.

    Args:
        found: what to write.
        path: of the folder or the zip file.
        archive: True or `zip` for a zip file, False, `folder` or `dir` for a folder; by default a
            zip where the path ends so.
        recorded_at: the time that the bundle says, by default now.
        report: also put the HTML report into it.

    Raises:
        BundleInTheWay: there is a file where the folder should be, a folder where the zip should
            be, or something that would be replaced and is no bundle, or none of a bundle's files.
        ConfigurationError: `archive` is something else.
        RecordingError: it cannot be written; what was there before is still there.
        BundleError: a file that belongs into it cannot be read.
    """
    target = Path(path)
    zipped = _is_zip(target, archive)
    stamped = now() if recorded_at is None else recorded_at
    try:
        with sink_of(target, zipped=zipped) as sink:
            _write(found, sink, stamped, report=report)
            sink.finish()
    except OSError as error:
        if isinstance(error, ConfigurationError):
            raise
        raise RecordingError(
            f"the bundle {str(target)!r} cannot be written: {error.strerror or error}",
            hint="Make room, or choose another place, and export again.",
        ) from error
    return target


def now() -> str:
    """Return the time as bundles say it: ISO 8601 in UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _write(found: ResultSet, sink: Sink, recorded_at: str, *, report: bool) -> None:
    listed: dict[str, object] = {}

    def put(name: str, blocks: Iterator[bytes], *, stored: bool) -> None:
        digest, size = hashlib.sha256(), 0
        with sink.open(name, stored=stored) as file:
            for block in blocks:
                file.write(block)
                digest.update(block)
                size += len(block)
        listed[name] = {"sha256": digest.hexdigest(), "bytes": size}

    put(RESULT, iter([_json(found.to_dict(recorded_at=recorded_at))]), stored=False)
    details = {
        "schema": DETAILS_SCHEMA,
        "resultSetId": found.result_set_id,
        "workloads": [workload.details_dict() for workload in found.workloads],
    }
    put(DETAILS, iter([_json(details)]), stored=False)
    for name in _carried(found):
        put(name, _blocks(found, name), stored=True)
    if report:
        from rlmesh.recorder.report import html_report

        page = html_report(found, recorded_at=recorded_at, embed=0, links=".")
        put(REPORT, iter([page.encode()]), stored=False)
    manifest = {
        "schema": MANIFEST_SCHEMA,
        "resultSetId": found.result_set_id,
        "files": dict(sorted(listed.items())),
    }
    with sink.open(MANIFEST, stored=False) as file:
        file.write(_json(manifest))


def _json(document: dict[str, Any]) -> bytes:  # Any: JSON
    try:
        return json.dumps(document, indent=2, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"the recording holds what JSON cannot: {error}",
            hint="Give labels as text, and a `config` of numbers, text, lists and dictionaries.",
        ) from error


def _carried(found: ResultSet) -> list[str]:
    names: dict[str, None] = {}
    for workload in found.workloads:
        for episode in workload.episodes:
            names.update(dict.fromkeys(media.path for media in episode.media))
            if episode.trajectory is not None:
                names[episode.trajectory.path] = None
                if episode.trajectory.parquet is not None:
                    names[episode.trajectory.parquet] = None
    return list(names)


def _blocks(found: ResultSet, name: str) -> Iterator[bytes]:
    if found.files is None:
        raise RecordingError(f"{name!r} is not at hand", hint="Load the bundle again.")
    with found.files.open(name) as file:
        while block := file.read(_BLOCK):
            yield block


def _is_zip(path: Path, archive: bool | str | None) -> bool:
    match archive:
        case None:
            return path.suffix.lower() == ".zip"
        case bool():
            return archive
        case "zip":
            return True
        case "folder" | "dir":
            return False
        case _:
            raise ConfigurationError(
                f"archive is {archive!r}", hint="Give 'zip' or 'folder', True or False."
            )

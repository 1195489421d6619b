"""Writing a bundle: a folder or a zip, its manifest last."""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Protocol, Self

from rlcore import ConfigurationError, RecordingError

from rlmesh.recorder.loading import DETAILS, DETAILS_SCHEMA, RESULT
from rlmesh.recorder.manifest import MANIFEST, MANIFEST_SCHEMA
from rlmesh.recorder.records import ResultSet

REPORT: Final = "report.html"
_OWN: Final = ("media", "trajectories", RESULT, DETAILS, MANIFEST, REPORT)
_BLOCK: Final = 1 << 20


class BundleInTheWay(ConfigurationError, FileExistsError):
    """What is at the path is no bundle that could be replaced."""

    default_code = "bundle_in_the_way"


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
            be, or a folder with media that belong to no bundle.
        ConfigurationError: `archive` is something else.
        RecordingError: it cannot be written; what was there before is still there.
        BundleError: a file that belongs into it cannot be read.
    """
    target = Path(path)
    zipped = _is_zip(target, archive)
    _require_place(target, zipped=zipped)
    stamped = now() if recorded_at is None else recorded_at
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        sink: _Sink = _ZipSink(target) if zipped else _FolderSink(target)
        with sink:
            _write(found, sink, stamped, report=report)
            sink.finish()
    except OSError as error:
        raise RecordingError(
            f"the bundle {str(target)!r} cannot be written: {error.strerror or error}",
            hint="Make room, or choose another place, and export again.",
        ) from error
    return target


def now() -> str:
    """Return the time as bundles say it: ISO 8601 in UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _write(found: ResultSet, sink: _Sink, recorded_at: str, *, report: bool) -> None:
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


def _require_place(target: Path, *, zipped: bool) -> None:
    if zipped:
        if target.is_dir():
            raise BundleInTheWay(f"{str(target)!r} is a folder", hint="Choose another path.")
    elif target.exists() and not target.is_dir():
        raise BundleInTheWay(f"{str(target)!r} is a file", hint="Choose another path.")
    else:
        for name in ("media", "trajectories"):
            if (target / name).exists() and not (target / RESULT).exists():
                raise BundleInTheWay(
                    f"{str(target / name)!r} is there without a {RESULT!r}, so it is none of ours",
                    hint="Choose another path, or move it away.",
                )


class _Sink(Protocol):
    def open(self, name: str, *, stored: bool) -> IO[bytes]: ...

    def finish(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class _FolderSink:
    """Writes beside what is there, and puts all of it in place when it is complete."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._made = not target.exists()
        self._beside = target / f".rlmesh-export-{uuid.uuid4().hex}"

    def open(self, name: str, *, stored: bool) -> IO[bytes]:
        path = self._beside / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("xb")

    def finish(self) -> None:
        # Without its manifest, an export that is cut short here is at least not taken for sound.
        for name in reversed(_OWN):
            old = self._target / name
            if old.is_dir() and not old.is_symlink():
                shutil.rmtree(old)
            else:
                old.unlink(missing_ok=True)
        for name in _OWN:
            new = self._beside / name
            if new.exists():
                new.replace(self._target / name)

    def __enter__(self) -> Self:
        self._beside.mkdir(parents=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shutil.rmtree(self._beside, ignore_errors=True)
        if error is not None and self._made and not any(self._target.iterdir()):
            self._target.rmdir()


class _ZipSink:
    """Writes a file beside the one that is there, and renames it when it is complete."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._beside = target.with_name(f".{target.name}-{uuid.uuid4().hex}")
        self._archive = zipfile.ZipFile(self._beside, "x")

    def open(self, name: str, *, stored: bool) -> IO[bytes]:
        entry = zipfile.ZipInfo(name, datetime.now(UTC).timetuple()[:6])
        # Videos and trajectories are compressed already, and can be read from the middle as stored.
        entry.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
        entry.external_attr = 0o644 << 16
        return self._archive.open(entry, "w", force_zip64=True)

    def finish(self) -> None:
        self._archive.close()
        self._beside.replace(self._target)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._archive.close()
        finally:
            self._beside.unlink(missing_ok=True)

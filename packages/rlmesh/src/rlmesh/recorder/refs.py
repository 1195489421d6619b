"""The files of an episode: what a bundle says about its videos and its trajectory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from rlcore import BundleError

from rlmesh.recorder.files import Files
from rlmesh.recorder.rows import Row
from rlmesh.recorder.trajectory import Trajectory

Json = dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class MediaRef:
    """A video of an episode; `path` is relative to the bundle, with forward slashes."""

    camera: str
    kind: str
    path: str
    format: str
    frame_count: int | None = None
    width: int | None = None
    height: int | None = None
    fps: float | None = None
    files: Files | None = field(default=None, compare=False, repr=False)

    def to_dict(self) -> Json:
        """Return the row that `result.json` has for it."""
        row: Json = {
            "camera": self.camera,
            "kind": self.kind,
            "path": self.path,
            "format": self.format,
        }
        known = {
            "frameCount": self.frame_count,
            "width": self.width,
            "height": self.height,
            "fps": self.fps,
        }
        return row | {key: value for key, value in known.items() if value is not None}

    @classmethod
    def from_row(cls, row: Row, files: Files | None = None) -> Self:
        """Return the media of a row of `result.json`; `files` is where it is read from.

        Raises:
            BundleError: a value is missing, or is of another type.
        """
        return cls(
            camera=row.text("camera"),
            kind=row.text("kind"),
            path=row.text("path"),
            format=row.text("format"),
            frame_count=row.maybe_integer("frameCount"),
            width=row.maybe_integer("width"),
            height=row.maybe_integer("height"),
            fps=row.maybe_number("fps"),
            files=files,
        )

    def read(self) -> bytes:
        """Return the file's content.

        Raises:
            BundleError: it is not there, or the record was not loaded from a bundle.
        """
        return _files(self.files, self.path).read(self.path)


@dataclass(frozen=True, slots=True)
class TrajectoryRef:
    """The steps of an episode; read with `load`.

    Attributes:
        path: of the npz file, relative to the bundle.
        steps: how many there are.
        parquet: path of the same steps as Parquet, where they were asked for.
        observations: whether the observations themselves were kept.
    """

    path: str
    steps: int
    parquet: str | None = None
    observations: bool = False
    files: Files | None = field(default=None, compare=False, repr=False)

    def to_dict(self) -> Json:
        """Return the row that `details.json` has for it."""
        return {
            "path": self.path,
            "format": "npz",
            "steps": self.steps,
            "parquet": self.parquet,
            "observations": self.observations,
        }

    @classmethod
    def from_row(cls, row: Row, files: Files | None = None) -> Self:
        """Return what a row of `details.json` says.

        Raises:
            BundleError: a value is missing, or is of another type.
        """
        return cls(
            path=row.text("path"),
            steps=row.count("steps"),
            parquet=row.maybe_text("parquet"),
            observations=row.flag("observations"),
            files=files,
        )

    def load(self) -> Trajectory:
        """Open the trajectory; close it after use.

        Raises:
            BundleError: it is missing or damaged, or the record was not loaded from a bundle.
        """
        return Trajectory(_files(self.files, self.path).open(self.path), self.path)


def _files(files: Files | None, path: str) -> Files:
    if files is None:
        raise BundleError(
            f"{path!r} cannot be read from a record that was made in memory",
            path=path,
            hint="Export the recorder, then use rlmesh.recorder.load.",
        )
    return files

"""An episode that is being recorded: its steps on the run's thread, its files on the worker's."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

from rlcore import ConfigurationError

from rlmesh.recorder import carried
from rlmesh.recorder.naming import safe_name
from rlmesh.recorder.options import CaptureOptions
from rlmesh.recorder.recording import Recording
from rlmesh.recorder.records import EpisodeRecord, MediaRef, TrajectoryRef
from rlmesh.recorder.trajectory import TrajectoryWriter
from rlmesh.recorder.video import Video
from rlmesh.runs.pictures import Picture
from rlmesh.runs.results import EpisodeResult

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO})


class OpenEpisode:
    """Collects one episode; made, fed and ended on the run's thread.

    Args:
        recording: what it belongs to.
        options: what is recorded.
    """

    def __init__(self, recording: Recording, options: CaptureOptions) -> None:
        self._recording = recording
        self._options = options
        self._videos: dict[str, Video] = {}
        self.lane: int | None = None
        self.total = 0.0
        self.carried: str | None = None
        self.writer = (
            TrajectoryWriter(
                recording.staging.open_file(""),
                observations=options.observations,
                info_keys=options.info_keys,
            )
            if options.trajectories and not recording.halted
            else None
        )

    def film(self, camera: str, picture: Picture, text: str | None) -> None:
        """Encode a picture on the worker; the video is made with the first one."""
        self._recording.worker.put(
            lambda: self._encode(camera, picture, text), weight=picture.nbytes
        )

    def end(self, number: int, result: EpisodeResult) -> None:
        """Finish the episode's files and keep its record, on the worker."""
        # Its columns keep some memory each; the arrays of numbers a little for each step.
        weight = 1 << 20 if self.writer is not None else 0
        self._recording.worker.put(lambda: self._finish(number, result), weight=weight)

    def abandon(self) -> None:
        """Throw the episode away, on the worker."""
        self._recording.worker.put(self._throw_away)

    def _encode(self, camera: str, picture: Picture, text: str | None) -> None:
        recording = self._recording
        if recording.halted or camera in recording.broken:
            return
        try:
            video = self._videos.get(camera)
            if video is None:
                video = Video(recording.open_file("mp4"), recording.settings)
                self._videos[camera] = video
            if text is not None:
                from rlmesh.recorder.hud import draw

                draw(picture, text)
            video.write(picture)
        except Exception as error:
            self._failed(camera, error)

    def _failed(self, camera: str, error: Exception) -> None:
        if isinstance(error, OSError) and error.errno in _FULL:
            self._recording.halt(error)
            return
        self._recording.broken.add(camera)
        video = self._videos.pop(camera, None)
        if video is not None:
            video.abandon()
        what = f"{type(error).__name__}: {error}"
        self._recording.warn(f"camera {camera!r} is not recorded any more: {what}")

    def _finish(self, number: int, result: EpisodeResult) -> None:
        media: list[MediaRef] = []
        trajectory: TrajectoryRef | None = None
        try:
            if not self._recording.halted:
                media = self._finished_videos(number)
                media += self._carried(number)
                trajectory = self._written(number)
        except OSError as error:
            self._recording.halt(error)
        finally:
            self._throw_away()
        record = EpisodeRecord.from_result(
            result,
            index=len(self._recording.workloads[number].episodes),
            included_in_metrics=self._options.included_in_metrics,
            media=tuple(media),
            lane=self.lane,
            trajectory=trajectory,
        )
        self._recording.add_episode(number, record)

    def _finished_videos(self, number: int) -> list[MediaRef]:
        media: list[MediaRef] = []
        for camera, video in list(self._videos.items()):
            try:
                video.finish()
            except Exception as error:
                self._failed(camera, error)
                continue
            path = self._recording.place(video.path, "media", number, safe_name(camera), "mp4")
            del self._videos[camera]
            media.append(
                MediaRef(
                    camera=camera,
                    kind="video",
                    path=path,
                    format="mp4",
                    frame_count=video.frames,
                    width=video.width,
                    height=video.height,
                    fps=float(self._recording.settings.fps),
                )
            )
        return media

    def _carried(self, number: int) -> list[MediaRef]:
        if self.carried is None:
            return []
        try:
            found = carried.carried(self.carried)
            staged = self._recording.open_file(found.ending)
            carried.copy(found, staged)
        except ConfigurationError as error:
            self._recording.warn(error.message)
            return []
        name = carried.CAMERA
        path = self._recording.place(staged, "media", number, name, found.ending)
        return [MediaRef(camera=name, kind="video", path=path, format=found.ending)]

    def _written(self, number: int) -> TrajectoryRef | None:
        writer = self.writer
        if writer is None:
            return None
        recording = self._recording
        staged = recording.open_file("npz")
        writer.write(staged)
        return TrajectoryRef(
            path=recording.place(staged, "trajectories", number, "steps", "npz"),
            steps=writer.steps,
            parquet=self._parquet(number, writer) if self._options.parquet else None,
            observations=self._options.observations,
        )

    def _parquet(self, number: int, writer: TrajectoryWriter) -> str | None:
        from rlmesh.recorder.parquet import write_parquet

        recording = self._recording
        table: Path = recording.open_file("parquet")
        try:
            write_parquet(table, writer)
        except OSError:
            raise
        except Exception as error:  # pyarrow has no type for some of NumPy's
            table.unlink(missing_ok=True)
            what = f"{type(error).__name__}: {error}"
            recording.warn(f"the steps of an episode have no form in Parquet: {what}")
            return None
        return recording.place(table, "trajectories", number, "steps", "parquet")

    def _throw_away(self) -> None:
        for video in self._videos.values():
            video.abandon()
        self._videos.clear()
        if self.writer is not None:
            self.writer.close()
            self.writer = None

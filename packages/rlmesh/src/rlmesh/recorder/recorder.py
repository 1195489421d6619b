"""`Recorder`: keeps what runs do, and writes it as a bundle."""

from __future__ import annotations

import atexit
import logging
import uuid
import warnings
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rlcore import BundleError, ConfigurationError, RecordingError

from rlmesh.recorder.capture import Capture
from rlmesh.recorder.export import export, now
from rlmesh.recorder.files import FolderFiles
from rlmesh.recorder.options import ObservationsToKeep, as_json, checked_options, checked_workload
from rlmesh.recorder.recording import Recording
from rlmesh.recorder.records import EpisodeRecord, ResultSet, WorkloadRecord
from rlmesh.recorder.staging import Staging
from rlmesh.recorder.video import CodecName, VideoSettings
from rlmesh.runs.hooks import RunContext, RunHooks
from rlmesh.runs.results import RunResult

_log = logging.getLogger("rlmesh.recorder")
_LIVE: weakref.WeakSet[Recorder] = weakref.WeakSet()


class Recorder:
    """Records runs into a `rlmesh.result.v1` bundle: results, videos, and every step.

    A context manager, which closes the recorder: export before. Where an exception leaves it, what
    was not exported stays in the staging folder, and the log says where.

    Args:
        result_set_id: the bundle's id; a new one by default.
        fps: frames per second of videos, at least 1.
        quality: of videos, 1 to 100.
        codec: of videos: `av1`, or `h264` for players that do not know it.
        staging: a folder for what is recorded but not exported yet; by default one among the
            system's temporary files. A process that is killed leaves it, and `recover` reads it.
        strict: raise `RecordingError` in the run when the disk is full. By default the recording
            stops with a warning, and the run goes on.

    Raises:
        ConfigurationError: an argument is out of range.
    """

    def __init__(
        self,
        *,
        result_set_id: str | None = None,
        fps: int = 30,
        quality: int = 60,
        codec: CodecName = "av1",
        staging: str | Path | None = None,
        strict: bool = False,
    ) -> None:
        settings = VideoSettings(fps=fps, quality=quality, codec=codec)
        if not isinstance(result_set_id, str | None):  # pyright: ignore[reportUnnecessaryIsInstance]  # a user's
            raise ConfigurationError(f"result_set_id is {result_set_id!r}", hint="Give text.")
        self._recording = Recording(
            Staging(staging),
            settings,
            uuid.uuid4().hex if result_set_id is None else result_set_id,
            strict=strict,
        )
        self._closed = False
        self._files_lost = False
        self._kept: Path | None = None
        self._finalizer = weakref.finalize(self, _drop, self._recording)
        self._finalizer.atexit = False
        _LIVE.add(self)

    @classmethod
    def recover(cls, staging: str | Path, **settings: Any) -> Self:  # Any: as the constructor's
        """Return a recorder with every finished episode that a killed process left.

        Args:
            staging: the folder in which it recorded.
            settings: `fps`, `quality`, `codec` and `strict` for what is recorded from now on.

        Raises:
            BundleError: nothing was recorded there.
            RecordingError: a process is still recording there.
        """
        folder = Staging(staging)
        lines = folder.reopen()
        recorder = cls(result_set_id=str(lines[0]["resultSetId"]), **settings)
        recording = recorder._recording
        recording.staging = folder
        try:
            for line in lines[1:]:
                recording.restore(line)
        except (LookupError, TypeError, ValueError) as error:
            folder.release()
            raise BundleError(
                f"the journal in {str(staging)!r} is damaged: {error!r}", path=str(staging)
            ) from error
        recording.exported = False
        return recorder

    @property
    def result_set_id(self) -> str:
        """The bundle's id."""
        return self._recording.result_set_id

    @property
    def staging(self) -> Path | None:
        """The folder with what is not exported yet; None before anything was recorded."""
        staging = self._recording.staging
        return staging.folder if staging.exists else None

    @property
    def workloads(self) -> tuple[WorkloadRecord, ...]:
        """What was recorded so far, one for each `add` and `capture`."""
        self._recording.settle(stacklevel=3)
        return tuple(self._recording.workloads)

    def add(
        self,
        result: RunResult,
        *,
        model: str,
        env: str,
        task: str | None = None,
        config: Mapping[str, Any] | None = None,  # Any: JSON
        included_in_metrics: bool = True,
    ) -> WorkloadRecord:
        """Keep the episodes of a finished run, and return the workload that they became.

        Args:
            result: what `rlmesh.run` returned.
            model: what to call the model.
            env: what to call the environment.
            task: what to call the task; by default as the environment.
            config: anything else worth knowing, as JSON holds it.
            included_in_metrics: whether the episodes count in the bundle's averages.

        Raises:
            ConfigurationError: a label is no text, or JSON cannot hold `config` or the result.
        """
        self._recording.settle(stacklevel=3)
        workload = checked_workload(model, env, task, config)
        workload.episodes += [
            EpisodeRecord.from_result(
                episode, index=index, included_in_metrics=bool(included_in_metrics)
            )
            for index, episode in enumerate(result.episodes)
        ]
        run = {key: value for key, value in result.to_dict().items() if key != "episodes"}
        workload.details["run"] = run
        as_json([workload.to_dict(), workload.details_dict()], "the result")
        self._recording.add_workload(workload)
        return workload

    def capture(
        self,
        *,
        model: str,
        env: str,
        task: str | None = None,
        config: Mapping[str, Any] | None = None,  # Any: JSON
        cameras: Sequence[str] | None = None,
        session: RunContext | None = None,
        video_info_keys: Sequence[str] = ("video_artifact_path", "video_url"),
        included_in_metrics: bool = True,
        trajectories: bool = True,
        observations: ObservationsToKeep = "none",
        info_keys: Sequence[str] = (),
        parquet: bool = False,
        hud: bool = False,
        source: str | None = None,
        env_kwargs: Mapping[str, object] | None = None,
    ) -> RunHooks:
        """Return hooks that record a run while it happens: `rlmesh.run(..., hooks=...)`.

        The workload is there at once, even if the run fails. The same hooks may serve several
        runs, one after another; their episodes are numbered on, in the order in which they end.

        Args:
            model: what to call the model.
            env: what to call the environment.
            task: what to call the task; by default as the environment.
            config: anything else worth knowing, as JSON holds it.
            cameras: what to film, such as `render`; by default everything that can be looked at,
                an empty list for nothing.
            session: a session to take pictures from, where the run itself has none.
            video_info_keys: infos that name a video of the environment's own. It is copied if it is
                a file in the current directory.
            included_in_metrics: whether the episodes count in the bundle's averages.
            trajectories: keep every step: action, reward, flags, times, and a digest of each
                observation, with which a replay compares.
            observations: True keeps the observations as well.
            info_keys: which infos to keep for every step.
            parquet: also write the steps as Parquet.
            hud: draw episode, step, return and seed on the frames.
            source: what `rlmesh replay` makes the environment from: a gymnasium id,
                `module:attribute`, or an address; it follows the latter two only where it is told
                to trust the bundle. By default what gymnasium made, as far as that says all.
            env_kwargs: what it is made with.

        Raises:
            ConfigurationError: an argument cannot be.
            MissingDependencyError: the extra `video` or `parquet` is needed and not installed.
            RecordingError: the recorder is closed.
        """
        self._require_open()
        options = checked_options(
            cameras=cameras,
            session=session,
            video_info_keys=video_info_keys,
            included_in_metrics=bool(included_in_metrics),
            trajectories=trajectories,
            observations=observations,
            info_keys=info_keys,
            parquet=parquet,
            hud=hud,
            source=source,
            env_kwargs=env_kwargs,
        )
        workload = checked_workload(model, env, task, config)
        self._recording.settle(stacklevel=3)
        return Capture(self._recording, self._recording.add_workload(workload), options, self)

    def result_set(self) -> ResultSet:
        """Return what was recorded so far, its media and trajectories readable."""
        return self._result_set()

    def to_dict(self, *, recorded_at: str | None = None) -> dict[str, Any]:  # Any: JSON
        """Return the document `result.json` as it would be exported now."""
        return self._result_set().to_dict(recorded_at=now() if recorded_at is None else recorded_at)

    def export(
        self,
        path: str | Path,
        *,
        archive: bool | str | None = None,
        recorded_at: str | None = None,
        report: bool = False,
    ) -> Path:
        """Write the bundle, and return where it is; recording may go on, and be exported again.

        Args:
            path: of a folder, or of a zip file.
            archive: True or `zip` for a zip file, False, `folder` or `dir` for a folder; by default
                a zip where the path ends so.
            recorded_at: the time that the bundle says, by default now.
            report: also put an HTML report into it.

        Raises:
            BundleInTheWay: what is at the path is no bundle; also a `FileExistsError`.
            ConfigurationError: `archive`, a label or a config cannot be.
            RecordingError: the disk does not take it; or the recorder is closed and its videos are
                gone.
        """
        found = self._result_set()
        if self._files_lost:
            found = self._without_files(found)
        written = export(found, path, archive=archive, recorded_at=recorded_at, report=report)
        self._recording.exported = True
        return written

    def close(self) -> None:
        """Delete what was staged. A staging folder that was chosen stays until it is exported."""
        self._close(keep=self._recording.staging.chosen)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close(keep=error is not None or self._recording.staging.chosen)

    def __repr__(self) -> str:
        return f"<Recorder {self.result_set_id!r}: {len(self._recording.workloads)} workloads>"

    def _close(self, *, keep: bool) -> None:
        if self._closed:
            return
        self._closed = True
        self._finalizer.detach()
        recording = self._recording
        if recording.foreign:
            return
        try:
            recording.settle(stacklevel=4)
        except BaseException:
            keep = True
            raise
        finally:
            recording.close()
            self._files_lost = recording.staging.exists
            self._kept = _leave(recording, keep=keep)

    def _leave_at_exit(self) -> None:
        if not self._closed and not self._recording.foreign:
            self._recording.close()
            _leave(self._recording, keep=True)

    def _result_set(self) -> ResultSet:
        if not self._closed:
            self._recording.settle(stacklevel=5)
        staging = self._recording.staging
        files = FolderFiles(staging.folder) if staging.exists else None
        return ResultSet(
            result_set_id=self.result_set_id,
            workloads=[_reading(workload, files) for workload in self._recording.workloads],
            verified=True,
            files=files,
        )

    def _without_files(self, found: ResultSet) -> ResultSet:
        episodes = [episode for workload in found.workloads for episode in workload.episodes]
        if any(episode.media for episode in episodes):
            if self._kept is not None:
                raise RecordingError(
                    "the recorder is closed",
                    hint=f"Export what Recorder.recover({str(self._kept)!r}) returns.",
                )
            raise RecordingError(
                "the recorder is closed, and the videos that it had staged are deleted",
                hint="Export before the recorder is closed.",
            )
        if any(episode.trajectory is not None for episode in episodes):
            warnings.warn("the recorder is closed: the bundle has no trajectories", stacklevel=3)
        return found.without_files()

    def _require_open(self) -> None:
        self._recording.require_open()


def _reading(workload: WorkloadRecord, files: FolderFiles | None) -> WorkloadRecord:
    if files is None:
        return workload
    return WorkloadRecord.from_dict(workload.to_dict(), workload.details_dict(), files)


def _drop(recording: Recording) -> None:
    """Leave what a recorder has that nobody has any more; on whatever thread finds that out."""
    if not recording.foreign:
        recording.worker.retire(lambda: _leave(recording, keep=True))


def _leave(recording: Recording, *, keep: bool) -> Path | None:
    """Remove what was staged; with `keep`, only if it was exported or is nothing."""
    staging = recording.staging
    if not staging.exists:
        return None
    unexported = not recording.exported
    if keep and unexported and any(workload.episodes for workload in recording.workloads):
        folder = staging.folder
        staging.release()
        _log.warning("what was recorded is not exported; Recorder.recover(%r) has it", str(folder))
        return folder
    staging.remove()
    return None


@atexit.register
def _keep() -> None:
    """Leave what is the only copy: a script that raises has not come to its export."""
    for recorder in list(_LIVE):
        recorder._leave_at_exit()  # pyright: ignore[reportPrivateUsage]  # of this room

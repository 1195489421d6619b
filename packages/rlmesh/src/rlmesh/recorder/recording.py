"""What a recorder and its hooks share: staged files, the worker, and what went wrong."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final

from rlcore import RecordingError

from rlmesh.recorder.naming import episode_folder, unique
from rlmesh.recorder.records import EpisodeRecord, WorkloadRecord
from rlmesh.recorder.staging import Json, Staging
from rlmesh.recorder.video import VideoSettings
from rlmesh.recorder.worker import Worker

WAITING: Final = 16 * 2**20
"""Bytes of frames and trajectories that may wait for the worker; then the run waits as well."""


class Recording:
    """The state of one recorder. Slow work is done by `worker`, in order.

    Args:
        staging: where files lie until they are exported.
        settings: how videos are made.
        result_set_id: the id of the whole.
        strict: end the run when its recording cannot go on, rather than go on without.
    """

    def __init__(
        self, staging: Staging, settings: VideoSettings, result_set_id: str, *, strict: bool
    ) -> None:
        self.staging = staging
        self.settings = settings
        self.result_set_id = result_set_id
        self.worker = Worker(WAITING)
        self.workloads: list[WorkloadRecord] = []
        self.exported = True
        self.runs = 0
        self.broken: set[str] = set()
        self._strict = strict
        self._lock = Lock()
        self._untold: list[str] = []
        self._halted: OSError | None = None
        self._halt_untold = False
        self._taken: set[str] = set()
        self._numbers = 0
        self._closed = False
        self._process = os.getpid()

    @property
    def halted(self) -> bool:
        """Whether nothing more is written: the disk would not take it, or the end has come."""
        return self._halted is not None or self._closed

    @property
    def foreign(self) -> bool:
        """Whether this process was forked by the one that records, whose files they are."""
        return os.getpid() != self._process

    def require_open(self) -> None:
        """Do nothing while something can be recorded.

        Raises:
            RecordingError: the recorder is closed, or another process's.
        """
        if self._closed:
            raise RecordingError("the recorder is closed", hint="Make another one.")
        self.require_own()

    def require_own(self) -> None:
        """Do nothing in the process that records.

        Raises:
            RecordingError: this is another one.
        """
        if self.foreign:
            raise RecordingError(
                "the recorder belongs to the process that this one was forked from",
                hint="Make one in each process, and merge their bundles.",
            )

    def close(self) -> None:
        """Record nothing more; a run that goes on hears of it, and goes on without."""
        self._closed = True
        if self.runs:
            self.warn("the recorder was closed in the middle of a run, which is not recorded on")
        self.worker.close()

    def start(self) -> None:
        """Make the place for files; a disk that does not take it halts the recording."""
        known = self.staging.exists
        try:
            self.staging.start({"resultSetId": self.result_set_id})
            if not known:
                for number, workload in enumerate(self.workloads):
                    self.staging.append(*_lines(number, workload))
        except OSError as error:
            self.halt(error)

    def add_workload(self, workload: WorkloadRecord) -> int:
        """Keep a workload with its episodes, and return its number."""
        self.workloads.append(workload)
        self.exported = False
        number = len(self.workloads) - 1
        self.note(*_lines(number, workload))
        return number

    def add_episode(self, number: int, record: EpisodeRecord) -> None:
        """Keep an episode whose files are in place."""
        self.workloads[number].episodes.append(record)
        self.exported = False
        self.note(episode_line(number, record))

    def describe(self, number: int, details: Json) -> None:
        """Keep what is known about a workload beside its episodes."""
        self.workloads[number].details.update(details)
        self.exported = False
        self.note({"kind": "details", "workload": number, "details": details})

    def restore(self, line: Json) -> None:
        """Take in what a line of an earlier process's journal says."""
        number = int(line["workload"])
        match line["kind"]:
            case "workload":
                model, env, task = str(line["model"]), str(line["env"]), str(line["task"])
                made = WorkloadRecord(model, env, task, line["config"], details=line["details"])
                self.workloads.append(made)
            case "details":
                self.workloads[number].details.update(line["details"])
            case "episode":
                record = EpisodeRecord.from_dict(line["record"], line["details"])
                self.workloads[number].episodes.append(record)
            case kind:
                raise ValueError(f"a line of kind {kind!r}")

    def note(self, *lines: Json) -> None:
        """Write lines to the journal; a disk that does not take them halts the recording."""
        if self.halted or not self.staging.exists:
            return
        try:
            self.staging.append(*lines)
        except OSError as error:
            self.halt(error)

    def place(self, source: Path, kind: str, number: int, name: str, ending: str) -> str:
        """Move a file of the next episode of a workload to its place, and return that.

        Raises:
            OSError: the disk does not take it.
        """
        path = self.path(kind, number, name, ending)
        self.staging.place(source, path)
        return path

    def path(self, kind: str, number: int, name: str, ending: str) -> str:
        """Return a path for a file of the next episode of a workload, and keep it."""
        workload = self.workloads[number]
        folder = episode_folder(number, workload.model, workload.task, len(workload.episodes))
        path = unique(f"{kind}/{folder}", name, ending, self._taken)
        self._taken.add(path)
        return path

    def open_file(self, ending: str) -> Path:
        """Return a path for a file of an episode that is being played."""
        with self._lock:
            self._numbers += 1
            return self.staging.open_file(f"{self._numbers:08d}.{ending}")

    def halt(self, error: OSError) -> None:
        """Write nothing more; the run hears of it at its next step, once."""
        with self._lock:
            if self._halted is None:
                self._halted = error
                self._halt_untold = True

    def warn(self, text: str) -> None:
        """Say something at the next step of the run, on its own thread."""
        with self._lock:
            self._untold.append(text)

    def relay(self, *, stacklevel: int = 4) -> None:
        """Say what the worker had to say.

        Raises:
            RecordingError: the recording was halted and is strict.
        """
        if not (self._untold or self._halt_untold):
            return
        with self._lock:
            texts, self._untold = self._untold, []
            told, self._halt_untold = self._halt_untold, False
        for text in texts:
            warnings.warn(text, stacklevel=stacklevel)
        if told and self._halted is not None:
            reason = self._halted.strerror or str(self._halted)
            if self._strict:
                raise RecordingError(
                    f"the recording stopped: {reason}",
                    hint="Make room, or make the recorder with strict=False to go on without it.",
                ) from self._halted
            whole = sum(len(workload.episodes) for workload in self.workloads)
            warnings.warn(
                f"the recording stopped: {reason}. The run goes on; the files of the first {whole} "
                "episodes are whole, the others are recorded by their results only",
                stacklevel=stacklevel,
            )

    def settle(self, *, stacklevel: int = 4) -> None:
        """Wait for the worker, and say what it had to say."""
        self.require_own()  # the worker's thread is not in a process that was forked
        self.worker.wait()
        self.relay(stacklevel=stacklevel + 1)


def _workload_line(number: int, workload: WorkloadRecord) -> Json:
    return {
        "kind": "workload",
        "workload": number,
        "model": workload.model,
        "env": workload.env,
        "task": workload.task,
        "config": workload.config,
        "details": workload.details,
    }


def _lines(number: int, workload: WorkloadRecord) -> Sequence[Json]:
    episodes = [episode_line(number, record) for record in workload.episodes]
    return [_workload_line(number, workload), *episodes]


def episode_line(number: int, record: EpisodeRecord) -> Json:
    """Return what the journal says about an episode."""
    row: dict[str, Any] = record.to_dict()  # Any: JSON
    return {"kind": "episode", "workload": number, "record": row, "details": record.details()}

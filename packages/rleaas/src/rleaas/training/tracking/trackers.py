"""The trackers themselves; each is used by one process that does nothing else."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol


@dataclass(frozen=True, slots=True)
class Point:
    """Numbers at a step of the training; `at` is when, in seconds since 1970."""

    step: int
    at: float
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class RunOf:
    """The job whose numbers they are: what a tracker calls a run.

    Attributes:
        job_id: the job's id.
        name: what people call it.
        directory: where files of trackers lie, of this job alone.
        shared: where files of trackers lie that several jobs share.
        settings: of the tracker.
        facts: what the run is done with; plain values.
    """

    job_id: str
    name: str
    directory: Path
    shared: Path
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    facts: Mapping[str, object] = field(default_factory=dict[str, object])


class Tracker(Protocol):
    """Keeps the numbers of one run."""

    def open(self, run: RunOf) -> dict[str, str]:
        """Begin the run, or go on with it, and return where it is."""
        ...

    def log(self, points: Sequence[Point]) -> None:
        """Keep these points."""
        ...

    def close(self) -> None:
        """End the run."""
        ...


class TensorBoard:
    """Event files, as TensorBoard reads them."""

    def __init__(self) -> None:
        self._writer: Any = None

    def open(self, run: RunOf) -> dict[str, str]:
        """Begin another event file in the job's directory."""
        directory = run.directory / "tensorboard"
        directory.mkdir(parents=True, exist_ok=True)
        # Its modules have no types.
        writers: Any = import_module("tensorboard.summary.writer.event_file_writer")
        self._writer = writers.EventFileWriter(str(directory))
        return {"directory": str(directory)}

    def log(self, points: Sequence[Point]) -> None:
        """Write the points to the file."""
        event: Any = import_module("tensorboard.compat.proto.event_pb2").Event
        summary: Any = import_module("tensorboard.compat.proto.summary_pb2").Summary
        for point in points:
            values = [summary.Value(tag=k, simple_value=v) for k, v in point.values.items()]
            told = summary(value=values)
            self._writer.add_event(event(wall_time=point.at, step=point.step, summary=told))
        self._writer.flush()

    def close(self) -> None:
        """End the file."""
        self._writer.close()


_JOB_TAG: Final = "rleaas.job_id"
_MOST_METRICS: Final = 1000


class MLflow:
    """A run of an MLflow server, or of a database beside the server's own data."""

    def __init__(self) -> None:
        self._client: Any = None
        self._run = ""

    def open(self, run: RunOf) -> dict[str, str]:
        """Begin a run in the experiment; one that an earlier attempt began is gone on with."""
        from mlflow import MlflowClient
        from mlflow.entities import Param

        uri = run.settings.get("tracking_uri")
        if uri is None:
            run.shared.mkdir(parents=True, exist_ok=True)
            uri = f"sqlite:///{run.shared / 'mlflow.db'}"
        client = self._client = MlflowClient(tracking_uri=uri)
        name = run.settings.get("experiment", "rleaas")
        experiment = client.get_experiment_by_name(name)
        number = client.create_experiment(name) if experiment is None else experiment.experiment_id
        known = client.search_runs([number], f"tags.`{_JOB_TAG}` = '{run.job_id}'", max_results=1)
        if known:
            self._run = known[0].info.run_id
        else:
            called = run.settings.get("run_name", run.name)
            made = client.create_run(number, tags={_JOB_TAG: run.job_id}, run_name=called)
            self._run = made.info.run_id
            facts = [Param(_word(key), str(value)[:500]) for key, value in run.facts.items()]
            client.log_batch(self._run, params=facts)
        return {"tracking_uri": uri, "experiment": name, "run_id": self._run}

    def log(self, points: Sequence[Point]) -> None:
        """Send the points, many at a time."""
        from mlflow.entities import Metric

        metrics = [
            Metric(_word(name), value, int(point.at * 1000), point.step)
            for point in points
            for name, value in point.values.items()
        ]
        for begin in range(0, len(metrics), _MOST_METRICS):
            self._client.log_batch(self._run, metrics[begin : begin + _MOST_METRICS])

    def close(self) -> None:
        """End the run."""
        self._client.set_terminated(self._run)


class WeightsAndBiases:
    """A run of Weights & Biases, sent at once or kept in files until `wandb sync`."""

    def __init__(self) -> None:
        self._run: Any = None

    def open(self, run: RunOf) -> dict[str, str]:
        """Begin a run under the job's id, or go on with it."""
        import wandb

        directory = run.directory / "wandb"
        directory.mkdir(parents=True, exist_ok=True)
        mode: Any = run.settings.get("mode", "online")
        self._run = wandb.init(
            project=run.settings.get("project", "rleaas"),
            entity=run.settings.get("entity"),
            name=run.settings.get("name", run.name),
            id=run.job_id,
            resume=None if mode == "offline" else "allow",
            mode=mode,
            dir=str(directory),
            config=dict(run.facts),
            settings=wandb.Settings(
                console="off",
                silent=True,
                save_code=False,
                disable_git=True,
                x_disable_machine_info=True,
                x_disable_stats=True,
                init_timeout=10,
            ),
        )
        place = {"project": self._run.project, "mode": mode, "directory": str(self._run.dir)}
        return place | ({"url": self._run.url} if self._run.url else {})

    def log(self, points: Sequence[Point]) -> None:
        """Hand over the points; what belongs to one step is one row."""
        for point in points:
            # Its own counter must grow; that of the training stands beside the numbers.
            self._run.log({"timestep": point.step, "_timestamp": point.at, **point.values})

    def close(self) -> None:
        """End the run."""
        self._run.finish()


TRACKERS: Final[Mapping[str, type[Tracker]]] = {
    "tensorboard": TensorBoard,
    "mlflow": MLflow,
    "wandb": WeightsAndBiases,
}


def now() -> float:
    """Return the seconds since 1970."""
    return time.time()


def _word(name: str) -> str:
    """Return a name in the letters that MLflow takes."""
    return re.sub(r"[^\w\-./ ]", "_", name)[:250]

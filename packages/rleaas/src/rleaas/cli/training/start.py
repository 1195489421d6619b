"""`start`: everything is looked at first, then the jobs are started one after the other."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rlcore import ConfigurationError

from rleaas.cli.failures import CONFIG_FILE
from rleaas.cli.plain import first_lines, listed, print_json, say, visible
from rleaas.cli.training.parser import DEFAULT_CONFIG
from rleaas.cli.training.refusals import arguments_of, require_startable
from rleaas.cli.training.server import connect, warn
from rleaas.training.run_file.entries import Run
from rleaas.training.run_file.reading import RunFile, read_file


class Trains(Protocol):
    """What starts jobs: a client, or a test's stand-in for one."""

    # Any: published clients and ours return records of their own.
    TrainingJob: Any


def start(told: argparse.Namespace) -> int:
    """Start the trainings that the words name, or none if anything is wrong.

    Raises:
        ConfigurationError: the file is wrong, or the words name none of its entries.
        RLEaaSError: the platform refused; what runs already has been said.
    """
    file = read_file(told.config or DEFAULT_CONFIG)
    require_sound(file)
    runs = chosen(file, told.training, told.index, bool(told.all))
    marked = bool(told.all) or (told.index is not None and len(file.runs) > 1)
    with connect(told, file) as client:
        require_startable(client, file, runs)
        _start_each(client, runs, marked=marked, as_json=told.as_json)
    return 0


def require_sound(file: RunFile) -> None:
    """Say what has no effect, and refuse a file that is wrong, with all that is wrong.

    Raises:
        ConfigurationError: something is.
    """
    for line in first_lines([f"{file.path}:{one}" for one in file.warnings], "warnings"):
        warn(line)
    for line in first_lines([f"{file.path}:{one}" for one in file.errors], "errors"):
        print(line, file=sys.stderr)
    if file.errors:
        count = len(file.errors)
        raise ConfigurationError(
            f"{file.path} has {count} error{'s' if count > 1 else ''}; nothing was started",
            code=CONFIG_FILE,
            hint="`rleaas config check` looks at it without starting anything.",
        )


def chosen(file: RunFile, training: str | None, index: int | None, every: bool) -> Sequence[Run]:
    """Return the runs that a selector names.

    Raises:
        ConfigurationError: it names none, or there are several and nothing was selected.
    """
    if every:
        return file.runs
    if index is not None:
        if not 0 <= index < len(file.runs):
            raise ConfigurationError(
                f"--index {index} is no entry of {file.path}, which has {len(file.runs)}",
                hint=f"The first is 0, the last {len(file.runs) - 1}.",
            )
        return [file.runs[index]]
    if training is not None:
        return _named(file, training)
    if len(file.runs) > 1:
        raise ConfigurationError(
            f"{file.path} has {len(file.runs)} trainings: {_ids(file)}",
            hint=f"Choose by --training {file.runs[0].id}, several by a comma; or --all.",
        )
    return file.runs


def _named(file: RunFile, training: str) -> Sequence[Run]:
    names = [name.strip() for name in training.split(",")]
    if not all(names):
        raise ConfigurationError(
            f"--training {training!r} has a blank between its commas",
            hint=f"{file.path} has {_ids(file)}.",
        )
    runs = {str(run.id): run for run in file.runs}
    missing = [name for name in names if name not in runs]
    if missing:
        raise ConfigurationError(
            f"{file.path} has no training {listed(missing)}; nothing was started",
            hint=f"It has {_ids(file)}.",
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigurationError(
            f"--training names {listed(twice)} more than once; nothing was started",
            hint="Name each once.",
        )
    return [runs[name] for name in names]


def _ids(file: RunFile) -> str:
    return listed([str(run.id) for run in file.runs])


def _start_each(client: Trains, runs: Sequence[Run], *, marked: bool, as_json: bool) -> None:
    started: list[tuple[Run, Any]] = []
    try:
        for run in runs:
            job = start_one(client, run)
            started.append((run, job))
            if not as_json:
                _say_started(run, job, marked)
    except BaseException:
        _say_what_runs(started, runs)
        raise
    finally:
        if as_json:
            print_json([_record(run, job) for run, job in started])


def start_one(client: Trains, run: Run) -> Any:
    """Start one run and return the handle of its job.

    Raises:
        RLEaaSError: the platform refused.
    """
    return client.TrainingJob.run(**arguments_of(run))


def _say_started(run: Run, job: Any, marked: bool) -> None:
    place = f" idx={run.index}" if marked else ""
    for line in (
        f"[training={run.id}{place}] Training started",
        f"job_id: {job.id}",
        f"status: {job.status}",
        f"environment: {job.environment_name or run.environment_name}",
        f"algorithm: {job.algorithm or run.algorithm}",
    ):
        say(visible(line))
    # Whoever reads it over a pipe sees each job as it starts.
    sys.stdout.flush()


def _record(run: Run, job: Any) -> Mapping[str, object]:
    return {
        "training": run.id,
        "index": run.index,
        "job_id": job.id,
        "status": job.status,
        "environment": job.environment_name or run.environment_name,
        "algorithm": job.algorithm or run.algorithm,
        "name": run.name,
    }


def _say_what_runs(started: Sequence[tuple[Run, Any]], runs: Sequence[Run]) -> None:
    if len(runs) == 1:
        return
    if started:
        running = listed([f"training {run.id} is job {job.id}" for run, job in started])
        print(visible(f"started before it failed, and running: {running}"), file=sys.stderr)
    left = listed([str(run.id) for run in runs[len(started) :]])
    print(visible(f"not started: training {left}"), file=sys.stderr)

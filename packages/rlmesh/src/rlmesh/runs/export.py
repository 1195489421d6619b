"""Results as files and tables, and files as results."""

import csv
import io
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from rlcore import ConfigurationError, MissingDependencyError

if TYPE_CHECKING:
    from rlmesh.runs.results import RunResult

Cell = str | int | float | bool | None


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write a file whole or not at all: what was there stays until all of it is written.

    Raises:
        ConfigurationError: it cannot be written.
    """
    place = Path(path).resolve()
    beside = place.with_name(f".{place.name}.{token_hex(4)}")
    try:
        # A device or a pipe is written to as it is; there is nothing to be replaced.
        if place.exists() and not place.is_file():
            place.write_text(text, encoding="utf-8")
            return
        with beside.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(place)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        reason = error.strerror or str(error)
        raise ConfigurationError(f"{str(place)!r} cannot be written: {reason}") from error


def read_whole(path: str | os.PathLike[str]) -> bytes:
    """Return what is in a file.

    Raises:
        ConfigurationError: it cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigurationError(f"{str(path)!r} cannot be read: {reason}") from error


def csv_text(result: "RunResult") -> str:
    """Return a table with a line for each episode; nothing stands for None."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(column_names(result))
    for row in rows(result):
        writer.writerow("" if cell is None else cell for cell in row)
    return out.getvalue()


def data_frame(result: "RunResult") -> Any:  # Any: pandas has no types
    """Return a row for each episode.

    Raises:
        MissingDependencyError: pandas is not installed.
    """
    try:
        pandas: Any = import_module("pandas")
    except ImportError as error:
        raise MissingDependencyError(
            "a data frame needs pandas, which is not installed",
            hint='Install it: pip install "rlmesh[dataframe]"',
        ) from error
    frame = pandas.DataFrame(list(rows(result)), columns=column_names(result))
    # Types that know "missing", so that an int stays one and None is neither False nor NaN.
    return frame.astype(_TYPES)


def column_names(result: "RunResult") -> list[str]:
    """Return the names of the columns: the episodes' fields, then which run they are of."""
    from rlmesh.runs.results import EpisodeResult

    return [*(item.name for item in fields(EpisodeResult)), "model", "environment"]


def rows(result: "RunResult") -> Iterator[list[Cell]]:
    """Return the cells of each episode, in the order of the columns."""
    environment = None if result.environment is None else str(result.environment)
    names = column_names(result)[:-2]
    for episode in result.episodes:
        cells: list[Cell] = [getattr(episode, name) for name in names]
        cells[names.index("outcome")] = episode.outcome.value
        yield [*cells, result.model, environment]


_TYPES = {
    "index": "Int64",
    "seed": "Int64",
    "steps": "Int64",
    "reward": "Float64",
    "terminated": "boolean",
    "truncated": "boolean",
    "success": "boolean",
    "duration_s": "Float64",
    "predict_ms": "Float64",
    "step_ms": "Float64",
    "trial": "Int64",
    "outcome": "string",
    "error": "string",
    "task": "string",
    "attempts": "Int64",
    "model": "string",
    "environment": "string",
}

"""What a report says about each workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from rlmesh.recorder.records import WorkloadRecord
from rlmesh.runs.results import RunResult


@dataclass(frozen=True, slots=True)
class Facts:
    """What a workload's tiles and bars are made of.

    Attributes:
        number: its place in the bundle.
        workload: what was recorded.
        counted: the episodes that count, as a result.
        asked: how many episodes were asked for.
    """

    number: int
    workload: WorkloadRecord
    counted: RunResult
    asked: int

    @property
    def label(self) -> str:
        """What the workload is called."""
        one = self.workload
        task = "" if one.task == one.env else f", {one.task}"
        return f"{one.model} on {one.env}{task}"

    @property
    def scored(self) -> int:
        """How many episodes have a score."""
        return sum(one.outcome.scored for one in self.workload.episodes)

    @property
    def failed(self) -> int:
        """How many ended without one."""
        return len(self.workload.episodes) - self.scored


def facts_of(number: int, workload: WorkloadRecord) -> Facts:
    """Return the facts of a workload."""
    run: Mapping[str, Any] = workload.details.get("run") or {}  # Any: JSON
    asked = run.get("asked")
    return Facts(
        number,
        workload,
        RunResult(episodes=tuple(one.to_result() for one in workload.counted)),
        max(asked if isinstance(asked, int) else 0, len(workload.episodes)),
    )


def text(value: object) -> str:
    """Return the text of anything as HTML shows it, whatever is in it."""
    return escape(str(value), quote=True)

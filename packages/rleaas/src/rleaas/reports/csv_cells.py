"""Reports as comma-separated values, which no spreadsheet takes for formulas."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Final

from rleaas.reports.told import Facts, partial, rows

_COLUMNS: Final[Sequence[str]] = (
    "evaluation_id",
    "status",
    "partial",
    "environment",
    "checkpoint",
    "scenario_suite_id",
    "scenario_suite_version",
    "index",
    "seed",
    "reward",
    "steps",
    "outcome",
    "success",
    "verifiers",
    "scenario_id",
    "tier",
    "repetition",
    "score",
    "passed",
    "error",
)


def as_csv(reports: Sequence[Facts], *, episodes: bool = True, verifiers: bool = True) -> str:
    """One line for each episode of the evaluations, or for each evaluation.

    Args:
        reports: as `rleaas.models.EvaluationReport` has them as JSON.
        episodes: whether each episode has a line.
        verifiers: whether what verifiers said is in it, as JSON.
    """
    text = io.StringIO()
    lines: csv.DictWriter[str] = csv.DictWriter(text, _COLUMNS, extrasaction="ignore")
    lines.writeheader()
    for report in reports:
        head = {
            "evaluation_id": report.get("id"),
            "status": report.get("status"),
            "partial": partial(report),
            "scenario_suite_id": report.get("scenario_suite_id"),
            "scenario_suite_version": report.get("scenario_suite_version"),
            "environment": report.get("environment") or report.get("environment_name"),
            "checkpoint": report.get("agent_checkpoint_id") or report.get("agent"),
        }
        told = rows(report.get("episodes")) if episodes else [_whole(report)]
        for one in told:
            said = json.dumps(one.get("verifier_results")) if verifiers and episodes else ""
            cells = {**one, **head, "verifiers": said}
            lines.writerow({name: harmless(cell) for name, cell in cells.items()})
    return text.getvalue()


def harmless(value: object) -> object:
    """The value as a cell that no spreadsheet takes for a formula; anybody may name things."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value


def _whole(report: Facts) -> Facts:
    return {"reward": report.get("mean_return"), "score": report.get("overall_score")}

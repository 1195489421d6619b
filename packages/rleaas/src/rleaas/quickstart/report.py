"""The quickstart's result: for people as tables, for programs as one JSON file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from rleaas.quickstart.compare import Agreement, Pair
from rleaas.quickstart.plan import Plan

if TYPE_CHECKING:
    from rlcore import EnvironmentIdentity
    from rlmesh import RunResult

    from rleaas.models import Checkpoint, EvaluationReport, TrainingJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Everything that the quickstart found out."""

    plan: Plan
    identity: EnvironmentIdentity
    job: TrainingJob
    checkpoint: Checkpoint
    platform: EvaluationReport
    local: RunResult
    agreement: Agreement
    seconds: float
    curve_png: Path

    @property
    def shortcomings(self) -> tuple[str, ...]:
        """What went differently from what the quickstart promises; empty when nothing did."""
        found: list[str] = []
        asked = len(self.plan.seeds)
        if self.platform.scored != asked:
            found.append(f"the platform scored {self.platform.scored} of {asked} episodes")
        if self.local.environment != self.identity:
            found.append(f"the local run was on {self.local.environment}, not {self.identity}")
        found += [f"platform and local differ, {pair}" for pair in self.agreement.differing]
        return tuple(found)

    def to_dict(self) -> dict[str, object]:
        """Return the findings as plain JSON values."""
        return {
            "environment": self.identity.to_dict(),
            "training": self.job.model_dump(mode="json"),
            "checkpoint": self.checkpoint.model_dump(mode="json"),
            "platform": self.platform.model_dump(mode="json"),
            "local": self.local.to_dict(),
            "agrees": self.agreement.complete,
            "shortcomings": list(self.shortcomings),
            "seconds": round(self.seconds, 1),
            "curve": str(self.curve_png),
        }

    def save(self, path: Path) -> Path:
        """Write the findings as JSON and return where they are."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.to_dict(), indent=2), encoding="utf-8")
        return path


def results_table(findings: Findings) -> Table:
    """Return platform and local results side by side, with 95 % intervals."""
    platform, local = findings.platform, findings.local
    table = Table(box=SIMPLE_HEAD, header_style="bold")
    for column in ("95 % intervals", "scored", "failed", "mean return", "success rate"):
        table.add_column(column, no_wrap=True)
    table.add_row(
        "platform",
        f"{platform.scored}/{platform.asked}",
        str(platform.failed),
        _with_interval(platform.mean_return, platform.return_interval),
        _with_interval(platform.success_rate, platform.success_interval, rate=True),
    )
    table.add_row(
        "this machine",
        f"{local.coverage.scored}/{local.coverage.asked}",
        str(local.coverage.failed),
        _with_interval(local.mean_reward, local.mean_reward_interval),
        _with_interval(local.success_rate, local.success_interval, rate=True),
    )
    return table


def agreement_grid(agreement: Agreement, *, width: int) -> Table:
    """Return one cell per seed, down the columns: the return on both sides, or how they differ."""
    cells = [_cell(pair) for pair in agreement.pairs]
    widest = max((cell.cell_len for cell in cells), default=1)
    columns = max(1, min(5, width // (widest + 3)))
    height = -(-len(cells) // columns)
    table = Table.grid(padding=(0, 3, 0, 0))
    for row in range(height):
        table.add_row(*(cells[i] for i in range(row, len(cells), height)))
    return table


def _cell(pair: Pair) -> Text:
    label = f"seed {pair.seed}: {_reward(pair.platform)} "
    if pair.agrees:
        return Text.assemble(label, ("= ", "green"), _reward(pair.local))
    return Text.assemble(label, ("≠ ", "bold red"), _reward(pair.local))


def _reward(episode: object) -> str:
    reward: float | None = getattr(episode, "reward", None)
    return "-" if reward is None else f"{reward:g}"


def _with_interval(
    value: float | None, interval: Sequence[float] | None, *, rate: bool = False
) -> str:
    def shown(number: float) -> str:
        return f"{number:.1%}" if rate else f"{number:.1f}"

    if value is None:
        return "-"
    if interval is None:
        return shown(value)
    low, high = interval
    return f"{shown(value)} [{shown(low)}, {shown(high)}]"

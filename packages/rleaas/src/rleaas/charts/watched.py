"""What is known of a job that is watched, as its events tell it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from rleaas.charts.learning_curve import LearningCurve
from rleaas.models import Event, TrainingJob

_STATUS = ("pending", "running", "completed", "failed", "cancelled", "awaiting_human_eval")
MOST_DIAGNOSTICS = 8


class Watched:
    """A job as it is now: its record, brought up to date by each of its events."""

    def __init__(self, record: TrainingJob) -> None:
        self.record = record
        self.curve = LearningCurve()
        self.facts: dict[str, object] = {}
        self.diagnostics: dict[str, float] = {}
        self.checkpoints = 0
        self.note = ""

    def take(self, record: TrainingJob) -> None:
        """Take the record as the platform has it now."""
        self.record = record

    def hear(self, event: Event) -> None:
        """Take what happened."""
        data = event.data
        if event.kind == "metric":
            self.curve.add(data)
            told = ("episode", "timestep", "avg_reward", "success_rate", "tier", "wall_seconds")
            self.facts |= {key: data[key] for key in told if data.get(key) is not None}
            self._diagnose(data.get("metrics"))
        elif event.kind == "checkpoint_saved":
            self.checkpoints += 1
        elif event.kind == "started":
            episode = data.get("episode")
            if isinstance(episode, int):
                self.curve.forget_after(episode)
        elif "alert" in event.kind or event.kind == "tier_advance":
            self.note = f"{event.kind} {_words(data)}".strip()
        status = "running" if event.kind == "started" else event.kind
        if status in _STATUS:
            self.record = self.record.model_copy(update={"status": status})

    @property
    def title(self) -> str:
        """What is watched."""
        name = self.record.run_name or self.record.job_id
        return f"{self.record.algorithm or 'training'} on {self.record.environment_name}: {name}"

    @property
    def fraction(self) -> float:
        """How much of it is done, from 0 to 1."""
        if self.record.status == "completed":
            return 1.0
        episode, total = self.facts.get("episode"), self.record.num_episodes
        if isinstance(episode, int) and total:
            return min(1.0, episode / total)
        return self.record.progress / 100

    def rows(self) -> list[tuple[str, str]]:
        """Return what a table of it says, a line each."""
        facts, total = self.facts, self.record.num_episodes
        episode = facts.get("episode", 0)
        rows = [
            ("job", self.record.job_id),
            ("status", self.record.status),
            ("episode", f"{episode} of {total}" if total else f"{episode}"),
            ("steps", _shown(facts.get("timestep"))),
            ("mean reward", _shown(facts.get("avg_reward"))),
            ("success rate", _shown(facts.get("success_rate"))),
            ("tier", _shown(facts.get("tier"))),
            ("seconds", _shown(facts.get("wall_seconds"))),
            ("checkpoints", str(self.checkpoints or "")),
            *((name, _shown(value)) for name, value in self.diagnostics.items()),
            ("note", self.note),
            ("error", self.record.reason if self.record.status == "failed" else ""),
        ]
        return [(name, value) for name, value in rows if value]

    def _diagnose(self, told: object) -> None:
        if not isinstance(told, Mapping):
            return
        for name, value in cast("Mapping[str, object]", told).items():
            known = name in self.diagnostics or len(self.diagnostics) < MOST_DIAGNOSTICS
            if known and isinstance(value, int | float) and not isinstance(value, bool):
                self.diagnostics[name] = float(value)


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _words(data: Mapping[str, object]) -> str:
    plain = {k: v for k, v in data.items() if isinstance(v, str | int | float)}
    return ", ".join(f"{key} {_shown(value)}" for key, value in plain.items())

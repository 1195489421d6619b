"""The lives of environments and jobs: their states, and what a worker's report changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from rleaas.server.rules.json_values import integer, number
from rleaas.server.rules.report_facts import NESTED

REGISTERED = "registered"
PROVISIONING = "provisioning"
READY = "ready"
FAILED = "failed"
DEPROVISIONED = "deprovisioned"

PENDING = "pending"
RUNNING = "running"
COMPLETED = "completed"
CANCELLED = "cancelled"
AWAITING_HUMAN_EVAL = "awaiting_human_eval"

TERMINAL = frozenset({COMPLETED, FAILED, CANCELLED, AWAITING_HUMAN_EVAL})
JOB_STATUSES = frozenset({PENDING, RUNNING}) | TERMINAL
ENVIRONMENT_STATUSES = frozenset({REGISTERED, PROVISIONING, READY, FAILED, DEPROVISIONED})

ReportType = Literal[
    "started",
    "progress",
    "metric",
    "log",
    "episode",
    "heartbeat",
    "completed",
    "failed",
    "cancelled",
    "interrupted",
    "alert",
]
_RESULT_KEYS = (
    "avg_reward",
    "success_rate",
    "current_tier",
    "total_steps",
    "wall_seconds",
    "best_reward",
    "tracking",
)


@dataclass(frozen=True, slots=True)
class JobState:
    """What the reports of a worker change about a job."""

    status: str
    progress: int = 0
    results: Mapping[str, object] = field(default_factory=dict[str, object])
    error: str | None = None

    @property
    def finished(self) -> bool:
        """Nothing changes a finished job any more."""
        return self.status in TERMINAL


def after_report(
    state: JobState,
    kind: str,
    data: Mapping[str, object],
    goal: int,
    *,
    asks_people: bool = False,
) -> JobState:
    """The job after one report.

    Args:
        state: the job before it.
        kind: the kind of the report.
        data: what it says.
        goal: the number of episodes that the job was asked for.
        asks_people: whether it is complete only when somebody has judged it.
    """
    if state.finished:
        return state
    match kind:
        case "started":
            return replace(state, status=RUNNING)
        case "progress":
            return _advanced(state, data, goal)
        case "metric":
            return _advanced(state, data, goal)
        case "episode":
            done = (integer(state.results.get("episodes_done")) or 0) + 1
            return replace(
                state,
                status=RUNNING,
                progress=_percent(done, goal, state.progress),
                results={**state.results, "episodes_done": done},
            )
        case "completed":
            results = {**state.results, **_results_in(data)}
            status = AWAITING_HUMAN_EVAL if asks_people else COMPLETED
            return replace(state, status=status, progress=100, results=results)
        case "failed":
            error = data.get("error") or data.get("message") or "the worker gave no reason"
            results = {**state.results, **_details_of_failure(data)}
            return replace(state, status=FAILED, error=str(error), results=results)
        case "cancelled":
            return replace(state, status=CANCELLED, results={**state.results, **_results_in(data)})
        case _:
            return state


def _advanced(state: JobState, data: Mapping[str, object], goal: int) -> JobState:
    results = dict(state.results)
    results.update({key: data[key] for key in _RESULT_KEYS if data.get(key) is not None})
    episode = integer(data.get("episode"))
    if episode is None:
        episode = integer(data.get("current_episode"))
    if episode is not None:
        results["current_episode"] = episode
    timestep = integer(data.get("timestep"))
    if timestep is not None:
        results["total_steps"] = timestep
    told = number(data.get("progress"))
    percent = (
        max(state.progress, min(99, int(told)))
        if told is not None
        else _percent(episode or 0, goal, state.progress)
    )
    return replace(state, status=RUNNING, progress=percent, results=results)


def _percent(done: int, goal: int, before: int) -> int:
    # 100 is said by `completed` only: the last episode is not yet the last checkpoint.
    return max(before, min(99, 100 * done // goal)) if goal > 0 else before


def _results_in(data: Mapping[str, object]) -> dict[str, object]:
    found = {key: value for key, value in data.items() if key not in NESTED}
    for name in NESTED:
        nested = data.get(name)
        if isinstance(nested, dict):
            found.update(cast("dict[str, object]", nested))
    return found


def _details_of_failure(data: Mapping[str, object]) -> dict[str, object]:
    return {
        key: data[key]
        for key in ("failure_reason", "traceback", "type")
        if data.get(key) is not None
    }

"""Rollouts, comparisons of them, and reports about evaluations."""

import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC
from typing import Final, cast

from rleaas.server.pairs import paired
from rleaas.server.render_audit import harmless
from rleaas.server.rules.json_values import items, number
from rleaas.server.store.tables import JsonObject, RolloutRow

_COLUMNS: Final = (
    "evaluation_id",
    "status",
    "environment",
    "checkpoint",
    "index",
    "seed",
    "reward",
)
_MORE_COLUMNS: Final = ("steps", "outcome", "success", "verifiers")


def rollout(row: RolloutRow, environment: str | None, *, whole: bool) -> JsonObject:
    """A rollout; its steps only where the whole of it is wanted."""
    at = row.created_at.astimezone(UTC).isoformat()
    # An episode that a worker reported has a number there, which is `total_steps`.
    shows_steps = whole and isinstance(row.data.get("steps"), list)
    data = {key: one for key, one in row.data.items() if key != "steps" or shows_steps}
    return {
        **data,
        "id": row.id,
        "environment_name": environment,
        "environment": environment,
        "episode_number": row.episode,
        "status": row.status,
        "score": row.total_reward,
        "total_reward": row.total_reward,
        "total_steps": row.total_steps,
        "scenario_id": row.scenario_id,
        "job_id": row.job_id,
        "source": row.data.get("source"),
        "timestamp": at,
        "created_at": at,
    }


def comparison(environment: str, baseline: JsonObject, trained: JsonObject) -> JsonObject:
    """How two rollouts, or two evaluations, differ; `delta` is None where one has no score.

    `winner` has the higher score; whether that says anything is in `paired`.
    """
    first, second = _score(baseline), _score(trained)
    delta = None if first is None or second is None else second - first
    winner = None if delta is None else "tie" if delta == 0 else _winner(delta)
    ids = {"baseline": baseline["id"], "trained": trained["id"]}
    scenarios = _by_seed(baseline, trained)
    return {
        "environment_name": environment,
        "baseline": baseline,
        "pre_training": baseline,
        "trained": trained,
        "post_training": trained,
        "delta": delta,
        "improvement": delta,
        "winner": winner,
        "winner_id": ids.get(winner or ""),
        "per_scenario_diff": scenarios,
        "scenario_breakdown": scenarios,
        "paired": paired([one for one in map(_delta, scenarios) if one is not None]),
    }


def as_csv(reports: Sequence[JsonObject], *, episodes: bool, verifiers: bool) -> str:
    """One line for each episode of the evaluations, or for each evaluation."""
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow((*_COLUMNS, *_MORE_COLUMNS))
    for report in reports:
        told = (report["id"], report["status"], report["environment"])
        head = [harmless(one) for one in (*told, report["agent_checkpoint_id"])]
        if not episodes:
            lines.writerow([*head, "", "", report["overall_score"], "", "", "", ""])
            continue
        for one in _episodes(report):
            played = [one.get(key) for key in ("index", "seed", "reward", "steps", "outcome")]
            checks = json.dumps(one.get("verifier_results")) if verifiers else ""
            lines.writerow([*head, *played, one.get("success"), checks])
    return text.getvalue()


def _winner(delta: float) -> str:
    return "trained" if delta > 0 else "baseline"


def _score(told: JsonObject) -> float | None:
    return number(told.get("score", told.get("overall_score")))


def _by_seed(baseline: JsonObject, trained: JsonObject) -> list[JsonObject]:
    before, after = _rewards(baseline), _rewards(trained)
    return [
        {
            "seed": seed,
            "baseline": before[seed],
            "trained": after[seed],
            "delta": after[seed] - before[seed],
        }
        for seed in sorted(before.keys() & after.keys())
    ]


def _delta(one: JsonObject) -> float | None:
    return number(one["delta"])


def _rewards(report: JsonObject) -> dict[int, float]:
    found: dict[int, float] = {}
    for one in _episodes(report):
        seed, reward = one.get("seed"), number(one.get("reward"))
        if isinstance(seed, int) and reward is not None:
            found[seed] = reward
    return found


def _episodes(report: JsonObject) -> list[JsonObject]:
    found = items(report.get("episodes"))
    return [cast("JsonObject", one) for one in found if isinstance(one, dict)]

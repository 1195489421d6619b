"""Rollouts, and reports about evaluations."""

from datetime import UTC

from rleaas.evaluation.rollouts import RolloutRecord
from rleaas.server.rules.json_values import number
from rleaas.server.store.tables import JsonObject, RolloutRow


def rollout(row: RolloutRow, environment: str | None, *, whole: bool) -> JsonObject:
    """A rollout; its steps only where the whole of it is wanted.

    `score` is what verifiers gave; its rewards, where none judged it.
    """
    at = row.created_at.astimezone(UTC).isoformat()
    # An episode that a worker reported has a number there, which is `total_steps`.
    shows_steps = whole and isinstance(row.data.get("steps"), list)
    data = {key: one for key, one in row.data.items() if key != "steps" or shows_steps}
    judged = number(row.data.get("score"))
    return {
        **data,
        "id": row.id,
        "environment_name": environment,
        "environment": environment,
        "episode_number": row.episode,
        "status": row.status,
        "score": row.total_reward if judged is None else judged,
        "total_reward": row.total_reward,
        "total_steps": row.total_steps,
        "scenario_id": row.scenario_id,
        "job_id": row.job_id,
        "source": row.data.get("source"),
        "timestamp": at,
        "created_at": at,
    }


def with_steps(played: RolloutRecord) -> JsonObject:
    """What a rollout's file says more than its row."""
    return {"steps": [step.to_json() for step in played.steps], "state": played.state}

"""Rows as the JSON that clients read."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

from rlcore import EnvironmentURI

from rleaas.server.rules import lifecycle
from rleaas.server.rules.json_values import items
from rleaas.server.store.jobs import TRAINING
from rleaas.server.store.tables import CheckpointRow, EventRow, JobRow, JsonObject, VersionRow


def environment(version: VersionRow) -> JsonObject:
    """An environment, as its given version stands."""
    row = version.environment
    details = row.details
    return {
        **details,
        "id": row.id,
        "name": row.name,
        "status": version.status,
        "status_reason": version.status_reason,
        "is_running": version.status == lifecycle.READY and version.status_reason is None,
        "version": version.version,
        "source": version.source,
        "kwargs": version.kwargs,
        "config": version.config,
        "contract": version.contract,
        "contract_digest": version.contract_digest,
        "description": row.description,
        "vertical": row.vertical,
        "category": row.vertical,
        "domain": row.domain,
        "tags": row.tags,
        "metadata": details.get("metadata") or {},
        "entity_count": 0,
        "tool_count": row.tool_count,
        "scenario_count": row.scenario_count,
        "created_at": moment(row.created_at),
        "updated_at": moment(row.updated_at),
    }


def environment_version(version: VersionRow) -> JsonObject:
    """An entry of an environment's history."""
    return {**environment(version), "created_at": moment(version.created_at)}


def uri(version: VersionRow) -> str:
    """The address under which everybody resolves the version."""
    return str(EnvironmentURI(version.environment.name, version.version))


def identity(version: VersionRow) -> JsonObject:
    """Which environment this is, for a worker."""
    return {
        "id": version.environment_id,
        "name": version.environment.name,
        "version": version.version,
        "contract_digest": version.contract_digest,
        "uri": uri(version),
    }


def training_job(row: JobRow) -> JsonObject:
    """A training job with its checkpoints."""
    request, results = row.request, row.results
    return {
        "job_id": row.id,
        "status": row.status,
        "cancel_requested": row.cancel_requested_at is not None,
        "environment_name": row.version.environment.name,
        "environment_version": row.version.version,
        "contract_digest": row.version.contract_digest,
        "algorithm": request.get("algorithm"),
        "model": request.get("model"),
        "run_name": row.name,
        "progress": row.progress,
        "num_episodes": request.get("num_episodes"),
        "current_episode": results.get("current_episode", 0),
        "max_steps": request.get("max_steps"),
        "config": request.get("config"),
        "seed": results.get("seed", request.get("seed")),
        "resume_from_checkpoint": request.get("resume_from_checkpoint"),
        "results": {"avg_reward": None, "success_rate": None, "current_tier": None, **results},
        "checkpoints": [checkpoint(item) for item in row.checkpoints],
        "error": row.error,
        "failure_reason": row.error,
        "message": row.message or _message(row),
        "created_at": moment(row.created_at),
        "started_at": moment(row.started_at),
        "completed_at": moment(row.completed_at),
    }


def checkpoint(row: CheckpointRow) -> JsonObject:
    """A checkpoint, with the identity of what it was trained on."""
    job = row.job
    return {
        "id": row.id,
        "job_id": row.job_id,
        "episode": row.episode,
        "timestep": row.timestep,
        "label": row.label,
        "avg_reward": row.avg_reward,
        "success_rate": row.success_rate,
        "sha256": row.sha256,
        "size_bytes": row.size_bytes,
        "algorithm": job.request.get("algorithm"),
        "environment_name": job.version.environment.name,
        "environment_version": job.version.version,
        "contract_digest": job.version.contract_digest,
        "created_at": moment(row.created_at),
        "download_url": f"/api/checkpoints/{row.id}/file",
    }


def metric(row: EventRow) -> JsonObject:
    """One point of a job's curves, with everything that was measured."""
    return {**row.data, "job_id": row.subject.removeprefix("job:"), "timestamp": moment(row.at)}


def evaluation(row: JobRow) -> JsonObject:
    """An evaluation without its episodes."""
    request, results = row.request, row.results
    name = row.version.environment.name
    return {
        "id": row.id,
        "name": row.name or row.id,
        "status": row.status,
        "cancel_requested": row.cancel_requested_at is not None,
        "environment": name,
        "environment_name": name,
        "environment_version": row.version.version,
        "contract_digest": row.version.contract_digest,
        "agent_checkpoint_id": request.get("checkpoint_id"),
        "checkpoint_sha256": request.get("checkpoint_sha256"),
        "scenario_suite_id": None,
        "purpose": request.get("purpose"),
        "seeds": request.get("seeds"),
        "max_episode_steps": request.get("max_episode_steps"),
        "success_threshold": request.get("success_threshold"),
        "episodes_done": results.get("episodes_done", 0),
        "progress": row.progress,
        "error": row.error,
        "overall_score": results.get("overall_score"),
        "pass_rate": results.get("pass_rate", results.get("success_rate")),
        "created_at": moment(row.created_at),
        "started_at": moment(row.started_at),
        "completed_at": moment(row.completed_at),
    }


def report(row: JobRow, events: Sequence[EventRow]) -> JsonObject:
    """An evaluation with what is known of its result.

    While it runs, and when it ended early, the episodes so far are there and counted, without
    statistics that only the whole would give.
    """
    results = row.results
    episodes = items(results.get("episodes")) or [event.data for event in events]
    scored = sum(1 for episode in episodes if _has_score(episode))
    return {
        "scored": scored,
        "failed": len(episodes) - scored,
        **results,
        **evaluation(row),
        "asked": _length(row.request.get("seeds")),
        "episodes": episodes,
        "complete": row.status == lifecycle.COMPLETED,
        "verifier_breakdown": {},
        "rollout_ids": [],
        "scenario_results": [],
    }


def _has_score(episode: object) -> bool:
    return isinstance(episode, dict) and cast("JsonObject", episode).get("reward") is not None


def _message(row: JobRow) -> str:
    what = "training" if row.kind == TRAINING else "evaluation"
    return f"{what} of {row.version.environment.name!r} is {row.status}"


def _length(value: object) -> int:
    return len(items(value))


def moment(value: datetime | None) -> str | None:
    """A time as clients read it."""
    return None if value is None else value.astimezone(UTC).isoformat().replace("+00:00", "Z")

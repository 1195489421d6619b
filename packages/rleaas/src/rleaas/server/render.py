"""Rows as the JSON that clients read."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

from rlcore import EnvironmentURI

from rleaas.reports.told import partial
from rleaas.server.agent_models import LLM
from rleaas.server.rules import lifecycle
from rleaas.server.rules.cards import card_of, metrics_of
from rleaas.server.rules.json_values import integer, items
from rleaas.server.rules.report_facts import is_episode, sound
from rleaas.server.rules.worlds import config_warnings
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
        "warnings": config_warnings(version.source, version.config),
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
    request, results = row.request, sound(row.results)
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
        "start": request.get("start"),
        "scenario_id": request.get("scenario_id"),
        "verifier_ids": request.get("verifier_ids", []),
        "warnings": [*items(request.get("warnings")), *items(results.get("warnings"))],
        "reproducible": request.get("reproducible"),
        "why_not": request.get("why_not"),
        "results": {"avg_reward": None, "success_rate": None, "current_tier": None, **results},
        "checkpoints": [checkpoint(item) for item in row.checkpoints],
        "priority": row.priority,
        "attempt": row.attempts,
        "restarts": row.restarts,
        "attempts": row.history,
        "queue_position": None,
        "error": row.error,
        "failure_reason": row.error,
        "message": row.message or _message(row),
        "created_at": moment(row.created_at),
        "started_at": moment(row.started_at),
        "completed_at": moment(row.completed_at),
    }


def training_check(row: JobRow) -> JsonObject:
    """What a job would be that is not queued."""
    told = training_job(row)
    return {name: told[name] for name in _KNOWN_BEFORE}


_KNOWN_BEFORE = (
    "environment_name",
    "environment_version",
    "contract_digest",
    "algorithm",
    "model",
    "run_name",
    "num_episodes",
    "max_steps",
    "config",
    "resume_from_checkpoint",
    "start",
    "scenario_id",
    "verifier_ids",
    "warnings",
    "reproducible",
    "why_not",
    "priority",
)


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
        "state_sha256": row.state_sha256,
        "state_bytes": row.state_bytes,
        "composite_verifier_score": metrics(row).get("composite_verifier_score"),
        "metrics": metrics(row),
        "algorithm": job.request.get("algorithm"),
        "environment_name": job.version.environment.name,
        "environment_version": job.version.version,
        "contract_digest": job.version.contract_digest,
        "created_at": moment(row.created_at),
        "download_url": f"/api/checkpoints/{row.id}/file",
    }


def metrics(row: CheckpointRow) -> JsonObject:
    """Every figure that is known of a checkpoint."""
    if row.metrics is not None:
        return row.metrics
    return metrics_of(None, avg_reward=row.avg_reward, success_rate=row.success_rate)


def card(row: CheckpointRow) -> JsonObject:
    """What a checkpoint is, in full: what made it, from what, and how good it was."""
    return {**checkpoint(row), "card": card_of(row.manifest, row.job.request)}


def metric(row: EventRow) -> JsonObject:
    """One point of a job's curves, with everything that was measured."""
    return {
        **sound(row.data),
        "job_id": row.subject.removeprefix("job:"),
        "timestamp": moment(row.at),
    }


def evaluation(row: JobRow) -> JsonObject:
    """An evaluation without its episodes."""
    request, results = row.request, sound(row.results)
    agent = request.get("agent")
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
        "agent": LLM if isinstance(agent, dict) else agent,
        "agent_settings": agent if isinstance(agent, dict) else None,
        "source_evaluation_id": request.get("source_evaluation_id"),
        **_scenarios(request),
        "verifier_ids": verifier_ids(request),
        "purpose": request.get("purpose"),
        "seeds": request.get("seeds"),
        "repetitions": request.get("repetitions", 1),
        "num_workers": request.get("num_workers", 1),
        "asked": asked(request),
        "pass_threshold": request.get("pass_threshold"),
        "max_episode_steps": request.get("max_episode_steps"),
        "success_threshold": request.get("success_threshold"),
        "episodes_done": results.get("episodes_done", 0),
        "progress": row.progress,
        "attempt": row.attempts,
        "restarts": row.restarts,
        "attempts": row.history,
        "error": row.error,
        "overall_score": results.get("overall_score"),
        "pass_rate": results.get("pass_rate", results.get("success_rate")),
        "warnings": [*items(request.get("warnings")), *items(results.get("warnings"))],
        "created_at": moment(row.created_at),
        "started_at": moment(row.started_at),
        "completed_at": moment(row.completed_at),
    }


def report(row: JobRow, events: Sequence[EventRow]) -> JsonObject:
    """An evaluation with what is known of its result.

    While it runs, and when it ended early, the episodes so far are there and counted, without
    statistics that only the whole would give.
    """
    results = sound(row.results)
    episodes = items(results.get("episodes")) or [
        told for told in (sound(event.data) for event in events) if is_episode(told)
    ]
    # Several are played at once, and end in any order.
    episodes.sort(key=_place)
    scored = sum(1 for episode in episodes if _has_score(episode))
    told: JsonObject = {
        "scored": scored,
        "failed": len(episodes) - scored,
        "verifier_breakdown": {},
        "scenario_results": [],
        "tier_results": [],
        **results,
        **evaluation(row),
        "episodes": episodes,
        "complete": row.status == lifecycle.COMPLETED,
        "rollout_ids": [],
        "left_out": _left_out(cast("list[JsonObject]", episodes)),
    }
    return {**told, "partial": partial(told)}


def _left_out(episodes: Sequence[JsonObject]) -> JsonObject:
    """How many episodes are in no average, by their outcome."""
    return dict(Counter(str(one["outcome"]) for one in episodes if not _has_score(one)))


def asked(request: JsonObject) -> int:
    """How many episodes an evaluation plays."""
    told = request.get("asked")
    return told if isinstance(told, int) else _length(request.get("seeds"))


def verifier_ids(request: JsonObject) -> list[str]:
    """Who judges an evaluation."""
    told = request.get("verifiers")
    known = cast("JsonObject", told).get("known") if isinstance(told, dict) else None
    return list(cast("JsonObject", known)) if isinstance(known, dict) else []


def _scenarios(request: JsonObject) -> JsonObject:
    given = request.get("scenarios")
    told = cast("JsonObject", given) if isinstance(given, dict) else {}
    listed = [cast("JsonObject", one) for one in items(told.get("scenarios"))]
    return {
        "scenario_suite_id": told.get("suite_id"),
        "scenario_suite_version": told.get("suite_version"),
        "scenario_ids": [one.get("id") for one in listed],
    }


def _place(episode: object) -> int:
    told = cast("JsonObject", episode) if isinstance(episode, dict) else {}
    return integer(told.get("index")) or 0


def _has_score(episode: object) -> bool:
    if not isinstance(episode, dict):
        return False
    told = cast("JsonObject", episode)
    return told.get("reward") is not None and told.get("outcome") != "grader_error"


def _message(row: JobRow) -> str:
    what = "training" if row.kind == TRAINING else "evaluation"
    return f"{what} of {row.version.environment.name!r} is {row.status}"


def _length(value: object) -> int:
    return len(items(value))


def moment(value: datetime | None) -> str | None:
    """A time as clients read it."""
    return None if value is None else value.astimezone(UTC).isoformat().replace("+00:00", "Z")

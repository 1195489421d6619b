"""Tools, verifiers, scenarios, suites and agents as the JSON that clients read."""

from collections.abc import Mapping
from datetime import UTC, datetime

from rleaas.server.rules import acting_tools
from rleaas.server.rules.library import BUILT_IN, VERSION, BuiltInSuite
from rleaas.server.store.tables import (
    AgentRecordRow,
    AgentRow,
    AgentVersionRow,
    JsonObject,
    ScenarioRow,
    SuiteRow,
    ToolRow,
    VerifierAuditRow,
    VerifierRow,
    VerifierVersionRow,
)

Names = Mapping[int, str]


def tool(row: ToolRow, names: Names) -> JsonObject:
    """A tool; without an environment it is for all of them."""
    return {
        "source": "custom",
        **acting_tools.shown(row.details),
        "id": row.id,
        "name": row.name,
        "type": row.type,
        "category": row.category,
        "description": row.description,
        "parameters": row.parameters,
        **_place(row, names),
        **_times(row),
    }


def verifier(row: VerifierRow, names: Names) -> JsonObject:
    """A verifier at its newest version."""
    return {
        "source": "custom",
        "metadata": {},
        **row.details,
        "id": row.id,
        "name": row.name,
        "type": row.type,
        "system": row.system,
        "status": row.status,
        "description": row.description,
        "logic": row.logic,
        "failure_policy": row.failure_policy,
        "version": row.version,
        **_place(row, names),
        **_times(row),
    }


def verifier_version(row: VerifierVersionRow, verifier_id: str) -> JsonObject:
    """What a verifier judged by."""
    return {
        "verifier_id": verifier_id,
        "version": row.version,
        "logic": row.logic,
        "failure_policy": row.failure_policy,
        "created_at": time(row.created_at),
    }


def verifier_audit(row: VerifierAuditRow, verifier_id: str, audited: bool) -> JsonObject:
    """What a grader test found, and whether it counts for the verifier as it is now."""
    return {
        **row.report,
        "id": row.id,
        "verifier_id": verifier_id,
        "version": row.version,
        "passed": row.passed,
        "audited": audited,
        "created_at": time(row.created_at),
    }


def scenario(row: ScenarioRow, names: Names) -> JsonObject:
    """A scenario."""
    place = _place(row, names)
    return {
        **row.details,
        "id": row.id,
        "name": row.name,
        "tier": row.tier,
        "task_prompt": row.task_prompt,
        "max_steps": row.max_steps,
        "tags": row.tags,
        "source": row.source,
        "version": row.version,
        "product": place["environment"],
        **place,
        **_times(row),
    }


def suite(row: SuiteRow, names: Names) -> JsonObject:
    """A suite, with the ids of its scenarios in their order."""
    return {
        **row.details,
        "id": row.id,
        "type": "suite",
        "name": row.name,
        "purpose": row.purpose,
        "scenario_ids": row.scenario_ids,
        "version": row.version,
        **_place(row, names),
        **_times(row),
    }


def built_in_suite(one: BuiltInSuite) -> JsonObject:
    """A suite that is the same everywhere."""
    return {
        "id": one.id,
        "type": "suite",
        "name": one.name,
        "purpose": one.purpose,
        "scenario_ids": one.scenario_ids,
        "version": VERSION,
        "source": BUILT_IN,
        "vertical": one.vertical,
        "content_sha256": one.digest,
        "environment": "",
        "environment_id": None,
    }


def agent(row: AgentRow) -> JsonObject:
    """An agent at its current version."""
    return {
        **row.details,
        "id": row.id,
        "name": row.name,
        "base_model": row.base_model,
        "model_ref": row.model_ref,
        "framework": row.framework,
        "trainable": row.trainable,
        "compatible_categories": row.compatible_categories,
        "tool_permissions": row.tool_permissions,
        "version": f"v{row.version}",
        **_times(row),
    }


def agent_version(row: AgentVersionRow, current: int) -> JsonObject:
    """What an agent was configured as."""
    return {
        "version": f"v{row.version}",
        "number": row.version,
        "is_current": row.version == current,
        "reason": row.reason,
        "config": row.config,
        "created_at": time(row.created_at),
    }


def agent_record(row: AgentRecordRow, agent_id: str) -> JsonObject:
    """Something that an agent did or was put to."""
    return {
        **row.data,
        "id": row.id,
        "agent_id": agent_id,
        "status": row.status,
        "created_at": time(row.created_at),
        "completed_at": time(row.completed_at),
    }


def _place(row: ToolRow | VerifierRow | ScenarioRow | SuiteRow, names: Names) -> JsonObject:
    number = row.environment_id
    return {"environment": "" if number is None else names[number], "environment_id": number}


def _times(row: ToolRow | VerifierRow | ScenarioRow | SuiteRow | AgentRow) -> JsonObject:
    return {"created_at": time(row.created_at), "updated_at": time(row.updated_at)}


def time(value: datetime | None) -> str | None:
    """The moment as text, in UTC."""
    return None if value is None else value.astimezone(UTC).isoformat().replace("+00:00", "Z")

"""Whether the platform would start the runs of a file: asked before any of them starts."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from rlcore import (
    ConfigurationError,
    ConflictError,
    Error,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    QuotaExceededError,
    RLEaaSAPIError,
)

from rleaas.cli.plain import first_lines
from rleaas.training.run_file.entries import Run
from rleaas.training.run_file.positions import Position
from rleaas.training.run_file.reading import RunFile

if TYPE_CHECKING:
    from rleaas import Client

# Anything else is no answer to the question, and ends the command.
_REFUSALS: Final = (
    ConfigurationError,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    QuotaExceededError,
)
_NO_SUCH_ROUTE: Final = (404, 405, 501)

_KEY_OF_KIND: Mapping[str, str] = {
    "agent": "agent_id",
    "checkpoint": "resume_from_checkpoint",
    "environment": "environment_name",
    "scenario": "scenario_id",
    "suite": "scenario_id",
    "verifier": "verifier_ids",
}
_KEY_OF_CODE: Mapping[str, str] = {
    "algorithm_unavailable": "algorithm",
    "checkpoint_incompatible": "resume_from_checkpoint",
    "checkpoint_of_other_algorithm": "resume_from_checkpoint",
    "code_not_allowed": "reward_fn",
    "environment_deprovisioned": "environment_name",
    "environment_failed": "environment_name",
    "environment_without_source": "environment_name",
    "evaluation_suite": "scenario_id",
    "invalid_reward_fn": "reward_fn",
    "missing_dependency": "config.tracking",
    "priority_not_permitted": "priority",
    "reward_source_missing": "reward_fn",
    "space_not_learnable": "algorithm",
    "verifier_disabled": "verifier_ids",
    "verifier_incomplete": "verifier_ids",
}
_IN_CONFIG: Final = re.compile(r"\bconfig\.([A-Za-z_]+)")


@dataclass(slots=True)
class _Refused:
    """What is refused so far: the sentences, where they belong, and the first error."""

    file: RunFile
    told: list[tuple[Position, str]] = field(default_factory=list["tuple[Position, str]"])
    first: Error | None = None

    def add(self, run: Run, key: str | None, error: Error) -> None:
        at = run.at if key is None else run.written.get(key, run.at)
        path = run.path if key is None or key not in run.written else f"{run.path}.{key}"
        hint = f" ({error.hint})" if error.hint else ""
        place = f"{self.file.path}:{at.line}:{at.column}"
        self.told.append((at, f"{place}: {path}: {error.message}{hint}"))
        self.first = self.first or error


def arguments_of(run: Run) -> dict[str, Any]:  # Any: of a call, each of a type of its own
    """Return how `TrainingJob.run` is called for a run."""
    optional: dict[str, object | None] = {
        "agent_id": run.agent_id,
        "scenario_suite_id": run.scenario_id,
        "name": run.name,
        "verifier_ids": list(run.verifier_ids) or None,
        "resume_from_checkpoint": run.resume_from_checkpoint,
        "priority": run.priority,
    }
    return {
        "environment_name": run.environment_name,
        "algorithm": run.algorithm,
        "config": dict(run.settings),
        **{key: value for key, value in optional.items() if value is not None},
    }


def require_startable(client: Client, file: RunFile, runs: Sequence[Run]) -> None:
    """Ask the platform whether it would start each run, so that none starts where another cannot.

    A platform that cannot be asked so is asked for all that the runs name.

    Raises:
        RLEaaSError, ConfigurationError: something is refused; all of it has been said. Or the
            platform gave no answer.
    """
    refused = _Refused(file)
    missing = _look_for_all(client, runs, refused)
    for earlier, run in enumerate(runs):
        if ("environment_name", run.environment_name) in missing:
            continue
        try:
            client.TrainingJob.check(**arguments_of(run), beside=earlier)
        except _REFUSALS as error:
            if _is_no_check(error):
                break
            key = _key_of(run, error)
            if not isinstance(error, NotFoundError) or (key, error.ref) not in missing:
                refused.add(run, key, error)
        except RLEaaSAPIError as error:
            if error.status_code not in _NO_SUCH_ROUTE:
                raise
            break
    if refused.first is None:
        return
    lines = [line for _, line in sorted(refused.told, key=lambda one: one[0])]
    for line in first_lines(lines, "refusals", ""):
        print(line, file=sys.stderr)
    first = refused.first
    first.message = f"{first.message}; nothing was started"
    raise first


def _look_for_all(
    client: Client, runs: Sequence[Run], refused: _Refused
) -> set[tuple[str | None, str]]:
    """Return and note what is not there of all that the runs name."""
    asked: dict[tuple[str, str], Error | None] = {}
    for run in runs:
        for key, name in _named_things(run):
            if (key, name) not in asked:
                asked[key, name] = _look_for(client, key, name)
            error = asked[key, name]
            if error is not None:
                refused.add(run, key, error)
    return {thing for thing, error in asked.items() if error is not None}


def _named_things(run: Run) -> list[tuple[str, str]]:
    named = [
        ("environment_name", run.environment_name),
        ("agent_id", run.agent_id),
        ("resume_from_checkpoint", run.resume_from_checkpoint),
        ("scenario_id", run.scenario_id),
        *(("verifier_ids", one) for one in run.verifier_ids),
    ]
    return [(key, name) for key, name in named if name]


def _look_for(client: Client, key: str, name: str) -> Error | None:
    finds = {
        "environment_name": (client.Environment.get,),
        "agent_id": (client.Agent.get,),
        "resume_from_checkpoint": (client.Checkpoint.get,),
        "scenario_id": (client.ScenarioSuite.get, client.Scenario.get),
        "verifier_ids": (client.Verifier.get,),
    }[key]
    missing: Error | None = None
    for find in finds:
        try:
            find(name)
        except (NotFoundError, ConfigurationError) as error:
            missing = error
        else:
            return None
    return missing


def _is_no_check(error: Exception) -> bool:
    """Whether the platform says that it knows no such question, rather than no to it."""
    if not isinstance(error, RLEaaSAPIError) or error.status_code not in _NO_SUCH_ROUTE:
        return False
    body = error.body
    code = cast("Mapping[str, object]", body).get("code") if isinstance(body, Mapping) else None
    return error.status_code != 404 or code in (None, "route_not_found")


def _key_of(run: Run, error: Error) -> str | None:
    """Return the key of the entry that a refusal is about, if that can be told."""
    kind = error.kind if isinstance(error, NotFoundError) else ""
    inside = _IN_CONFIG.search(error.message)
    for key in (
        _KEY_OF_KIND.get(kind),
        _KEY_OF_CODE.get(error.code),
        f"config.{inside[1]}" if inside else None,
    ):
        if key is None:
            continue
        if key in run.written:
            return key
        if f"config.{key}" in run.written:
            return f"config.{key}"
    return None

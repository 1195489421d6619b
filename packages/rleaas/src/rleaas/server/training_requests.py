"""A training request as a job carries it: what it starts from, and what it may use up."""

import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from rlcore import ConfigurationError
from sqlalchemy.orm import Session

from rleaas.server.routes.bodies import JsonObject, StartTraining
from rleaas.server.rules.job_limits import within_limits
from rleaas.server.rules.json_values import fields
from rleaas.server.starting_points import require_resumable, spaces_of, starting_point
from rleaas.server.store import (
    agents,
    known_tools,
    training_scenarios,
    verifier_definitions,
    verifiers,
)
from rleaas.server.store.tables import VersionRow
from rleaas.training.algorithms import ALGORITHMS, require_fit, require_settings_fit
from rleaas.training.config import TrainingConfig
from rleaas.training.rewards.spec import read_reward_file, validate_reward_fn, validate_verifiers
from rleaas.training.session_parts import SessionParts, require_tiers
from rleaas.training.tracking.settings import missing_packages
from rleaas.verify import Means, definition_of
from rleaas.verify.means import NO_MEANS

HUMAN_EVALUATION = "human_evaluation"


def job_request(
    session: Session,
    body: StartTraining,
    checked: TrainingConfig,
    version: VersionRow,
    limits: Mapping[str, float],
    *,
    judged: JsonObject,
) -> JsonObject:
    """Everything that the job's worker is told of it; `judged` is what `judged_by` has found.

    Raises:
        ConfigurationError: the algorithm cannot learn on the environment's spaces, what the
            training would start from does not fit, or a curriculum has no tiers.
        ConflictError: the suite is held out for evaluation, or the agent's checkpoint is not there.
        AgentNotFound, CheckpointNotFound, ScenarioNotFound: there is none.
        QuotaExceededError: more is asked for than the organisation may.
    """
    _require_fit(checked, version)
    agent = agents.find(session, body.model) if body.model else None
    start, checkpoint = starting_point(session, body.resume_from_checkpoint, agent)
    warnings = list(checked.warnings)
    if checkpoint is not None:
        require_resumable(checkpoint, checked, version)
    elif agent is not None:
        warnings.append(f"agent {agent.id!r} has no checkpoint: the training starts from nothing")
    checked = replace(checked, compute_quota=within_limits(checked.compute_quota, limits))
    trained_on = _trained_on(session, body)
    _require_curriculum(checked, version, trained_on)
    algorithm = ALGORITHMS[checked.algorithm]
    seed = checked.effective_seed
    return {
        "algorithm": checked.algorithm,
        "num_episodes": checked.num_episodes,
        "max_steps": checked.max_steps,
        "config": checked.to_config(),
        # One that is drawn is part of the record: a restart, or anybody, can do the same again.
        "seed": secrets.randbelow(2**31) if seed is None else seed,
        "model": agent.id if agent else None,
        "resume_from_checkpoint": checkpoint.id if checkpoint else None,
        "start": start,
        "warnings": warnings,
        "reproducible": algorithm.reproducible,
        "why_not": algorithm.why_not,
        **judged,
        **trained_on,
    }


def with_reward_file(config: JsonObject | None, root: Path | None) -> JsonObject | None:
    """The config with the text of its reward function's file, where the operator keeps such files.

    Published clients send the path only; this SDK sends the file.

    Raises:
        ConfigurationError: there is no such file under `root`.
    """
    if root is None or not config or config.get("reward_fn") is None:
        return config
    spec = validate_reward_fn(config["reward_fn"], need_source=False)
    if spec is None or spec.path is None or spec.text is not None:
        return config
    place = root.resolve()
    file = (place / spec.path).resolve()
    if not file.is_relative_to(place):
        raise ConfigurationError(
            f"reward_fn: {spec.path!r} is not among the server's reward files",
            code="reward_source_missing",
            hint="Send the file's text as 'source' beside the path",
        )
    return {**config, "reward_fn": {**read_reward_file(file), "value": spec.path}}


def require_code_allowed(checked: TrainingConfig, *, allowed: bool) -> None:
    """Refuse a reward function in Python where users may not run any.

    Raises:
        ConfigurationError: it is one; code `code_not_allowed`.
    """
    if checked.reward_fn is not None:
        validate_reward_fn(checked.reward_fn.to_json(), allow_code=allowed)


def require_executor(checked: TrainingConfig, executor: str) -> None:
    """Refuse rollout workers where there is no cluster for them.

    Raises:
        ConfigurationError: this server's jobs are processes of its own machine.
    """
    if checked.rollout_workers is not None and executor != "ray":
        raise ConfigurationError(
            "config.rollout_workers needs a Ray cluster, and this server has none",
            code="not_available",
            hint="Leave it out: num_envs is how many sessions are stepped side by side; or start "
            "the server with --executor ray",
        )


def require_trackers(checked: TrainingConfig, *, here: bool) -> None:
    """Refuse trackers whose packages are missing, where that is known before the job starts.

    Args:
        checked: the request.
        here: whether jobs run where this server does.

    Raises:
        ConfigurationError: one is; code `missing_dependency`.
    """
    missing = missing_packages(checked.tracking or {}) if here else []
    if missing:
        raise ConfigurationError(
            f"tracking by {', '.join(missing)} needs packages that the server does not have",
            code="missing_dependency",
            hint="Install them there: pip install 'rleaas[track]'; or leave them out.",
        )


def judged_by(
    session: Session,
    body: StartTraining,
    checked: TrainingConfig,
    version: VersionRow,
    means: Means = NO_MEANS,
) -> JsonObject:
    """What the job's worker is told of the verifiers that judge it; reads all their conditions.

    Raises:
        ConfigurationError: they or their weights make no sense, one is disabled or incomplete, or
            names a tool that the version's world does not have.
        VerifierNotFound: there is none of that name.
    """
    ids = body.verifier_ids or ([body.verifier_id] if body.verifier_id else [])
    weights = validate_verifiers(ids, _weights(body, checked))
    if not weights:
        return {}
    # People judge the whole job when it is done, the others each of its episodes.
    asks_people = {one for one in weights if verifiers.find(session, one).type == HUMAN_EVALUATION}
    judges = {one: weight for one, weight in weights.items() if one not in asks_people}
    found: JsonObject = {"verifier_ids": list(weights)}
    if judges:
        told = verifier_definitions.weighted(session, judges, means)
        definitions = map(definition_of, cast("list[JsonObject]", told["definitions"]))
        known_tools.require_of_world(session, version, definitions)
        found["verifiers"] = told
    return found


def _weights(body: StartTraining, checked: TrainingConfig) -> object:
    inside = checked.verifier_weights
    given = list(inside) if isinstance(inside, tuple) else inside
    if body.verifier_weights is None:
        return given
    if given not in (None, body.verifier_weights):
        raise ConfigurationError(
            "verifier_weights contradict config.verifier_weights",
            code="invalid_training_config",
            hint="Give them once",
        )
    return body.verifier_weights


def _trained_on(session: Session, body: StartTraining) -> JsonObject:
    if not body.scenario_id:
        return {}
    scenarios = training_scenarios.trained_on(session, body.scenario_id)
    return {"scenario_id": body.scenario_id, "scenarios": scenarios}


def _require_curriculum(
    checked: TrainingConfig, version: VersionRow, trained_on: JsonObject
) -> None:
    if checked.curriculum is None:
        return
    scenarios = fields(trained_on.get("scenarios"))
    SessionParts.of(max_steps=checked.max_steps, scenarios=scenarios, curriculum=checked.curriculum)
    if not scenarios and version.contract is not None:
        require_tiers(fields(version.contract.get("metadata")))


def _require_fit(checked: TrainingConfig, version: VersionRow) -> None:
    spaces = spaces_of(version)
    if spaces is not None:
        require_fit(checked.algorithm, *spaces)
        require_settings_fit(checked.hyperparameters, *spaces)

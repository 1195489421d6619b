"""An evaluation as its job carries it: who plays what, and who judges it."""

from collections.abc import Mapping, Sequence
from typing import Final, cast

from rlcore import ConfigurationError, ConflictError
from sqlalchemy.orm import Session

from rleaas.evaluation.plans import SEEDING
from rleaas.server.agent_models import AgentModels
from rleaas.server.routes.bodies import MAX_EPISODES, JsonObject, StartEvaluation
from rleaas.server.routes.requests import workable_version
from rleaas.server.rules import library, lifecycle, worlds
from rleaas.server.rules.catalogue import ACTIVE
from rleaas.server.rules.json_values import items
from rleaas.server.rules.requests import evaluation_seeds
from rleaas.server.starting_points import require_same_spaces
from rleaas.server.store import (
    catalogue,
    jobs,
    known_tools,
    rollouts,
    training_scenarios,
    verifier_audits,
    verifier_definitions,
    verifiers,
)
from rleaas.server.store.tables import CheckpointRow, JobRow, ScenarioRow, VerifierRow, VersionRow
from rleaas.verify import Means, definition_of
from rleaas.verify.means import NO_MEANS

AGENTS: Final = ("random", "expert", "llm")
SEEDS_OF_SCENARIOS: Final = 5
"""With how many seeds each scenario is played where nobody says."""
SHAPING: Final = (
    "checkpoint_id",
    "agent",
    "seeds",
    "repetitions",
    "seeding",
    "scenarios",
    "verifiers",
    "max_episode_steps",
    "success_threshold",
    "pass_threshold",
)
"""What makes two evaluations of one environment the same."""


def evaluation_request(
    session: Session,
    body: StartEvaluation,
    means: Means = NO_MEANS,
    models: AgentModels | None = None,
) -> tuple[VersionRow, JsonObject]:
    """The version that is played on, and everything that the evaluation's worker is told.

    Without an environment it is the one that the checkpoint was trained on.

    Raises:
        ConfigurationError: nobody is to play, or two are; the agent cannot play there; a threshold
            is beyond what scores can be; a verifier
            is of another environment, or names a tool that this one's world does not have; the
            suite is of another vertical, empty or more than a server plays; or the checkpoint has
            other observations or actions.
        CheckpointNotFound, EnvironmentNotFound, SuiteNotFound, ScenarioNotFound, VerifierNotFound:
            there is none.
        ConflictError: the environment cannot be served.
    """
    seeds = _seeds(body)
    checkpoint = _player(session, body)
    version = _version(session, body, checkpoint)
    agent = _agent(body, version, models)
    scenarios = training_scenarios.evaluated_on(
        session, body.scenario_suite_id, body.scenario_ids or []
    )
    played = [cast("JsonObject", one) for one in items(scenarios.get("scenarios"))]
    _require_vertical(version, played)
    without_case = _give_cases(version, played)
    asked = max(1, len(played)) * len(seeds) * body.repetitions
    if asked > MAX_EPISODES:
        raise ConfigurationError(
            f"{len(played)} scenarios x {len(seeds)} seeds x {body.repetitions} repetitions are "
            f"{asked} episodes, more than {MAX_EPISODES}",
            code="invalid_evaluation",
            hint="Play fewer of them in each evaluation",
        )
    judges, warnings = _judges(session, version, body.verifier_ids or [], played, means)
    if played or judges:
        _require_threshold(body.pass_threshold)
    return version, {
        "checkpoint_id": checkpoint.id if checkpoint else None,
        "checkpoint_sha256": checkpoint.sha256 if checkpoint else None,
        "trained_contract_digest": checkpoint.job.version.contract_digest if checkpoint else None,
        "agent": agent,
        "seeds": seeds,
        "repetitions": body.repetitions,
        "seeding": SEEDING,
        "asked": asked,
        "scenarios": scenarios or None,
        "verifiers": judges,
        "num_workers": body.num_workers,
        "max_episode_steps": body.max_episode_steps,
        "success_threshold": body.success_threshold,
        "pass_threshold": body.pass_threshold,
        "purpose": body.purpose,
        "warnings": [
            *_about_version(version, checkpoint),
            *_about_scenarios(scenarios, checkpoint),
            *without_case,
            *warnings,
        ],
    }


def rescored(
    session: Session,
    source: JobRow,
    verifier_ids: Sequence[str],
    pass_threshold: float | None,
    means: Means = NO_MEANS,
) -> JsonObject:
    """The request of an evaluation that judges the rollouts of another one, and plays nothing.

    Raises:
        ConfigurationError: a verifier is of another environment, disabled, or cannot judge.
        VerifierNotFound: there is none.
        ConflictError: the other one has not ended (`evaluations_unfinished`), or no rollouts of it
            are stored (`no_rollouts`).
    """
    if source.status not in lifecycle.TERMINAL:
        raise ConflictError(
            f"evaluation {source.id!r} is {source.status}",
            code="evaluations_unfinished",
            hint="Wait until it has ended",
        )
    if not rollouts.files_of(session, source.id):
        raise ConflictError(
            f"evaluation {source.id!r} has no stored rollouts",
            code="no_rollouts",
            hint="Evaluate again: steps are kept since this release",
        )
    judges, warnings = _judges(session, source.version, verifier_ids, [], means)
    _require_threshold(pass_threshold)
    return {
        **source.request,
        "verifiers": judges,
        "pass_threshold": pass_threshold,
        "source_evaluation_id": source.id,
        "warnings": warnings,
    }


def _player(session: Session, body: StartEvaluation) -> CheckpointRow | None:
    if bool(body.agent_checkpoint_id) == bool(body.agent):
        raise ConfigurationError(
            "an evaluation is of a checkpoint or of an agent: "
            + ("both are given" if body.agent else "neither is given"),
            code="invalid_evaluation",
            hint="Give agent_checkpoint_id, or agent",
        )
    if body.agent_checkpoint_id:
        return jobs.find_checkpoint(session, body.agent_checkpoint_id)
    if isinstance(body.agent, str) and body.agent not in AGENTS:
        raise ConfigurationError(
            f"there is no agent {body.agent!r} to evaluate",
            code="unknown_agent",
            hint=f"There are {', '.join(AGENTS)}; or give agent_checkpoint_id",
        )
    return None


def _agent(
    body: StartEvaluation, version: VersionRow, models: AgentModels | None
) -> str | JsonObject | None:
    """Who plays in place of a checkpoint; refuses who could not play there."""
    if body.agent in ("", "random"):
        return "random" if body.agent else None
    environment = version.environment
    world = worlds.world_of(version.source)
    if body.agent == "expert":
        if world is None:
            raise ConfigurationError(
                f"the expert plays built-in worlds only, and {environment.name!r} serves none",
                code="agent_needs_world",
                hint="Name an environment of a vertical that has no source of its own",
            )
        return "expert"
    if world is not None and version.config.get(worlds.FACE) != "text":
        raise ConfigurationError(
            f"a language model plays the text face of a world, and {environment.name!r} serves "
            "the discrete one",
            code="wrong_face",
            hint="Register an environment with config={'face': 'text'}",
        )
    if models is None:
        raise ConfigurationError("no language model is there to play", code="no_agent_model")
    return models.settled(
        {} if isinstance(body.agent, str) else body.agent.model_dump(exclude_none=True)
    )


def _version(
    session: Session, body: StartEvaluation, checkpoint: CheckpointRow | None
) -> VersionRow:
    if body.environment_name:
        version = workable_version(session, body.environment_name, body.environment_version)
        if checkpoint is not None:
            require_same_spaces(checkpoint, version)
        return version
    if checkpoint is None:
        raise ConfigurationError(
            f"agent {_word(body)!r} has no environment of its own",
            code="invalid_evaluation",
            hint="Give environment_name",
        )
    trained_on = checkpoint.job.version
    name, number = trained_on.environment.name, body.environment_version or trained_on.version
    version = workable_version(session, name, number)
    require_same_spaces(checkpoint, version)
    return version


def _word(body: StartEvaluation) -> str:
    return body.agent if isinstance(body.agent, str) else body.agent.kind


def _seeds(body: StartEvaluation) -> list[int]:
    if body.scenario_suite_id and body.scenario_ids:
        raise ConfigurationError(
            "an evaluation has a suite or scenarios, and both are given",
            code="invalid_evaluation",
            hint="Leave one of scenario_suite_id and scenario_ids out",
        )
    scenarios = body.scenario_suite_id or body.scenario_ids
    if scenarios and body.seeds is None and body.episodes is None:
        return evaluation_seeds(None, SEEDS_OF_SCENARIOS, body.base_seed)
    return evaluation_seeds(body.seeds, body.episodes, body.base_seed)


def _require_vertical(version: VersionRow, played: Sequence[JsonObject]) -> None:
    vertical = version.environment.vertical
    for one in played:
        context = one.get("context_injection")
        said = cast("JsonObject", context) if isinstance(context, dict) else {}
        based_on = said.get(library.BASED_ON)
        shipped = library.find(str(based_on)) if based_on else None
        if shipped is not None and vertical and shipped.vertical.lower() != vertical.lower():
            raise ConfigurationError(
                f"scenario {one['id']!r} is of {shipped.vertical}, and environment "
                f"{version.environment.name!r} of {vertical}",
                code="scenario_of_other_vertical",
                hint=f"Evaluate on an environment of {shipped.vertical}",
            )


def _give_cases(version: VersionRow, played: Sequence[JsonObject]) -> list[str]:
    """Settle what is played for scenarios of a world that name no case; says so of each."""
    world = worlds.world_of(version.source)
    said: list[str] = []
    for one in played if world is not None else ():
        context = one.get("context_injection")
        known = cast("JsonObject", context) if isinstance(context, dict) else {}
        name, tier = str(one["id"]), one.get("tier")
        if known.get(library.BASED_ON) or library.find(name) or not isinstance(tier, int):
            continue
        case = library.held_out_case(world.name if world else "", name, tier)
        one["context_injection"] = {**known, library.BASED_ON: case.id}
        said.append(
            f"scenario {name} names no case: {case.id} of the evaluation half is played under its "
            f"prompt, and success is what that one's criteria say; name a case with "
            f"context_injection.{library.BASED_ON}"
        )
    return said


def _judges(
    session: Session,
    version: VersionRow,
    verifier_ids: Sequence[str],
    played: Sequence[JsonObject],
    means: Means,
) -> tuple[JsonObject | None, list[str]]:
    """Who judges: those of the request, else a scenario's own, else the environment's."""
    environment = version.environment
    attached = {row.row_id: one.weight for row, one in verifiers.attached(session, environment)}
    found: dict[str, VerifierRow] = {}
    about_tools: list[str] = []

    def weighted(rows: Mapping[str, tuple[VerifierRow, float]]) -> JsonObject:
        for row, _ in rows.values():
            found[row.id] = row
            if row.environment_id in (None, environment.id) or row.row_id in attached:
                continue
            names = catalogue.environment_names(session, [row.environment_id])
            raise ConfigurationError(
                f"verifier {row.id!r} is of environment {names[row.environment_id]!r}, not of "
                f"{environment.name!r}",
                code="verifier_of_other_environment",
                hint="Attach it to this environment, or name another one",
            )
        judges = verifier_definitions.weighted(
            session, {one: weight for one, (_, weight) in rows.items()}, means
        )
        definitions = map(definition_of, cast("list[JsonObject]", judges["definitions"]))
        about_tools.extend(known_tools.warnings_of(session, version, definitions))
        return judges

    if verifier_ids:
        named = {one: (verifiers.find(session, one), 1.0) for one in verifier_ids}
        everybody: JsonObject | None = weighted(named)
        told = _told("request", everybody, {}, _known(session, found, means))
        return told, [*_unaudited(session, found, means), *dict.fromkeys(about_tools)]
    of_scenarios: JsonObject = {}
    for one in played:
        row = catalogue.by_id(session, ScenarioRow, str(one["id"]))
        reference = None if row is None else row.details.get("success_criteria_ref")
        if isinstance(reference, str) and reference:
            judge = verifiers.find(session, reference)
            of_scenarios[str(one["id"])] = weighted({judge.id: (judge, 1.0)})
    own = {
        row.id: (row, one.weight)
        for row, one in verifiers.attached(session, environment)
        if row.status == ACTIVE
    }
    source = "scenario" if of_scenarios and not own else "environment"
    everybody = weighted(own) if own else None
    told = _told(source, everybody, of_scenarios, _known(session, found, means))
    return told, [*_unaudited(session, found, means), *dict.fromkeys(about_tools)]


def _known(session: Session, found: Mapping[str, VerifierRow], means: Means) -> JsonObject:
    """What reports say of each verifier, beside what it says of episodes."""
    return {
        row.id: {
            "name": row.name,
            "version": row.version,
            "audited": verifier_audits.is_audited(session, row, means.model_identity),
            "audit": str(verifier_audits.standing(session, row, means.model_identity)),
        }
        for row in found.values()
    }


def _unaudited(session: Session, found: Mapping[str, VerifierRow], means: Means) -> list[str]:
    told = [verifier_audits.warning(session, row, means.model_identity) for row in found.values()]
    return [one for one in told if one is not None]


def _told(
    source: str,
    everybody: JsonObject | None,
    of_scenarios: JsonObject,
    known: JsonObject,
) -> JsonObject | None:
    if not known:
        return None
    groups = [*([everybody] if everybody else []), *of_scenarios.values()]
    definitions = {
        one["id"]: one
        for group in cast("list[JsonObject]", groups)
        for one in cast("list[JsonObject]", group["definitions"])
    }
    return {
        "source": source,
        "everybody": everybody,
        "of_scenarios": of_scenarios,
        "known": known,
        # Of all of them, for who judges in the worker's place.
        "definitions": list(definitions.values()),
    }


def _require_threshold(threshold: float | None) -> None:
    """Refuse one that no score can reach, or that every score does; a return can be any number."""
    if threshold is not None and not 0 <= threshold <= 1:
        raise ConfigurationError(
            f"pass_threshold is {threshold:g}, and scores are from 0 to 1",
            code="invalid_evaluation",
            hint="Give a number from 0 to 1",
        )


def _about_version(version: VersionRow, checkpoint: CheckpointRow | None) -> list[str]:
    trained_on = None if checkpoint is None else checkpoint.job.version
    if trained_on is None or trained_on.id == version.id:
        return []
    there, here = (f"{one.environment.name}@{one.version}" for one in (trained_on, version))
    return [
        f"the checkpoint was trained on {there} and plays on {here}: it says how well what was "
        "learned there does here"
    ]


def _about_scenarios(scenarios: JsonObject, checkpoint: CheckpointRow | None) -> list[str]:
    """What makes the numbers say less than they seem to."""
    told: list[str] = []
    if scenarios.get("purpose") == "training":
        told.append(
            f"suite {scenarios.get('suite_id')!r} is for training: its scores say how well an "
            "agent learned it, not how well it does on what it has not seen"
        )
    trained = None if checkpoint is None else checkpoint.job.request.get("scenarios")
    if isinstance(trained, dict):
        seen = _ids(cast("JsonObject", trained)) & _ids(scenarios)
        if seen:
            told.append(
                f"the checkpoint was trained on {len(seen)} of these scenarios: "
                f"{', '.join(sorted(seen)[:5])}{', ...' if len(seen) > 5 else ''}"
            )
    return told


def _ids(scenarios: JsonObject) -> set[str]:
    listed = [cast("JsonObject", one) for one in items(scenarios.get("scenarios"))]
    return {str(one.get("id")) for one in listed}

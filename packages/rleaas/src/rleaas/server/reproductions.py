"""An evaluation that is played again: what is asked anew, and whether it came out the same."""

from typing import cast

from rlcore import ConflictError

from rleaas.evaluation.provenance import changes, differing_episodes
from rleaas.server.agent_models import as_asked
from rleaas.server.routes.bodies import JsonObject, StartEvaluation
from rleaas.server.rules import lifecycle
from rleaas.server.rules.json_values import items
from rleaas.server.store.tables import JobRow

_SHOWN = 100
_KEPT = (
    "agent",
    "seeds",
    "repetitions",
    "num_workers",
    "max_episode_steps",
    "success_threshold",
    "pass_threshold",
    "purpose",
)


def asked_again(row: JobRow, name: str | None) -> StartEvaluation:
    """The request of an evaluation once more; what it names is taken as it is now.

    Raises:
        ConflictError: nothing was played for it (`not_reproducible`).
    """
    request = row.request
    if request.get("source_evaluation_id"):
        raise ConflictError(
            f"evaluation {row.id!r} judged rollouts of another one, and played nothing",
            code="not_reproducible",
            hint=f"Reproduce {request['source_evaluation_id']!r}",
        )
    told: JsonObject = {key: request[key] for key in _KEPT if request.get(key) is not None}
    if "agent" in told:
        told["agent"] = as_asked(told["agent"])
    scenarios, judges = _object(request.get("scenarios")), _object(request.get("verifiers"))
    if scenarios.get("suite_id"):
        told["scenario_suite_id"] = scenarios["suite_id"]
    elif scenarios:
        listed = [_object(one) for one in items(scenarios.get("scenarios"))]
        told["scenario_ids"] = [one["id"] for one in listed]
    if judges.get("source") == "request":
        told["verifier_ids"] = list(_object(judges.get("known")))
    return StartEvaluation.model_validate(
        {
            **told,
            "agent_checkpoint_id": request.get("checkpoint_id") or "",
            "environment_name": row.version.environment.name,
            "environment_version": row.version.version,
            "name": name or f"{row.name or row.id} again",
        }
    )


def verdict(original: JsonObject, reproduction: JsonObject) -> JsonObject:
    """Whether two reports say the same of each episode, and what changed between them.

    Raises:
        ConflictError: one of them is not complete (`evaluations_unfinished`).
    """
    for one in (original, reproduction):
        if one["status"] != lifecycle.COMPLETED:
            raise ConflictError(
                f"evaluation {one['id']!r} is {one['status']}",
                code="evaluations_unfinished",
                hint="Wait until both are completed",
            )
    before, after = (
        [_object(one) for one in items(r["episodes"])] for r in (original, reproduction)
    )
    differing = differing_episodes(before, after)
    return {
        "original_id": original["id"],
        "reproduction_id": reproduction["id"],
        "verdict": "different" if differing else "same",
        "changes": changes(
            _object(original.get("provenance")), _object(reproduction.get("provenance"))
        ),
        "episodes": len(before),
        "episodes_differing": len(differing),
        "differences": differing[:_SHOWN],
        "overall_score": {
            "original": original.get("overall_score"),
            "reproduction": reproduction.get("overall_score"),
        },
    }


def _object(value: object) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}

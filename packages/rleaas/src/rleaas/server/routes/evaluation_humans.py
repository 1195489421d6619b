"""Routes for what people say about the episodes of evaluations."""

from datetime import UTC, datetime
from typing import cast

from fastapi import APIRouter, Depends
from rlcore import ConfigurationError

from rleaas.server.access import Caller, require_user
from rleaas.server.failures import documented
from rleaas.server.render import moment
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.routes.evaluation_bodies import HumanVerdict
from rleaas.server.routes.evaluations import report
from rleaas.server.routes.requests import IdempotencyHeader, idempotency
from rleaas.server.rules import human_agreement
from rleaas.server.rules.json_values import items
from rleaas.server.store import audit, events, jobs, once
from rleaas.server.store.tables import JobRow

router = APIRouter(
    tags=["evaluations"], dependencies=[Depends(require_user)], responses=documented(401)
)

VERDICT = "human_verdict"


@router.post("/api/evaluations/{evaluation_id}/human-evals", responses=documented(400, 404, 422))
def judge_episode(
    evaluation_id: str,
    body: HumanVerdict,
    caller: Caller,
    idempotency_key: IdempotencyHeader = None,
) -> JsonObject:
    """Keep what a person says of an episode, beside what verifiers said of it."""
    given = body.model_dump(exclude_none=True)
    key = idempotency("evaluation_human", idempotency_key, {"of": evaluation_id, **given})
    with caller.write() as session:
        before = once.earlier(session, key)
        if before is not None:
            return before
        row = jobs.find(session, jobs.EVALUATION, evaluation_id)
    episodes = [one for one in items(report(caller, evaluation_id)["episodes"]) if _is(one, body)]
    if not episodes:
        raise ConfigurationError(
            f"evaluation {evaluation_id!r} has no episode {body.episode}",
            code="no_such_episode",
            hint="Its report lists those that were played",
        )
    with caller.write() as session:
        row = jobs.find(session, jobs.EVALUATION, evaluation_id)
        now = datetime.now(UTC)
        verdict: JsonObject = {
            "rater": caller.principal.user_id,
            **given,
            "timestamp": moment(now),
        }
        jobs.tell(session, row, VERDICT, verdict, now)
        audit.record(
            session,
            caller,
            action="human_eval.submitted",
            subject=jobs.subject(row),
            environment_name=row.version.environment.name,
            job_id=row.id,
            data={"episode": body.episode, "passed": body.passed},
        )
        session.flush()
        reply: JsonObject = {
            "success": True,
            "evaluation_id": row.id,
            "verdict": verdict,
            "total": len(_verdicts(row, caller)) + 1,
        }
        once.keep(session, key, row.id, reply)
    return reply


@router.get("/api/evaluations/{evaluation_id}/human-evals", responses=documented(404))
def list_human_verdicts(evaluation_id: str, caller: Caller) -> JsonObject:
    """What people say now of the evaluation's episodes."""
    with caller.read() as session:
        row = jobs.find(session, jobs.EVALUATION, evaluation_id)
    told = _verdicts(row, caller)
    return {"verdicts": told, "count": len(told)}


@router.get("/api/evaluations/{evaluation_id}/agreement", responses=documented(404))
def get_agreement(evaluation_id: str, caller: Caller) -> JsonObject:
    """How far people and verifiers say the same: Cohen's kappa, with its interval."""
    told = report(caller, evaluation_id)
    with caller.read() as session:
        row = jobs.find(session, jobs.EVALUATION, evaluation_id)
    episodes = [cast("JsonObject", one) for one in items(told["episodes"])]
    found = human_agreement.agreement(_verdicts(row, caller), episodes)
    return {"evaluation_id": evaluation_id, **found}


def _verdicts(row: JobRow, caller: Caller) -> list[JsonObject]:
    with caller.read() as session:
        said = [one.data for one in events.about(session, jobs.subject(row), [VERDICT])]
    return human_agreement.latest(said)


def _is(one: object, body: HumanVerdict) -> bool:
    return cast("JsonObject", one).get("index") == body.episode

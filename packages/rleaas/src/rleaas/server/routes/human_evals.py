"""The route for what people say about training jobs."""

from datetime import UTC, datetime
from typing import Literal

from fastapi import APIRouter, Depends
from pydantic import Field

from rleaas.server.access import Caller, require_user
from rleaas.server.failures import documented
from rleaas.server.render import moment
from rleaas.server.routes.bodies import Body, JsonObject
from rleaas.server.routes.requests import IdempotencyHeader, idempotency
from rleaas.server.rules import lifecycle
from rleaas.server.store import audit, events, jobs, once

router = APIRouter(
    tags=["training"], dependencies=[Depends(require_user)], responses=documented(401)
)

VERDICT = "human_eval"


class StepScore(Body):
    """A word on one step."""

    step_index: int = Field(ge=0, le=10**9, strict=True)
    score: Literal["correct", "flawed", "critical_error"]
    comment: str | None = Field(None, max_length=10_000)


class HumanEval(Body):
    """A person's verdict."""

    decision: Literal["yes", "no"]
    comments: str | None = Field(None, max_length=100_000)
    step_scores: list[StepScore] | None = Field(None, max_length=100_000)


@router.post("/human-eval/{job_id}", responses=documented(400, 404, 409, 422))
def submit_human_eval(
    job_id: str, body: HumanEval, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Keep a verdict; a job that waits for one is complete with it, whatever it says."""
    given = body.model_dump(exclude_none=True)
    key = idempotency("human_eval", idempotency_key, {"job": job_id, **given})
    with caller.write() as session:
        before = once.earlier(session, key)
        if before is not None:
            return before
        row = jobs.find(session, jobs.TRAINING, job_id)
        now = datetime.now(UTC)
        verdict: JsonObject = {**given, "timestamp": moment(now)}
        jobs.tell(session, row, VERDICT, verdict, now)
        completes = row.status == lifecycle.AWAITING_HUMAN_EVAL
        row.results = {**row.results, "human_decision": body.decision}
        if completes:
            row.status = lifecycle.COMPLETED
            row.completed_at = now
            jobs.tell(session, row, lifecycle.COMPLETED, {"human_decision": body.decision}, now)
        audit.record(
            session,
            caller,
            action="human_eval.submitted",
            subject=jobs.subject(row),
            environment_name=row.version.environment.name,
            job_id=row.id,
            data={"decision": body.decision, "completed": completes},
        )
        session.flush()
        reply: JsonObject = {
            "success": True,
            "job_id": row.id,
            "evaluation": verdict,
            "total_evaluations": len(events.about(session, jobs.subject(row), [VERDICT])),
            "training_completed": completes,
        }
        once.keep(session, key, row.id, reply)
    return reply

"""The route for what people say about training jobs."""

from datetime import UTC, datetime
from typing import Final, Literal

from fastapi import APIRouter, Depends
from pydantic import Field
from rlcore import InvalidRequestError

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


_DECISIONS: Final = ("yes", "no")


class HumanEval(Body):
    """A person's verdict."""

    decision: str = Field(json_schema_extra={"enum": list(_DECISIONS)})
    comments: str | None = Field(None, max_length=100_000)
    step_scores: list[StepScore] | None = Field(None, max_length=100_000)


@router.post("/human-eval/{job_id}", responses=documented(400, 404, 409, 422))
def submit_human_eval(
    job_id: str, body: HumanEval, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Keep a verdict; a job that waits for one is complete with a yes, and has failed with a no.

    Its checkpoints stay. Verdicts on other jobs are added to them, and change nothing.
    """
    if body.decision not in _DECISIONS:
        raise InvalidRequestError(
            f"the decision is {body.decision[:80]!r}",
            status_code=400,
            code="invalid_decision",
            hint="It is 'yes' or 'no'",
        )
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
        waits = row.status == lifecycle.AWAITING_HUMAN_EVAL
        completes = waits and body.decision == "yes"
        if waits:
            row.results = {**row.results, "human_decision": body.decision}
            row.status = lifecycle.COMPLETED if completes else lifecycle.FAILED
            row.completed_at = now
            told: JsonObject = {"human_decision": body.decision}
            if not completes:
                row.error = _rejected(body)
                row.results = {**row.results, "failure_reason": "human_rejected"}
                told["error"] = row.error
            jobs.tell(session, row, row.status, told, now)
        audit.record(
            session,
            caller,
            action="human_eval.submitted",
            subject=jobs.subject(row),
            environment_name=row.version.environment.name,
            job_id=row.id,
            data={
                "decision": body.decision,
                "completed": completes,
                "rejected": waits and not completes,
            },
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


def _rejected(body: HumanEval) -> str:
    said = (body.comments or "").strip()
    return f"it was rejected in its human evaluation{f': {said}' if said else ''}"

"""Routes about evaluations."""

from fastapi import APIRouter, Depends
from rlcore import ConfigurationError

from rleaas.server import render
from rleaas.server.access import Caller, CallerOf, require_user
from rleaas.server.evaluation_requests import evaluation_request, rescored
from rleaas.server.failures import documented
from rleaas.server.reproductions import asked_again, verdict
from rleaas.server.routes.bodies import JsonObject, StartEvaluation
from rleaas.server.routes.evaluation_bodies import Reproduce, Rescore
from rleaas.server.routes.repeats import Once, RepeatableRoute
from rleaas.server.routes.requests import IdempotencyHeader, idempotency
from rleaas.server.routes.training import JobStatus, Limit, cancel, page_of_jobs
from rleaas.server.store import attempts, jobs, rollouts

router = APIRouter(
    route_class=RepeatableRoute,
    tags=["evaluations"],
    dependencies=[Depends(require_user)],
    responses=documented(401),
)


@router.post("/api/evaluations", responses=documented(400, 404, 409, 422))
def start_evaluation(
    body: StartEvaluation, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Evaluate a checkpoint, by default on the version it was trained on, or an agent."""
    return queue(body, caller, idempotency_key)


@router.get("/api/evaluations", responses=documented(422))
def list_evaluations(
    caller: Caller, status: JobStatus | None = None, limit: Limit = 0, cursor: str = ""
) -> JsonObject:
    """Evaluations, newest first; all of them, or a page."""
    shown, following = page_of_jobs(caller, jobs.EVALUATION, status, limit, cursor)
    return {
        "evaluations": [render.evaluation(row) for row in shown],
        "count": len(shown),
        "cursor": following,
    }


@router.get("/api/evaluations/{evaluation_id}", responses=documented(404))
def get_evaluation(evaluation_id: str, caller: Caller) -> JsonObject:
    """How an evaluation is doing."""
    with caller.read() as session:
        return render.evaluation(jobs.find(session, jobs.EVALUATION, evaluation_id))


@router.get("/api/evaluations/{evaluation_id}/report", responses=documented(404))
def get_report(evaluation_id: str, caller: Caller) -> JsonObject:
    """An evaluation with its episodes and statistics; partial while it runs."""
    return report(caller, evaluation_id)


@router.post(
    "/api/evaluations/{evaluation_id}/cancel", dependencies=[Once], responses=documented(404, 409)
)
def cancel_evaluation(evaluation_id: str, caller: Caller) -> JsonObject:
    """Cancel an evaluation; the episodes it has finished stay in its report."""
    return render.evaluation(cancel(caller, jobs.EVALUATION, evaluation_id))


@router.post("/api/evaluations/{evaluation_id}/rescore", responses=documented(404, 409, 422))
def rescore_evaluation(
    evaluation_id: str, body: Rescore, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Let other verifiers judge the stored rollouts; nothing is played. A new evaluation."""
    given = body.model_dump(exclude_none=True)
    key = idempotency("evaluation", idempotency_key, {"rescores": evaluation_id, **given})
    with caller.write() as session:
        earlier = jobs.made_before(session, jobs.EVALUATION, key)
        if earlier is not None:
            return render.evaluation(earlier)
        source = jobs.find(session, jobs.EVALUATION, evaluation_id)
        means = caller.state.judging.checking
        request = rescored(session, source, body.verifier_ids, body.pass_threshold, means)
        name = body.name or f"{source.name or source.id} rescored"
        row = jobs.create(
            session, caller, jobs.EVALUATION, source.version, request, name=name, idempotency=key
        )
    caller.state.scheduler.wake()
    return render.evaluation(row)


@router.post("/api/evaluations/{evaluation_id}/reproduce", responses=documented(400, 404, 409, 422))
def reproduce_evaluation(
    evaluation_id: str, body: Reproduce, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Play an evaluation again, with its verifiers and scenarios as they are now."""
    with caller.read() as session:
        row = jobs.find(session, jobs.EVALUATION, evaluation_id)
        asked = asked_again(row, body.name)
    return queue(asked, caller, idempotency_key, reproduces=evaluation_id)


@router.get("/api/evaluations/{evaluation_id}/reproduction", responses=documented(404, 409, 422))
def get_reproduction(evaluation_id: str, caller: Caller, other: str | None = None) -> JsonObject:
    """Whether an evaluation came out as the one that it reproduces, or as another one."""
    with caller.read() as session:
        row = jobs.find(session, jobs.EVALUATION, evaluation_id)
        original = other or row.request.get("reproduces")
    if not isinstance(original, str):
        raise ConfigurationError(
            f"evaluation {evaluation_id!r} reproduces no other",
            code="no_reproduction",
            hint="Say of which one: other=EVALUATION_ID",
        )
    return verdict(report(caller, original), report(caller, evaluation_id))


def queue(
    body: StartEvaluation,
    caller: CallerOf,
    idempotency_key: str | None,
    *,
    reproduces: str | None = None,
) -> JsonObject:
    """Add an evaluation; without an environment, on the one that the checkpoint was trained on."""
    given = body.model_dump(exclude_none=True)
    if reproduces is not None:
        given["reproduces"] = reproduces
    key = idempotency("evaluation", idempotency_key, given)
    with caller.write() as session:
        earlier = jobs.made_before(session, jobs.EVALUATION, key)
        if earlier is not None:
            return render.evaluation(earlier)
        version, request = evaluation_request(
            session, body, caller.state.judging.checking, caller.state.agent_models
        )
        if reproduces is not None:
            original = jobs.find(session, jobs.EVALUATION, reproduces)
            request["reproduces"] = reproduces
            request["seeding"] = original.request.get("seeding", 1)
        row = jobs.create(
            session,
            caller,
            jobs.EVALUATION,
            version,
            request,
            name=body.name or None,
            idempotency=key,
        )
    caller.state.scheduler.wake()
    return render.evaluation(row)


def report(caller: CallerOf, evaluation_id: str) -> JsonObject:
    """The evaluation's report as far as it has come."""
    with caller.read() as session:
        row = jobs.find(session, jobs.EVALUATION, evaluation_id)
        told = render.report(row, attempts.points(session, row, "episode"))
        played, _ = rollouts.page(session, job_id=row.id)
    told["rollout_ids"] = [one.id for one in reversed(played)]
    return told

"""Routes about evaluations."""

from fastapi import APIRouter, Depends

from rleaas.server import render
from rleaas.server.access import Caller, CallerOf, require_user
from rleaas.server.failures import documented
from rleaas.server.routes.bodies import JsonObject, StartEvaluation
from rleaas.server.routes.repeats import Once, RepeatableRoute
from rleaas.server.routes.requests import IdempotencyHeader, idempotency, workable_version
from rleaas.server.routes.training import JobStatus, Limit, cancel, page_of_jobs
from rleaas.server.rules.requests import evaluation_seeds, require_evaluable
from rleaas.server.store import events, jobs, rollouts

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
    """Evaluate a checkpoint over seeds, on the version it was trained on unless told otherwise."""
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


def queue(body: StartEvaluation, caller: CallerOf, idempotency_key: str | None) -> JsonObject:
    """Add an evaluation; without an environment, on the one that the checkpoint was trained on."""
    require_evaluable(body.model_dump(exclude_none=True))
    seeds = evaluation_seeds(body.seeds, body.episodes, body.base_seed)
    key = idempotency("evaluation", idempotency_key, body.model_dump(exclude_none=True))
    with caller.write() as session:
        earlier = jobs.made_before(session, jobs.EVALUATION, key)
        if earlier is not None:
            return render.evaluation(earlier)
        checkpoint = jobs.find_checkpoint(session, body.agent_checkpoint_id)
        if body.environment_name:
            version = workable_version(session, body.environment_name, body.environment_version)
        else:
            trained_on = checkpoint.job.version
            version = workable_version(
                session,
                trained_on.environment.name,
                body.environment_version or trained_on.version,
            )
        row = jobs.create(
            session,
            caller,
            jobs.EVALUATION,
            version,
            {
                "checkpoint_id": checkpoint.id,
                "checkpoint_sha256": checkpoint.sha256,
                "seeds": seeds,
                "max_episode_steps": body.max_episode_steps,
                "success_threshold": body.success_threshold,
                "purpose": body.purpose,
            },
            name=body.name or None,
            idempotency=key,
        )
    caller.state.scheduler.wake()
    return render.evaluation(row)


def report(caller: CallerOf, evaluation_id: str) -> JsonObject:
    """The evaluation's report as far as it has come."""
    with caller.read() as session:
        row = jobs.find(session, jobs.EVALUATION, evaluation_id)
        told = render.report(row, events.about(session, jobs.subject(row), ["episode"]))
        played, _ = rollouts.page(session, job_id=row.id)
    told["rollout_ids"] = [one.id for one in reversed(played)]
    return told

"""The published routes that start and read evaluations as rollouts."""

from fastapi import APIRouter, Depends
from rlcore import EvaluationNotFound

from rleaas.server.access import Caller, require_user
from rleaas.server.failures import documented
from rleaas.server.routes.bodies import JsonObject, StartRollouts
from rleaas.server.routes.evaluations import queue, report
from rleaas.server.routes.requests import IdempotencyHeader
from rleaas.server.rules.names import split_version
from rleaas.server.rules.requests import require_evaluable
from rleaas.server.store import environments

router = APIRouter(
    tags=["rollouts"], dependencies=[Depends(require_user)], responses=documented(401)
)


@router.post("/api/rollouts", responses=documented(400, 404, 409, 422))
def start_rollouts(
    body: StartRollouts, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Start an evaluation in the published form."""
    require_evaluable(body.model_dump(exclude_none=True))
    if body.max_episode_steps is None:
        body.max_episode_steps = body.max_steps
    return queue(body, caller, idempotency_key)


@router.get("/api/rollouts//{rollout_id}", responses=documented(404), include_in_schema=False)
def get_rollout_anywhere(rollout_id: str, caller: Caller) -> JsonObject:
    """An evaluation's report, for a client that does not know its environment."""
    return report(caller, rollout_id)


@router.get("/api/rollouts/{env}/{rollout_id}", responses=documented(404))
def get_rollout(env: str, rollout_id: str, caller: Caller) -> JsonObject:
    """An evaluation's report, under the environment that it ran on."""
    found = report(caller, rollout_id)
    with caller.read() as session:
        row = environments.find(session, split_version(env)[0])
    if row.name != found["environment_name"]:
        raise EvaluationNotFound(rollout_id, hint=f"It ran on {found['environment_name']!r}")
    return found

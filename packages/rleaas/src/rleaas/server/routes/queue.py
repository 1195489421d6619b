"""The route that says why jobs wait."""

from fastapi import APIRouter, Depends

from rleaas.server.access import Caller, require_user
from rleaas.server.failures import documented
from rleaas.server.render import moment
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.rules.queue import Waiting
from rleaas.server.store import attempts, jobs

router = APIRouter(
    tags=["training"], dependencies=[Depends(require_user)], responses=documented(401)
)


@router.get("/api/training/queue")
def get_queue(caller: Caller) -> JsonObject:
    """The organisation's jobs that wait, in the order of their turns, and how many run.

    `position` counts the jobs of everybody. The highest priority comes first; among equals it is
    the turn of the organisation with the fewest jobs that run, and of its oldest job.
    """
    with caller.state.database.read() as session:
        order = attempts.queue(session)
        running = len(jobs.unfinished(session))
    own = caller.principal.organisation_id
    waiting = [_entry(at, one) for at, one in enumerate(order, 1) if one.organisation == own]
    return {
        "queue": waiting,
        "waiting": len(order),
        "running": running,
        "max_jobs": caller.state.scheduler.rules.max_jobs,
    }


def _entry(position: int, one: Waiting) -> JsonObject:
    return {
        "job_id": one.job_id,
        "position": position,
        "priority": one.priority,
        "waiting_since": moment(one.since),
        "not_before": moment(one.not_before),
    }

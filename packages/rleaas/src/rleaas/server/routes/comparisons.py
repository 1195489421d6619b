"""Comparing two checkpoints by their evaluations over the same seeds."""

import anyio
from fastapi.concurrency import run_in_threadpool
from rlcore import ConflictError, InvalidRequestError
from sqlalchemy import select

from rleaas.server.access import CallerOf
from rleaas.server.compared import comparison
from rleaas.server.evaluation_requests import SHAPING, evaluation_request
from rleaas.server.routes.bodies import JsonObject, StartEvaluation, StartRollouts
from rleaas.server.routes.evaluations import queue, report
from rleaas.server.rules import lifecycle
from rleaas.server.store import jobs
from rleaas.server.store.tables import JobRow

PATIENCE = 22.0
"""Below the 30 seconds of published clients, which send the request again after them."""

_POLL_SECONDS = 0.1
_USABLE = (lifecycle.PENDING, lifecycle.RUNNING, lifecycle.COMPLETED)


async def compare(body: StartRollouts, caller: CallerOf) -> JsonObject:
    """How two checkpoints differ; evaluations that are missing are started and waited for.

    Raises:
        ConflictError: they take longer, or one of them failed.
    """
    asked = _asked(body)
    pair = [await run_in_threadpool(_evaluation, one, caller) for one in asked]
    with anyio.move_on_after(PATIENCE):
        for one in pair:
            await _end(one, caller)
    reports = [await run_in_threadpool(report, caller, one) for one in pair]
    for told in reports:
        if told["status"] == lifecycle.COMPLETED:
            continue
        if told["status"] in lifecycle.TERMINAL:
            raise ConflictError(
                f"evaluation {told['id']!r} is {told['status']}: {told['error']}",
                code="evaluation_not_comparable",
            )
        raise ConflictError(
            f"evaluation {told['id']!r} goes on after {PATIENCE:g} s",
            code="evaluations_unfinished",
            hint="Ask again; what is being played is not played again",
        )
    where = str(reports[0]["environment_name"])
    told = await run_in_threadpool(comparison, where, *reports)
    return {**told, "agent_checkpoints": body.agent_checkpoints}


def _asked(body: StartRollouts) -> list[StartEvaluation]:
    checkpoints = body.agent_checkpoints or []
    if len(checkpoints) != 2:
        raise InvalidRequestError(
            f"agent_checkpoints has {len(checkpoints)} entries; a comparison is of two",
            status_code=422,
            code="invalid_comparison",
        )
    settings = body.model_dump(include=set(StartEvaluation.model_fields))
    settings["max_episode_steps"] = body.max_episode_steps or body.max_steps
    return [
        StartEvaluation.model_validate({**settings, "agent_checkpoint_id": one})
        for one in checkpoints
    ]


def _evaluation(asked: StartEvaluation, caller: CallerOf) -> str:
    """The newest evaluation that plays what is asked, or one that is started now."""
    with caller.read() as session:
        version, wanted = evaluation_request(session, asked, caller.state.judging.checking)
        found = session.scalars(
            select(JobRow)
            .where(JobRow.kind == jobs.EVALUATION, JobRow.version_id == version.id)
            .where(JobRow.status.in_(_USABLE), JobRow.cancel_requested_at.is_(None))
            .order_by(JobRow.created_at.desc(), JobRow.id.desc())
        )
        for row in found:
            if all(row.request.get(name) == wanted[name] for name in SHAPING):
                return row.id
    return str(queue(asked, caller, None)["id"])


async def _end(evaluation_id: str, caller: CallerOf) -> None:
    while True:
        if await run_in_threadpool(_has_ended, evaluation_id, caller):
            return
        await anyio.sleep(_POLL_SECONDS)


def _has_ended(evaluation_id: str, caller: CallerOf) -> bool:
    with caller.read() as session:
        return jobs.find(session, jobs.EVALUATION, evaluation_id).status in lifecycle.TERMINAL

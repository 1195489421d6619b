"""The routes of one evaluation, as both the collection and the handle use them."""

from __future__ import annotations

from rlcore import Deadline

from rleaas._flow import request as build
from rleaas._flow.context import Context
from rleaas._flow.decode import read
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow
from rleaas.models import Evaluation, EvaluationReport

KIND = "evaluation"


def get(evaluation_id: str, context: Context, deadline: Deadline | None = None) -> Flow[Evaluation]:
    """Return the evaluation's record."""
    request = build.get(path_of("/api/evaluations/{}", evaluation_id), kind=KIND, ref=evaluation_id)
    reply = yield from ask(request, context, deadline)
    return read(Evaluation, request, reply)


def report(evaluation_id: str, context: Context) -> Flow[EvaluationReport]:
    """Return the evaluation's report."""
    request = build.get(
        path_of("/api/evaluations/{}/report", evaluation_id), kind=KIND, ref=evaluation_id
    )
    reply = yield from ask(request, context)
    return read(EvaluationReport, request, reply)


def cancel(evaluation_id: str, context: Context) -> Flow[Evaluation]:
    """Ask the evaluation to end."""
    request = build.post(
        path_of("/api/evaluations/{}/cancel", evaluation_id),
        key=context.new_key(),
        kind=KIND,
        ref=evaluation_id,
    )
    reply = yield from ask(request, context)
    return read(Evaluation, request, reply)


def path_of(template: str, evaluation_id: str) -> str:
    """Return the path of something of the evaluation's."""
    return build.path(template, evaluation_id, what="evaluation id")

"""Evaluations that are judged again, played again, and judged by people."""

from __future__ import annotations

from builtins import list as list_
from collections.abc import Collection, Mapping, Sequence

from rlcore import Deadline, EvaluationFailed, PlatformTimeout

from rleaas._flow import request as build
from rleaas._flow.context import Context
from rleaas._flow.decode import read, read_list
from rleaas._flow.poll import Wait, require_seconds, wait
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Item, Stream
from rleaas.models import (
    Evaluation,
    Event,
    HumanAgreement,
    HumanEvalStepScore,
    HumanVerdict,
    KeptVerdict,
    Reproduction,
)
from rleaas.resources import evaluation_handle as routes
from rleaas.resources.event_stream import HOLD, page
from rleaas.resources.references import IdRef, given, ids_of


def rescore(
    evaluation_id: str,
    verifier_ids: Sequence[IdRef],
    name: str,
    pass_threshold: float | None,
    idempotency_key: str | None,
    context: Context,
) -> Flow[Evaluation]:
    """Let other verifiers judge the stored rollouts of an evaluation."""
    body = {
        "verifier_ids": ids_of(verifier_ids, "verifier"),
        **given(name=name or None, pass_threshold=pass_threshold),
    }
    return (
        yield from _post(
            "/api/evaluations/{}/rescore", evaluation_id, body, idempotency_key, context
        )
    )


def reproduce(
    evaluation_id: str,
    name: str,
    timeout: float | None,
    poll_interval: float | None,
    idempotency_key: str | None,
    context: Context,
) -> Flow[Reproduction]:
    """Play an evaluation again, wait for it, and return whether it came out the same."""
    body = given(name=name or None)
    begun = yield from _post(
        "/api/evaluations/{}/reproduce", evaluation_id, body, idempotency_key, context
    )

    def look(deadline: Deadline) -> Flow[Evaluation]:
        return routes.get(begun.id, context, deadline)

    ended = yield from wait(
        Wait(
            what=f"evaluation {begun.id!r}",
            look=look,
            finished=lambda record: record.finished,
            status=lambda record: record.status,
            describe=routes.describe,
            fraction=routes.done,
            timeout=timeout,
            interval=poll_interval,
        ),
        context,
    )
    if ended.status != "completed":
        raise EvaluationFailed(ended.id, ended.reason or ended.status)
    return (yield from reproduction(ended.id, None, context))


def reproduction(evaluation_id: str, other: str | None, context: Context) -> Flow[Reproduction]:
    """Return whether an evaluation came out as another one."""
    path = build.path("/api/evaluations/{}/reproduction", evaluation_id, what="evaluation id")
    request = build.get(path, {"other": other}, kind=routes.KIND, ref=evaluation_id)
    reply = yield from ask(request, context)
    return read(Reproduction, request, reply)


def judge(
    evaluation_id: str,
    episode: int,
    passed: bool,  # the verdict itself, by keyword where people write it
    score: float | None,
    comments: str | None,
    step_scores: Sequence[HumanEvalStepScore | Mapping[str, object]] | None,
    rater: str | None,
    idempotency_key: str | None,
    context: Context,
) -> Flow[HumanVerdict]:
    """Keep what a person says of an episode, and return it as it was kept."""
    scores = None
    if step_scores is not None:
        scores = [HumanEvalStepScore.model_validate(one).to_dict() for one in step_scores]
    body = {
        "episode": episode,
        "passed": passed,
        **given(score=score, comments=comments, step_scores=scores, rater=rater),
    }
    path = build.path("/api/evaluations/{}/human-evals", evaluation_id, what="evaluation id")
    key = context.new_key() if idempotency_key is None else idempotency_key
    request = build.post(path, body, key=key, kind=routes.KIND, ref=evaluation_id)
    reply = yield from ask(request, context)
    return read(KeptVerdict, request, reply).verdict


def human_verdicts(evaluation_id: str, context: Context) -> Flow[list_[HumanVerdict]]:
    """Return what people say now of an evaluation's episodes."""
    path = build.path("/api/evaluations/{}/human-evals", evaluation_id, what="evaluation id")
    request = build.get(path, kind=routes.KIND, ref=evaluation_id)
    reply = yield from ask(request, context)
    return read_list(HumanVerdict, request, reply, "verdicts")[0]


def agreement(evaluation_id: str, context: Context) -> Flow[HumanAgreement]:
    """Return how far people and verifiers say the same."""
    path = build.path("/api/evaluations/{}/agreement", evaluation_id, what="evaluation id")
    request = build.get(path, kind=routes.KIND, ref=evaluation_id)
    reply = yield from ask(request, context)
    return read(HumanAgreement, request, reply)


def follow(
    evaluation_id: str,
    kinds: Collection[str] | None,
    after: int,
    timeout: float | None,
    context: Context,
) -> Stream[Event]:
    """Yield the evaluation's events after one of them, until it is over.

    Raises:
        PlatformTimeout: it is not over within the timeout.
    """
    require_seconds("timeout", timeout, "follow an evaluation")
    deadline = Deadline.after(timeout, clock=context.clock)
    cursor, over = after, False
    while True:
        found = yield from page(
            {"job": evaluation_id}, cursor, deadline, context, 0.0 if over else HOLD
        )
        for event in found.events:
            if kinds is None or event.kind in kinds:
                yield Item(event)
        cursor = found.cursor
        if found.events:
            continue
        if over:
            return
        record = yield from routes.get(evaluation_id, context)
        over = record.finished
        if not over and deadline.expired():
            raise PlatformTimeout(
                f"evaluation {evaluation_id!r} is {record.status} after {timeout:g} s"
            )


def _post(
    template: str,
    evaluation_id: str,
    body: Mapping[str, object],
    idempotency_key: str | None,
    context: Context,
) -> Flow[Evaluation]:
    request = build.post(
        build.path(template, evaluation_id, what="evaluation id"),
        body,
        key=context.new_key() if idempotency_key is None else idempotency_key,
        kind=routes.KIND,
        ref=evaluation_id,
    )
    reply = yield from ask(request, context)
    return read(Evaluation, request, reply)

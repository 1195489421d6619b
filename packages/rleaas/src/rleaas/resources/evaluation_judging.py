"""Evaluations that are judged again, played again, and judged by people."""

from __future__ import annotations

from builtins import list as list_
from collections.abc import Mapping, Sequence

from rlcore import EvaluationFailed

from rleaas._flow import request as build
from rleaas._flow.context import Context
from rleaas._flow.decode import read, read_list
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow
from rleaas.models import (
    Evaluation,
    HumanAgreement,
    HumanEvalStepScore,
    HumanVerdict,
    KeptVerdict,
    Reproduction,
)
from rleaas.resources import evaluation_routes as routes
from rleaas.resources.evaluation_progress import until_ended
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

    ended = yield from until_ended(begun.id, context, timeout=timeout, interval=poll_interval)
    if ended.status != "completed":
        raise EvaluationFailed(ended.id, ended.reason or ended.status)
    return (yield from reproduction(ended.id, None, context))


def reproduction(evaluation_id: str, other: str | None, context: Context) -> Flow[Reproduction]:
    """Return whether an evaluation came out as another one."""
    path = routes.path_of("/api/evaluations/{}/reproduction", evaluation_id)
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
    path = routes.path_of("/api/evaluations/{}/human-evals", evaluation_id)
    key = context.new_key() if idempotency_key is None else idempotency_key
    request = build.post(path, body, key=key, kind=routes.KIND, ref=evaluation_id)
    reply = yield from ask(request, context)
    return read(KeptVerdict, request, reply).verdict


def human_verdicts(evaluation_id: str, context: Context) -> Flow[list_[HumanVerdict]]:
    """Return what people say now of an evaluation's episodes."""
    path = routes.path_of("/api/evaluations/{}/human-evals", evaluation_id)
    request = build.get(path, kind=routes.KIND, ref=evaluation_id)
    reply = yield from ask(request, context)
    return read_list(HumanVerdict, request, reply, "verdicts")[0]


def agreement(evaluation_id: str, context: Context) -> Flow[HumanAgreement]:
    """Return how far people and verifiers say the same."""
    path = routes.path_of("/api/evaluations/{}/agreement", evaluation_id)
    request = build.get(path, kind=routes.KIND, ref=evaluation_id)
    reply = yield from ask(request, context)
    return read(HumanAgreement, request, reply)


def _post(
    template: str,
    evaluation_id: str,
    body: Mapping[str, object],
    idempotency_key: str | None,
    context: Context,
) -> Flow[Evaluation]:
    request = build.post(
        routes.path_of(template, evaluation_id),
        body,
        key=context.new_key() if idempotency_key is None else idempotency_key,
        kind=routes.KIND,
        ref=evaluation_id,
    )
    reply = yield from ask(request, context)
    return read(Evaluation, request, reply)

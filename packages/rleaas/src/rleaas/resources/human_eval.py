"""A person's verdict on a training job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import ValidationError
from rlcore import ConfigurationError

from rleaas._flow import request as build
from rleaas._flow.context import Context
from rleaas._flow.decode import read
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow
from rleaas.models import HumanEvalReply, HumanEvalStepScore
from rleaas.resources import training_routes
from rleaas.resources.references import require_one_of

DECISIONS = ("yes", "no")


def human_eval(
    job_id: str,
    decision: str,
    comments: str | None,
    step_scores: Sequence[HumanEvalStepScore | Mapping[str, object]] | None,
    idempotency_key: str | None,
    context: Context,
) -> Flow[HumanEvalReply]:
    """Send the verdict, and return it as it was kept.

    Raises:
        ConfigurationError: it is none; nothing was sent.
    """
    body: dict[str, object] = {"decision": require_one_of(decision, DECISIONS, "a decision")}
    if comments is not None:
        body["comments"] = comments
    if step_scores is not None:
        body["step_scores"] = [_score(one).to_dict() for one in step_scores]
    request = build.post(
        build.path("/human-eval/{}", job_id, what="job id"),
        body,
        key=context.new_key() if idempotency_key is None else idempotency_key,
        kind=training_routes.KIND,
        ref=job_id,
    )
    reply = yield from ask(request, context)
    return read(HumanEvalReply, request, reply)


def _score(given: HumanEvalStepScore | Mapping[str, object]) -> HumanEvalStepScore:
    try:
        return HumanEvalStepScore.model_validate(given)
    except ValidationError as error:
        raise ConfigurationError(
            f"{given!r} is not a step's score",
            hint="It has a step_index, and a score: correct, flawed or critical_error.",
        ) from error

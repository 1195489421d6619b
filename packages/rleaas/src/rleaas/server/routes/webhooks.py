"""Routes about webhooks."""

import secrets
from collections.abc import Sequence
from datetime import UTC
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import Field
from rlcore import Secret
from sqlalchemy.orm import Session

from rleaas.server.access import Caller, CallerOf, require_user
from rleaas.server.courier import PURPOSE
from rleaas.server.failures import documented
from rleaas.server.git import without_password
from rleaas.server.routes.bodies import Body, JsonObject
from rleaas.server.routes.repeats import Once, RepeatableRoute
from rleaas.server.routes.requests import IdempotencyHeader, idempotency
from rleaas.server.rules import webhooks as rules
from rleaas.server.store import audit, events, jobs, once, webhooks
from rleaas.server.store.tables import EventRow, WebhookRow
from rleaas.server.store.webhooks import Parcel

router = APIRouter(
    route_class=RepeatableRoute,
    tags=["webhooks"],
    dependencies=[Depends(require_user)],
    responses=documented(401),
)


class RegisterJobWebhook(Body):
    """Where to, which events (all without a list), and the secret that signs (or a new one)."""

    url: str = Field(max_length=2000)
    events: list[str] | None = None
    secret: str | None = Field(None, min_length=16, max_length=200)


class RegisterWebhook(RegisterJobWebhook):
    """A webhook for one job, or without one for everything."""

    job_id: str | None = None


@router.post("/api/training/jobs/{job_id}/webhook", responses=documented(404, 409, 422))
def register_job_webhook(
    job_id: str,
    body: RegisterJobWebhook,
    caller: Caller,
    idempotency_key: IdempotencyHeader = None,
) -> JsonObject:
    """Tell a URL what happens to a job; the secret that signs is in this answer only."""
    asked = RegisterWebhook(**body.model_dump(), job_id=job_id)
    reply = _register(asked, caller, idempotency_key, may_exist=True)
    return {**reply, "status": "registered"}


@router.get("/api/training/jobs/{job_id}/webhooks", responses=documented(404))
def list_job_webhooks(job_id: str, caller: Caller) -> JsonObject:
    """The webhooks of a job."""
    with caller.read() as session:
        jobs.find(session, jobs.TRAINING, job_id)
        return _listed(webhooks.of_job(session, job_id))


@router.post("/api/webhooks", responses=documented(404, 409, 422))
def register_webhook(
    body: RegisterWebhook, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Tell a URL what happens; the secret that signs is in this answer only."""
    return _register(body, caller, idempotency_key, may_exist=False)


@router.get("/api/webhooks")
def list_webhooks(caller: Caller, job_id: str | None = None) -> JsonObject:
    """All webhooks, oldest first, or those of a job."""
    with caller.read() as session:
        return _listed(webhooks.of_job(session, job_id))


@router.get("/api/webhooks/{webhook_id}", responses=documented(404))
def get_webhook(webhook_id: str, caller: Caller) -> JsonObject:
    """One webhook, without its secret."""
    with caller.read() as session:
        return _webhook(webhooks.find(session, webhook_id))


@router.delete("/api/webhooks/{webhook_id}", responses=documented(404))
def delete_webhook(webhook_id: str, caller: Caller) -> JsonObject:
    """Tell this URL nothing any more; its deliveries are forgotten."""
    with caller.write() as session:
        row = webhooks.find(session, webhook_id)
        _record(session, caller, row, "webhook.deleted")
        session.delete(row)
    return {"status": "deleted", "id": webhook_id}


@router.get("/api/webhooks/{webhook_id}/deliveries", responses=documented(404, 422))
def list_deliveries(
    webhook_id: str, caller: Caller, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> JsonObject:
    """What was, and is to be, delivered, newest first."""
    with caller.read() as session:
        webhooks.find(session, webhook_id)
        found = webhooks.deliveries(session, webhook_id, limit)
    return {"deliveries": [_delivery(parcel) for parcel in found], "count": len(found)}


@router.post("/api/webhooks/{webhook_id}/test", dependencies=[Once], responses=documented(404))
def test_webhook(webhook_id: str, caller: Caller) -> JsonObject:
    """Send a test event now, and tell what came of it."""
    courier = caller.state.courier
    with caller.read() as session:
        place = courier.place(webhooks.find(session, webhook_id))
    with place:
        with caller.write() as session:
            webhook = webhooks.find(session, webhook_id)
            events.add(session, f"webhook:{webhook.id}", rules.TEST, {"by": caller.principal.actor})
            session.flush()
            event = session.get_one(EventRow, events.newest(session))
            parcel = Parcel(webhooks.plan_one(session, webhook, event), webhook, event)
            webhooks.hold(parcel)
            _record(session, caller, webhook, "webhook.tested")
        courier.note(parcel, courier.attempt(parcel))
    with caller.read() as session:
        found = webhooks.deliveries(session, webhook_id, 1000)
    return next(_delivery(one) for one in found if one.event.id == event.id)


def _register(
    body: RegisterWebhook, caller: CallerOf, key: str | None, *, may_exist: bool
) -> JsonObject:
    names = body.events or []
    rules.check_names(names)
    caller.state.courier.permit(body.url)
    asked = idempotency("webhook", key, body.model_dump(exclude_none=True))
    secret = Secret(body.secret or f"whsec_{secrets.token_urlsafe(32)}")
    with caller.write() as session:
        earlier = once.earlier(session, asked)
        if earlier is not None:
            return earlier
        if body.job_id is not None:
            jobs.find(session, jobs.TRAINING, body.job_id)
        if may_exist and body.secret is None and key is None:
            # Clients that know no idempotency keys send a request again that was not answered.
            for one in webhooks.of_job(session, body.job_id):
                if (one.url, one.events) == (body.url, names):
                    return _webhook(one)
        row = webhooks.add(
            session,
            url=body.url,
            names=names,
            job_id=body.job_id,
            sealed=caller.state.keys.seal(PURPOSE, secret),
        )
        _record(session, caller, row, "webhook.registered")
        reply = _webhook(row)
        once.keep(session, asked, row.id, reply)
    return {**reply, "secret": secret.reveal()}


def _record(session: Session, caller: CallerOf, row: WebhookRow, action: str) -> None:
    audit.record(
        session,
        caller,
        action=action,
        subject=f"webhook:{row.id}",
        job_id=row.job_id,
        data={"url": without_password(row.url), "events": row.events},
    )


def _listed(rows: Sequence[WebhookRow]) -> JsonObject:
    return {"webhooks": [_webhook(row) for row in rows], "count": len(rows)}


def _webhook(row: WebhookRow) -> JsonObject:
    return {
        "id": row.id,
        "url": without_password(row.url),
        "events": row.events,
        "job_id": row.job_id,
        "is_active": row.is_active,
        "created_at": row.created_at.astimezone(UTC).isoformat(),
    }


def _delivery(parcel: Parcel) -> JsonObject:
    row = parcel.delivery
    return {
        "id": row.id,
        "webhook_id": row.webhook_id,
        "event_id": row.event_id,
        "event": rules.name_of(parcel.event.kind),
        "kind": parcel.event.kind,
        "status": row.status,
        "attempts": row.attempts,
        "status_code": row.status_code,
        "error": row.error,
        "due_at": row.due_at.astimezone(UTC).isoformat() if row.status == "pending" else None,
        "delivered_at": row.delivered_at.astimezone(UTC).isoformat() if row.delivered_at else None,
    }

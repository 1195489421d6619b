"""Webhooks and their deliveries in the database."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from rlcore import NotFoundError
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from rleaas.server.rules import webhooks as rules
from rleaas.server.store import events
from rleaas.server.store.tables import DeliveryRow, EventRow, WebhookRow

PENDING: Final = "pending"
DELIVERED: Final = "delivered"
GIVEN_UP: Final = "failed"
# Longer than an attempt can take: then another server may try.
HELD: Final = timedelta(seconds=60)
# How many deliveries to one webhook may be under way.
AT_ONCE: Final = 2
_SCAN: Final = 500


@dataclass(frozen=True, slots=True)
class Parcel:
    """A delivery that is to be tried now, with the webhook and the event."""

    delivery: DeliveryRow
    webhook: WebhookRow
    event: EventRow


def add(
    session: Session, *, url: str, names: Sequence[str], job_id: str | None, sealed: str
) -> WebhookRow:
    """Register a webhook for what happens from now on."""
    row = WebhookRow(
        id=f"hook_{secrets.token_hex(6)}",
        job_id=job_id,
        url=url,
        events=[*names],
        encrypted_secret=sealed,
        is_active=True,
        after_event_id=events.newest(session),
        created_at=datetime.now(UTC),
    )
    session.add(row)
    session.flush()
    return row


def find(session: Session, webhook_id: str) -> WebhookRow:
    """The webhook with this id.

    Raises:
        NotFoundError: there is none.
    """
    row = session.scalar(select(WebhookRow).where(WebhookRow.id == webhook_id))
    if row is None:
        raise NotFoundError(kind="webhook", ref=webhook_id, code="webhook_not_found")
    return row


def of_job(session: Session, job_id: str | None) -> Sequence[WebhookRow]:
    """The webhooks of a job, or without one all of them, oldest first."""
    query = select(WebhookRow).order_by(WebhookRow.created_at, WebhookRow.id)
    if job_id is not None:
        query = query.where(WebhookRow.job_id == job_id)
    return session.scalars(query).all()


def deliveries(session: Session, webhook_id: str, limit: int) -> list[Parcel]:
    """The deliveries of a webhook, newest first."""
    found = session.execute(
        select(DeliveryRow, WebhookRow, EventRow)
        .join(WebhookRow, WebhookRow.id == DeliveryRow.webhook_id)
        .join(EventRow, EventRow.id == DeliveryRow.event_id)
        .where(DeliveryRow.webhook_id == webhook_id)
        .order_by(DeliveryRow.id.desc())
        .limit(limit)
    )
    return [Parcel(*row) for row in found]


def plan_one(session: Session, webhook: WebhookRow, event: EventRow) -> DeliveryRow:
    """Note that an event is to be delivered to a webhook."""
    row = DeliveryRow(
        organisation_id=webhook.organisation_id,
        webhook_id=webhook.id,
        event_id=event.id,
        status=PENDING,
        attempts=0,
        due_at=datetime.now(UTC),
    )
    session.add(row)
    session.flush()
    return row


def has_work(session: Session) -> bool:
    """Whether `plan` or `take` would find something."""
    behind = (
        select(WebhookRow.id)
        .where(
            WebhookRow.is_active,
            WebhookRow.after_event_id
            < select(func.max(EventRow.id))
            .where(EventRow.organisation_id == WebhookRow.organisation_id)
            .scalar_subquery(),
        )
        .limit(1)
    )
    due = (
        select(DeliveryRow.id)
        .where(DeliveryRow.status == PENDING, DeliveryRow.due_at <= datetime.now(UTC))
        .limit(1)
    )
    return session.scalar(behind) is not None or session.scalar(due) is not None


def plan(session: Session) -> bool:
    """Note which new events go to which webhooks; returns whether there are more of them."""
    more = False
    for webhook in session.scalars(select(WebhookRow).where(WebhookRow.is_active)):
        fresh = session.scalars(
            select(EventRow)
            .where(
                EventRow.organisation_id == webhook.organisation_id,
                EventRow.id > webhook.after_event_id,
            )
            .order_by(EventRow.id)
            .limit(_SCAN)
        ).all()
        kinds = rules.kinds_of(webhook.events)
        for event in fresh:
            ours = webhook.job_id is None or event.subject == f"job:{webhook.job_id}"
            wanted = event.kind != rules.TEST if kinds is None else event.kind in kinds
            wanted = wanted and event.data.get("again") is not True  # it was told before
            if ours and wanted:
                plan_one(session, webhook, event)
        if fresh:
            webhook.after_event_id = fresh[-1].id
        more = more or len(fresh) == _SCAN
    return more


def take(session: Session, enter: Callable[[WebhookRow], bool]) -> list[Parcel]:
    """Take deliveries that are due and may `enter`; for a while nobody else takes them."""
    turn = func.row_number().over(
        partition_by=DeliveryRow.webhook_id, order_by=(DeliveryRow.due_at, DeliveryRow.id)
    )
    due = (
        select(DeliveryRow.id, turn.label("turn"))
        .where(DeliveryRow.status == PENDING, DeliveryRow.due_at <= datetime.now(UTC))
        .subquery()
    )
    first = session.execute(
        select(DeliveryRow, WebhookRow)
        .join(due, due.c.id == DeliveryRow.id)
        .join(WebhookRow, WebhookRow.id == DeliveryRow.webhook_id)
        .where(due.c.turn <= AT_ONCE)
        .order_by(DeliveryRow.due_at, DeliveryRow.id)
    )
    taken: list[Parcel] = []
    for delivery, webhook in first:
        if enter(webhook):
            taken.append(Parcel(delivery, webhook, session.get_one(EventRow, delivery.event_id)))
            hold(taken[-1])
    return taken


def hold(parcel: Parcel) -> None:
    """Begin an attempt."""
    parcel.delivery.attempts += 1
    parcel.delivery.due_at = datetime.now(UTC) + HELD

"""Webhooks and their deliveries."""

from __future__ import annotations

from pydantic import Field

from rleaas.models.shape import Moment, Shape


class Webhook(Shape):
    """Somebody who is told; `secret`, which signs, comes with the registration only."""

    id: str
    url: str
    events: list[str] = Field(default_factory=list[str])
    job_id: str | None = None
    is_active: bool = True
    created_at: Moment | None = None
    secret: str | None = Field(None, repr=False)


class Delivery(Shape):
    """An event on its way to a webhook; `status` is `pending`, `delivered` or `failed`."""

    id: int
    webhook_id: str
    event_id: int
    event: str
    kind: str
    status: str
    attempts: int = 0
    status_code: int | None = None
    error: str | None = None
    due_at: Moment | None = None
    delivered_at: Moment | None = None

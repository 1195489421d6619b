"""What happened on the platform."""

from __future__ import annotations

from pydantic import Field

from rleaas.models.shape import JsonObject, Moment, Shape


class Event(Shape):
    """Something that happened; `id` is the cursor to go on after it."""

    id: int
    kind: str
    subject: str
    at: Moment | None = None
    job_id: str | None = None
    data: JsonObject = Field(default_factory=dict[str, object])


class EventPage(Shape):
    """Events after a cursor, and the cursor after them."""

    events: list[Event] = Field(default_factory=list[Event])
    cursor: int

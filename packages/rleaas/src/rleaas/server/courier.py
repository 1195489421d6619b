"""Takes events to webhooks: signed, tried again with growing pauses, never to private addresses."""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import httpx
from rlcore import Error, InvalidRequestError, Secret

from rleaas.server.keys import ServerKeys
from rleaas.server.outbound import Destination, Outbound, is_public
from rleaas.server.rules import webhooks as rules
from rleaas.server.store import webhooks
from rleaas.server.store.database import Database
from rleaas.server.store.tables import DeliveryRow, EventRow, JsonObject
from rleaas.server.store.webhooks import Parcel

PURPOSE: Final = "webhooks"
SCHEMES: Final = frozenset({"http", "https"})
_AT_ONCE: Final = 8
_TIMEOUT: Final = 10.0
_ERROR_LENGTH: Final = 300


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an attempt."""

    status_code: int | None
    error: str | None


class Courier:
    """Delivers what is due.

    Args:
        database: where webhooks and deliveries are.
        keys: what their secrets are sealed with.
        outbound: which hosts may be asked.
        first_delay: seconds before the second attempt; each further one takes twice as long.
        client: makes the HTTP client.
    """

    def __init__(
        self,
        database: Database,
        keys: ServerKeys,
        outbound: Outbound,
        *,
        first_delay: float = 5.0,
        client: Callable[[], httpx.Client] | None = None,
    ) -> None:
        self._database = database
        self._keys = keys
        self._outbound = outbound
        self.first_delay = first_delay
        self._client = client or _plain_client

    def permit(self, url: str) -> Destination:
        """Look at where a webhook wants its deliveries.

        Raises:
            InvalidRequestError: they must not go there.
        """
        place = self._outbound.permit(url, SCHEMES)
        if httpx.URL(url).scheme == "http" and any(map(is_public, place.addresses)):
            raise InvalidRequestError(
                f"the URL {url[:200]!r} would carry events over the internet in the clear",
                status_code=422,
                code="webhook_not_https",
                hint="Use https://",
            )
        return place

    def step(self) -> bool:
        """Deliver what is due; returns whether there is more."""
        with self._database.read() as session:
            if not webhooks.has_work(session):
                return False
        with self._database.write() as session:
            more = webhooks.plan(session)
            taken = webhooks.take(session, _AT_ONCE)
        if taken:
            with ThreadPoolExecutor(len(taken)) as pool:
                for parcel, outcome in zip(taken, pool.map(self.attempt, taken), strict=True):
                    self.note(parcel, outcome)
        return more or len(taken) == _AT_ONCE

    def attempt(self, parcel: Parcel) -> Outcome:
        """Send a delivery once."""
        try:
            place = self.permit(parcel.webhook.url)
            secret = self._keys.unseal(PURPOSE, parcel.webhook.encrypted_secret)
        except Error as error:
            return Outcome(None, str(error)[:_ERROR_LENGTH])
        url = httpx.URL(parcel.webhook.url)
        content = json.dumps(message(parcel.event, parcel.delivery)).encode()
        try:
            with self._client() as client:
                reply = client.post(
                    # The address that was looked at, lest the name mean another one by now.
                    url.copy_with(host=place.addresses[0]),
                    content=content,
                    headers={"host": url.netloc.decode(), **_headers(parcel, content, secret)},
                    extensions={"sni_hostname": place.host},
                )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            told = f"{type(error).__name__}: {error}"
            return Outcome(None, told[:_ERROR_LENGTH])
        failed = None if reply.is_success else f"answered with status {reply.status_code}"
        return Outcome(reply.status_code, failed)

    def note(self, parcel: Parcel, outcome: Outcome) -> None:
        """Keep what came of an attempt, and when there is another one."""
        now = datetime.now(UTC)
        with self._database.write() as session:
            row = session.get(DeliveryRow, parcel.delivery.id)
            if row is None:
                return  # the webhook was deleted meanwhile
            row.status_code, row.error = outcome.status_code, outcome.error
            if outcome.error is None:
                row.status, row.delivered_at = webhooks.DELIVERED, now
            elif row.attempts >= rules.MOST_ATTEMPTS:
                row.status = webhooks.GIVEN_UP
            else:
                row.due_at = now + timedelta(seconds=rules.delay(row.attempts, self.first_delay))


def message(event: EventRow, delivery: DeliveryRow) -> JsonObject:
    """What a webhook is told."""
    job = event.subject.removeprefix("job:") if event.subject.startswith("job:") else None
    return {
        "event": rules.name_of(event.kind),
        "kind": event.kind,
        "id": event.id,
        "delivery_id": delivery.id,
        "subject": event.subject,
        "job_id": job,
        "timestamp": event.at.astimezone(UTC).isoformat(),
        "data": event.data,
    }


def _headers(parcel: Parcel, content: bytes, secret: Secret) -> dict[str, str]:
    timestamp = str(int(time.time()))
    return {
        "content-type": "application/json",
        "user-agent": "rleaas-webhooks",
        rules.EVENT: rules.name_of(parcel.event.kind),
        rules.DELIVERY: str(parcel.delivery.id),
        rules.TIMESTAMP: timestamp,
        rules.SIGNATURE: rules.signature(secret, timestamp, content),
    }


def _plain_client() -> httpx.Client:
    # Not through a proxy of the server's environment: the address that was looked at is dialled.
    return httpx.Client(timeout=_TIMEOUT, follow_redirects=False, trust_env=False)

"""Takes events to webhooks: signed, tried again with growing pauses, never to private addresses.

Receivers that are slow hold up nobody else: an organisation has a few deliveries under way at most,
and nobody waits for a round of them to be over.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import httpx
from rlcore import Error, InvalidRequestError, RateLimitError, Secret

from rleaas.server.dialling import ask
from rleaas.server.git import without_password
from rleaas.server.keys import ServerKeys
from rleaas.server.outbound import Destination, Outbound, is_public
from rleaas.server.rules import webhooks as rules
from rleaas.server.store import webhooks
from rleaas.server.store.database import Database
from rleaas.server.store.tables import DeliveryRow, EventRow, JsonObject, WebhookRow
from rleaas.server.store.webhooks import Parcel

PURPOSE: Final = "webhooks"
SCHEMES: Final = frozenset({"http", "https"})
_AT_ONCE: Final = 32
_AT_ONCE_OF_ORGANISATION: Final = 4
_SECONDS: Final = 10.0
# How long what is under way may keep new deliveries waiting for their turn.
_LOOK_SECONDS: Final = 1.0
_ERROR_LENGTH: Final = 300


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an attempt."""

    status_code: int | None
    error: str | None


class Lanes:
    """Counts what is under way, so that nobody takes all the places."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all = 0
        self._of_organisation = Counter[int]()
        self._of_webhook = Counter[str]()

    def enter(self, webhook: WebhookRow) -> bool:
        """Take a place for a delivery to the webhook; False: there is none."""
        with self._lock:
            if (
                self._all >= _AT_ONCE
                or self._of_organisation[webhook.organisation_id] >= _AT_ONCE_OF_ORGANISATION
                or self._of_webhook[webhook.id] >= webhooks.AT_ONCE
            ):
                return False
            self._count(webhook, 1)
            return True

    @contextmanager
    def entering(self) -> Generator[Callable[[WebhookRow], bool]]:
        """Give `enter` to a block; what it took is given back when the block fails."""
        entered: list[WebhookRow] = []

        def enter(webhook: WebhookRow) -> bool:
            may_enter = self.enter(webhook)
            if may_enter:
                entered.append(webhook)
            return may_enter

        try:
            yield enter
        except BaseException:
            for webhook in entered:
                self.leave(webhook)
            raise

    def leave(self, webhook: WebhookRow) -> None:
        """Give the place back."""
        with self._lock:
            self._count(webhook, -1)

    def _count(self, webhook: WebhookRow, one: int) -> None:
        self._all += one
        # Added up, they drop those that are at zero.
        self._of_organisation += Counter({webhook.organisation_id: one})
        self._of_webhook += Counter({webhook.id: one})


class Courier:
    """Delivers what is due.

    Args:
        database: where webhooks and deliveries are.
        keys: what their secrets are sealed with.
        outbound: which hosts may be asked.
        first_delay: seconds before the second attempt; each further one takes twice as long.
        seconds: how long an attempt may take as a whole.
    """

    def __init__(
        self,
        database: Database,
        keys: ServerKeys,
        outbound: Outbound,
        *,
        first_delay: float = 5.0,
        seconds: float = _SECONDS,
    ) -> None:
        self._database = database
        self._keys = keys
        self._outbound = outbound
        self.first_delay = first_delay
        self._seconds = seconds
        self._lanes = Lanes()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="rleaas-courier")
        self._under_way: set[Future[None]] = set()

    def permit(self, url: str) -> Destination:
        """Look at where a webhook wants its deliveries.

        Raises:
            InvalidRequestError: they must not go there.
        """
        try:
            parsed = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise InvalidRequestError(
                f"the URL cannot be used: {error}", status_code=422, code="invalid_url"
            ) from error
        place = self._outbound.permit(url, SCHEMES)
        if parsed.scheme == "http" and any(map(is_public, place.addresses)):
            raise InvalidRequestError(
                f"the URL {without_password(url)[:200]!r} would carry events over the internet in "
                "the clear",
                status_code=422,
                code="webhook_not_https",
                hint="Use https://",
            )
        return place

    def step(self) -> bool:
        """Begin what is due, wait a little for something to end; returns whether to go on."""
        more = False
        with self._database.read() as session:
            has_work = webhooks.has_work(session)
        if has_work:
            with self._lanes.entering() as enter, self._database.write() as session:
                more = webhooks.plan(session)
                taken = webhooks.take(session, enter)
            self._under_way |= {self._pool.submit(self._deliver, parcel) for parcel in taken}
        if not self._under_way:
            return more
        seconds = 0 if more else _LOOK_SECONDS
        for ended in wait(self._under_way, seconds, FIRST_COMPLETED).done:
            self._under_way.discard(ended)
            ended.result()
        return True

    @contextmanager
    def place(self, webhook: WebhookRow) -> Generator[None]:
        """Take a place for an attempt that is made in the block.

        Raises:
            RateLimitError: so many are under way that there is none.
        """
        if not self._lanes.enter(webhook):
            raise RateLimitError(
                "too many deliveries are under way already", retry_after=self._seconds
            )
        try:
            yield
        finally:
            self._lanes.leave(webhook)

    def close(self) -> None:
        """Wait for what is under way."""
        self._pool.shutdown()

    def _deliver(self, parcel: Parcel) -> None:
        try:
            self.note(parcel, self.attempt(parcel))
        finally:
            self._lanes.leave(parcel.webhook)

    def attempt(self, parcel: Parcel) -> Outcome:
        """Send a delivery once."""
        url = parcel.webhook.url
        try:
            place = self.permit(url)
            secret = self._keys.unseal(PURPOSE, parcel.webhook.encrypted_secret)
        except Error as error:
            return Outcome(None, str(error)[:_ERROR_LENGTH])
        content = json.dumps(message(parcel.event, parcel.delivery)).encode()
        headers = _headers(parcel, content, secret)
        answer = ask(place, "POST", url, seconds=self._seconds, headers=headers, content=content)
        if answer.status_code is None:
            return Outcome(None, (answer.error or "")[:_ERROR_LENGTH])
        success = 200 <= answer.status_code < 300
        failed = None if success else f"answered with status {answer.status_code}"
        return Outcome(answer.status_code, failed)

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

"""Webhooks: who is told of events, and how that goes."""

from __future__ import annotations

import hashlib
import hmac
from builtins import list as list_
from collections.abc import Mapping, Sequence

from rlcore import ConfigurationError

from rleaas._binding import D, Resource, call
from rleaas._flow import request as build
from rleaas._flow.context import Context
from rleaas._flow.decode import decode, read, read_list
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Request
from rleaas.models import Delivery, Webhook
from rleaas.resources.references import IdRef, id_of, kinds_of, require_type

KIND = "webhook"
TOLERATED_AGE = 300.0


class WebhooksClient(Resource[D]):
    """The webhooks of the organisation."""

    @call
    def register(
        self,
        url: str,
        events: Sequence[str] | None = None,
        *,
        job_id: IdRef | None = None,
        secret: str | None = None,
        idempotency_key: str | None = None,
    ) -> Flow[Webhook]:
        """Let the platform tell a URL what happens; `secret` of the answer signs what it sends.

        Args:
            url: https, and public unless the operator allows its host.
            events: `metrics_update`, `checkpoint_saved`, `job_complete`, `tier_advance`,
                `reward_collapse_alert` or kinds of events; None is all of them.
            job_id: only what happens to this job.
            secret: what signs, instead of a new one.
            idempotency_key: with the same key, it is registered once.

        Raises:
            InvalidRequestError: the URL or an event cannot be used.
        """
        job = None if job_id is None else id_of(job_id, "job")
        return (
            yield from register(
                "/api/webhooks", url, events, secret, idempotency_key, self._context, job_id=job
            )
        )

    @call
    def list(self, job_id: IdRef | None = None) -> Flow[list_[Webhook]]:
        """Return all webhooks, or those of a job."""
        job = None if job_id is None else id_of(job_id, "job")
        request = build.get("/api/webhooks", {"job_id": job})
        reply = yield from ask(request, self._context)
        return read_list(Webhook, request, reply, "webhooks")[0]

    @call
    def get(self, webhook_id: IdRef) -> Flow[Webhook]:
        """Return a webhook, without its secret.

        Raises:
            NotFoundError: there is none.
        """
        text = id_of(webhook_id, KIND)
        request = build.get(_path("/api/webhooks/{}", text), kind=KIND, ref=text)
        reply = yield from ask(request, self._context)
        return read(Webhook, request, reply)

    @call
    def delete(self, webhook_id: IdRef) -> Flow[None]:
        """Let the platform tell it nothing any more.

        Raises:
            NotFoundError: there is none.
        """
        text = id_of(webhook_id, KIND)
        path = _path("/api/webhooks/{}", text)
        request = Request(method="DELETE", path=path, kind=KIND, ref=text)
        decode(request, (yield from ask(request, self._context)))

    @call
    def deliveries(self, webhook_id: IdRef, limit: int = 100) -> Flow[list_[Delivery]]:
        """Return what was delivered to a webhook and what is to be, newest first.

        Raises:
            NotFoundError: there is no such webhook.
        """
        text = id_of(webhook_id, KIND)
        path = _path("/api/webhooks/{}/deliveries", text)
        request = build.get(path, {"limit": limit}, kind=KIND, ref=text)
        reply = yield from ask(request, self._context)
        return read_list(Delivery, request, reply, "deliveries")[0]

    @call
    def test(self, webhook_id: IdRef) -> Flow[Delivery]:
        """Let the platform send a test event now, and return what came of it.

        Raises:
            NotFoundError: there is no such webhook.
        """
        text = id_of(webhook_id, KIND)
        path = _path("/api/webhooks/{}/test", text)
        request = build.post(path, key=self._context.new_key(), kind=KIND, ref=text)
        reply = yield from ask(request, self._context)
        return read(Delivery, request, reply)

    @staticmethod
    def is_genuine(secret: str, headers: Mapping[str, str], body: bytes, *, now: float) -> bool:
        """Tell, where deliveries arrive, whether the platform signed one, and not long ago.

        Args:
            secret: the webhook's.
            headers: those of the delivery.
            body: as it came.
            now: the time, in seconds since 1970.

        Raises:
            ConfigurationError: an argument is of another type.
        """
        require_type(secret, str, "secret")
        require_type(headers, Mapping, "headers")
        require_type(body, bytes, "body")
        told = {name.lower(): value for name, value in headers.items()}
        timestamp = told.get("x-rleaas-timestamp", "")
        if not timestamp.isdecimal() or abs(now - int(timestamp)) > TOLERATED_AGE:
            return False
        mac = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256)
        signature = told.get("x-rleaas-signature", "")
        return hmac.compare_digest(signature.encode(), f"v1={mac.hexdigest()}".encode())


def register(
    path: str,
    url: str,
    events: Sequence[str] | None,
    secret: str | None,
    key: str | None,
    context: Context,
    *,
    job_id: str | None = None,
    kind: str | None = None,
    ref: str | None = None,
) -> Flow[Webhook]:
    """Register a webhook at one of its routes.

    Raises:
        ConfigurationError: the list of events is empty, which the platform would take for all.
    """
    names = kinds_of(events)
    if names is not None and not names:
        raise ConfigurationError(
            "the webhook has an empty list of events", hint="Leave it out to be told of all."
        )
    given = {
        "url": url,
        "events": names,
        "secret": secret,
        "job_id": job_id,
    }
    body = {name: value for name, value in given.items() if value is not None}
    request = build.post(
        path, body, key=context.new_key() if key is None else key, kind=kind, ref=ref
    )
    reply = yield from ask(request, context)
    return read(Webhook, request, reply)


def _path(template: str, webhook_id: str) -> str:
    return build.path(template, webhook_id, what="webhook id")

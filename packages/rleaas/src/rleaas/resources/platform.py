"""The platform as a whole, and requests of any kind to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from rlcore import ConfigurationError

from rleaas._binding import D, Resource, call, stream
from rleaas._flow import request as build
from rleaas._flow.decode import decode, read
from rleaas._flow.request import Query
from rleaas._flow.retry import ask
from rleaas._flow.wire import NO_BODY, Flow, Request, Stream
from rleaas.models import Event, PlatformInfo
from rleaas.resources.environment_routes import EnvironmentRef, reference
from rleaas.resources.event_stream import follow
from rleaas.resources.references import IdRef, id_of, kinds_of

# The JSON of a route that this package knows nothing about has no type that could be named.
Json = Any


class Platform(Resource[D]):
    """What both clients answer for the platform as a whole."""

    @call
    def ping(self) -> Flow[PlatformInfo]:
        """Return what the platform says about itself; it also checks the API key.

        Raises:
            PlatformUnreachable: nobody answers at the base URL.
            AuthenticationError: the key is not valid.
        """
        request = build.get("/api")
        reply = yield from ask(request, self._context)
        return read(PlatformInfo, request, reply)

    @stream
    def events(
        self,
        *,
        subject: str | None = None,
        kinds: Sequence[str] | None = None,
        environment: EnvironmentRef | None = None,
        job_id: IdRef | None = None,
        after: int | None = None,
        timeout: float | None = None,
    ) -> Stream[Event]:
        """Yield what happens on the platform, as it happens.

        Args:
            subject: only what happens to this, such as `tool:tool_1`.
            kinds: only events of these kinds, such as `completed`.
            environment: only what happens to this environment and its jobs.
            job_id: only what happens to this job.
            after: the `id` of an event to go on after; 0 begins with the first that is kept, and
                without it only what happens from now on is told.
            timeout: seconds after which the iteration ends; None goes on until it is left.

        Raises:
            EnvironmentNotFound: there is no such environment.
            RateLimitError: too many are waiting for events already.
        """
        names = kinds_of(kinds)
        wanted = {
            "subject": subject,
            "kind": ",".join(names) if names else None,
            "environment": None if environment is None else reference(environment),
            "job": None if job_id is None else id_of(job_id, "job"),
        }
        yield from follow(wanted, after, timeout, self._context)

    @call
    def get(
        self, path: str, *, params: Query | None = None, timeout: float | None = None
    ) -> Flow[Json]:
        """Return the JSON at a path of the platform; repeated after transient failures."""
        return (yield from self._raw("GET", path, params=params, timeout=timeout))

    @call
    def post(
        self,
        path: str,
        *,
        json: object = None,
        data: Mapping[str, str] | None = None,
        params: Query | None = None,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Flow[Json]:
        """Send a POST and return the JSON of its answer; None where that is empty.

        Args:
            path: from the base URL on.
            json: the body; None sends none.
            data: the fields of a form as the body instead.
            params: the query.
            timeout: seconds, instead of the client's.
            idempotency_key: says that the route honours it, so that it is sent again after
                transient failures; without one it has a key of its own and is sent exactly once.
        """
        if data is not None and json is not None:
            raise ConfigurationError("a request has one body", hint="Give json= or data=.")
        return (
            yield from self._raw(
                "POST",
                path,
                json=json,
                form=data,
                params=params,
                timeout=timeout,
                key=idempotency_key,
            )
        )

    @call
    def put(
        self,
        path: str,
        *,
        json: object = None,
        params: Query | None = None,
        timeout: float | None = None,
    ) -> Flow[Json]:
        """Send a PUT and return the JSON of its answer; None where that is empty."""
        return (yield from self._raw("PUT", path, json=json, params=params, timeout=timeout))

    @call
    def patch(
        self,
        path: str,
        *,
        json: object = None,
        params: Query | None = None,
        timeout: float | None = None,
    ) -> Flow[Json]:
        """Send a PATCH and return the JSON of its answer; None where that is empty."""
        return (yield from self._raw("PATCH", path, json=json, params=params, timeout=timeout))

    @call
    def delete(
        self, path: str, *, params: Query | None = None, timeout: float | None = None
    ) -> Flow[Json]:
        """Send a DELETE and return the JSON of its answer; None where that is empty."""
        return (yield from self._raw("DELETE", path, params=params, timeout=timeout))

    def _raw(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        form: Mapping[str, str] | None = None,
        params: Query | None = None,
        timeout: float | None = None,
        key: str | None = None,
    ) -> Flow[Json]:
        if not path.startswith("/") or path.startswith("//"):
            raise ConfigurationError(
                f"{path!r} is not a path of the platform",
                hint="Begin it with one slash, such as /api/environments.",
            )
        own = self._context.new_key() if key is None and method == "POST" else key
        headers = {} if own is None else {"Idempotency-Key": own}
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        request = Request(
            method=method,
            path=path,
            params=build.query(params),
            json=NO_BODY if json is None else json,
            content=None if form is None else urlencode(form).encode(),
            headers=headers,
            keyed=key is not None,
            timeout=timeout,
        )
        reply = yield from ask(request, self._context)
        return decode(request, reply)

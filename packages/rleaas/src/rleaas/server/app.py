"""The web application: routes, failures and request ids around a server's parts."""

import asyncio
import re
import secrets

from fastapi import Depends, FastAPI
from rlcore.log import logger
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rleaas.server import failures
from rleaas.server.body_limit import BodyLimit
from rleaas.server.described import Described
from rleaas.server.guard import Guard, Patience, protect
from rleaas.server.logs import ACCESS, request_id_now
from rleaas.server.metrics import Heard, Metrics
from rleaas.server.principals import Principal
from rleaas.server.routes import (
    agent_runs,
    agents,
    audit,
    checkpoints,
    clouds,
    data_assets,
    deployments,
    environment_parts,
    environment_reports,
    environments,
    evaluation_humans,
    evaluations,
    events,
    governance,
    human_evals,
    keys,
    kpis,
    observer,
    organisations,
    platform,
    queue,
    repositories,
    rollout_downloads,
    rollouts,
    scenarios,
    suites,
    tools,
    training,
    verifier_audits,
    verifiers,
    webhooks,
    worker,
    worker_checkpoints,
    worker_rollouts,
)
from rleaas.server.segments import Segments, unfold
from rleaas.server.state import ServerState

_access = logger("rleaas", ACCESS)
_REQUEST_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def create_app(state: ServerState) -> FastAPI:
    """The application that answers for these parts; they are started and stopped by the caller."""
    app = Described(
        title="rleaas",
        version=platform.VERSION,
        redirect_slashes=False,
        dependencies=[Depends(unfold)],
    )
    app.state.rleaas = state
    app.state.denials = state.denials
    for router in (
        platform.router,
        keys.router,
        organisations.router,
        environments.router,
        environments.readable,
        environment_reports.router,
        repositories.router,
        data_assets.router,
        data_assets.readable,
        deployments.router,
        clouds.router,
        observer.router,
        training.router,
        queue.router,
        checkpoints.router,
        human_evals.router,
        evaluations.router,
        evaluation_humans.router,
        rollout_downloads.router,
        rollouts.router,
        rollouts.public,
        agent_runs.router,
        agents.router,
        environment_parts.router,
        scenarios.router,
        suites.router,
        tools.router,
        verifiers.router,
        verifier_audits.router,
        audit.router,
        governance.router,
        events.router,
        webhooks.router,
        kpis.router,
        worker.router,
        worker_checkpoints.router,
        worker_rollouts.router,
    ):
        app.include_router(router)
    failures.install(app)
    app.add_middleware(Segments)
    app.add_middleware(BodyLimit)
    app.add_middleware(Patience)
    app.add_middleware(Guard, settings=state.settings)
    app.add_middleware(Requests, state=state)
    return app


class Requests:
    """Gives each request an id, and each an answer, also when the code behind it fails.

    A client's own id is kept. The last resort is here and not among the handlers of the failures:
    those of the framework raise again, and the connection would be lost with the reply.
    """

    def __init__(self, app: ASGIApp, *, state: ServerState) -> None:
        self._app = app
        self._state = state
        self._metrics: Metrics = state.metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with its id in `request.state`."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(failures.REQUEST_ID, "")
        request_id = given if _REQUEST_ID.fullmatch(given) else f"req_{secrets.token_hex(8)}"
        scope.setdefault("state", {})["request_id"] = request_id
        about = request_id_now.set(request_id)
        started = False
        heard = self._metrics.begin()

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                headers[failures.REQUEST_ID] = request_id
                if self._state.draining:  # whoever asks again is to ask another server
                    headers["connection"] = "close"
                protect(headers)
                heard.status = int(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except asyncio.CancelledError:
            # Only the end of the server cancels a request; what is answered half is cut off.
            if not started:
                await failures.stopping(Request(scope))(scope, receive, send_with_id)
        except Exception as error:
            if started:
                raise
            reply = failures.unexpected(Request(scope), error)
            await reply(scope, receive, send_with_id)
        finally:
            self._note(scope, heard)
            request_id_now.reset(about)

    def _note(self, scope: Scope, heard: Heard) -> None:
        # The template and never the path, in which people put what they should not.
        route: str | None = getattr(scope.get("route"), "path", None)
        method = str(scope["method"])
        self._metrics.end(heard, method, route)
        asking: object = scope["state"].get("principal")
        known = asking if isinstance(asking, Principal) else None
        _access.info(
            "%s %s %s in %.1f ms",
            method,
            route or "(no route)",
            heard.status or "cut off",
            heard.milliseconds,
            extra={
                "request_id": scope["state"]["request_id"],
                "method": method,
                "route": route,
                "status": heard.status,
                "ms": round(heard.milliseconds, 2),
                "organisation": None if known is None else known.organisation,
                "key": None if known is None else known.key_prefix,
            },
        )

"""Who asks, as the server sees it: the endpoints that keys and the audit log both tell of."""

from __future__ import annotations

from rleaas._flow import request as build
from rleaas._flow.context import Context
from rleaas._flow.decode import read
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow
from rleaas.models.access import Identity, SsoStatus


def me(context: Context) -> Flow[Identity]:
    """Return who asks, for which organisation, and what they may."""
    request = build.get("/api/me")
    reply = yield from ask(request, context)
    return read(Identity, request, reply)


def sso_status(context: Context) -> Flow[SsoStatus]:
    """Return whether people sign in with a provider of identities."""
    request = build.get("/api/sso-status")
    reply = yield from ask(request, context)
    return read(SsoStatus, request, reply)

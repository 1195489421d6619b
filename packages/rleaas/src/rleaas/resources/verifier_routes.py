"""The routes of one verifier, as both the collection and the handle use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rleaas._flow import request as build
from rleaas._flow.context import Context
from rleaas._flow.decode import read, read_list
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Request
from rleaas.models import Shape, Verifier, VerifierAudit, VerifierResult, VerifierVersion
from rleaas.resources.environment_routes import EnvironmentRef, reference
from rleaas.resources.references import IdRef, environment_of, given, ids_of, plain

KIND = "verifier"
AUDIT_SECONDS = 600.0
"""How long an audit may take: a language model is asked for each verdict."""


def get(verifier_id: str, context: Context) -> Flow[Verifier]:
    """Return the verifier's record."""
    request = build.get(path(verifier_id), kind=KIND, ref=verifier_id)
    reply = yield from ask(request, context)
    return read(Verifier, request, reply)


def update(verifier_id: str, fields: Mapping[str, object], context: Context) -> Flow[Verifier]:
    """Change the fields that are given; return the whole record."""
    request = Request(
        method="PUT", path=path(verifier_id), json=plain(fields), kind=KIND, ref=verifier_id
    )
    reply = yield from ask(request, context)
    return read(Verifier, request, reply)


def switch(verifier_id: str, enabled: bool, context: Context) -> Flow[Verifier]:
    """Say whether it judges."""
    request = Request(
        method="PUT",
        path=f"{path(verifier_id)}/enabled",
        json={"enabled": enabled},
        kind=KIND,
        ref=verifier_id,
    )
    reply = yield from ask(request, context)
    return read(Verifier, request, reply)


def delete(verifier_id: str, context: Context) -> Flow[Shape]:
    """Delete it."""
    request = Request(method="DELETE", path=path(verifier_id), kind=KIND, ref=verifier_id)
    reply = yield from ask(request, context)
    return read(Shape, request, reply)


def duplicate(verifier_id: str, context: Context) -> Flow[Verifier]:
    """Add one that judges the same."""
    request = build.post(
        f"{path(verifier_id)}/duplicate", key=context.new_key(), kind=KIND, ref=verifier_id
    )
    reply = yield from ask(request, context)
    return read(Verifier, request, reply)


def test(
    verifier_id: str,
    state: Mapping[str, object] | None,
    trajectory: Sequence[Mapping[str, object]] | None,
    context: Context,
) -> Flow[VerifierResult]:
    """Judge an episode."""
    request = build.post(
        f"{path(verifier_id)}/test",
        {"state": plain(state or {}), "trajectory": plain(trajectory or ())},
        key=context.new_key(),
        kind=KIND,
        ref=verifier_id,
    )
    reply = yield from ask(request, context)
    return read(VerifierResult, request, reply)


def audit(verifier_id: str, body: Mapping[str, object], context: Context) -> Flow[VerifierAudit]:
    """Test it with episodes whose worth is known."""
    request = build.post(
        f"{path(verifier_id)}/audit",
        plain(body),
        key=context.new_key(),
        kind=KIND,
        ref=verifier_id,
        timeout=context.at_least(AUDIT_SECONDS),
    )
    reply = yield from ask(request, context)
    return read(VerifierAudit, request, reply)


def audit_body(
    good: Sequence[Mapping[str, object]],
    bad: Sequence[Mapping[str, object]],
    environment: EnvironmentRef | None,
    scenario_ids: Sequence[IdRef] | None,
    repeats: int,
    allow_empty: bool,
    most_wrong: float,
) -> dict[str, object]:
    """What an audit is asked with."""
    return {
        "good": list(good),
        "bad": list(bad),
        "repeats": repeats,
        "allow_empty": allow_empty,
        "most_wrong": most_wrong,
        **given(
            environment=environment_of(environment),
            scenario_ids=None if scenario_ids is None else ids_of(scenario_ids, "scenario"),
        ),
    }


def audits(verifier_id: str, context: Context) -> Flow[list[VerifierAudit]]:
    """Return what its audits found, newest first."""
    request = build.get(f"{path(verifier_id)}/audits", kind=KIND, ref=verifier_id)
    reply = yield from ask(request, context)
    found, _ = read_list(VerifierAudit, request, reply, "audits")
    return found


def versions(verifier_id: str, context: Context) -> Flow[list[VerifierVersion]]:
    """Return what it judged by."""
    request = build.get(f"{path(verifier_id)}/versions", kind=KIND, ref=verifier_id)
    reply = yield from ask(request, context)
    found, _ = read_list(VerifierVersion, request, reply, "versions")
    return found


def attach(
    environment: EnvironmentRef, verifier_id: str, weight: float, context: Context
) -> Flow[Shape]:
    """Let it judge an environment."""
    request = build.post(
        _attached(environment),
        {"verifier_id": verifier_id, "weight": weight},
        key=context.new_key(),
        kind="environment",
        ref=reference(environment),
    )
    reply = yield from ask(request, context)
    return read(Shape, request, reply)


def detach(environment: EnvironmentRef, verifier_id: str, context: Context) -> Flow[Shape]:
    """Let it judge an environment no more."""
    request = Request(
        method="DELETE",
        path=_attached(environment) + build.path("/{}", verifier_id, what="verifier id"),
        kind=KIND,
        ref=verifier_id,
    )
    reply = yield from ask(request, context)
    return read(Shape, request, reply)


def path(verifier_id: str) -> str:
    """Return the verifier's path."""
    return build.path("/api/verifiers/{}", verifier_id, what="verifier id")


def _attached(environment: EnvironmentRef) -> str:
    name = reference(environment)
    return build.path("/api/environments/{}/verifiers", name, what="environment name")

"""The routes of deployments, as their client and the handles of environments use them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, cast

from rlcore import ConfigurationError

from rleaas._flow import request as build
from rleaas._flow.context import Context
from rleaas._flow.decode import read
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow
from rleaas.models import Shape
from rleaas.models.deployment import Deployment
from rleaas.resources.references import IdRef, id_of

KIND = "deployment"
DeploymentRef = IdRef
S = TypeVar("S", bound=Shape)
# How much longer than it holds the request a server may take to answer.
SPARE_SECONDS = 15.0


def create(given: Mapping[str, object | None], context: Context) -> Flow[Deployment]:
    """Record a deployment; what is None is left out."""
    body = {name: value for name, value in given.items() if value is not None}
    request = build.post("/api/deployments", body, key=context.new_key())
    return read(Deployment, request, (yield from ask(request, context)))


def from_infrastructure(
    name: str, infrastructure: Mapping[str, object] | None
) -> dict[str, object | None]:
    """Return the fields of a deployment that an infrastructure speaks of.

    Without one, the platform takes what is stored with the environment.
    """
    given: dict[str, object | None] = {"provider": "", "env_name": name}
    if infrastructure is None:
        return given
    provider = infrastructure.get("provider")
    if not isinstance(provider, str) or not provider.strip():
        raise ConfigurationError(
            f"the infrastructure of {name!r} names no provider",
            hint="Set infrastructure['provider'] to Azure, AWS, GCP or On-Premise.",
        )
    shared = ("provider", "region", "cpu", "gpu", "memory", "scaling", "image")
    given.update({key: infrastructure.get(key) for key in shared})
    for key in (provider.lower(), "k8s"):
        nested = infrastructure.get(key)
        if isinstance(nested, Mapping):
            given.update(cast("Mapping[str, object]", nested))
    autoscaler = given.pop("autoscaler", None)
    if given.get("scaling") is None:
        given["scaling"] = autoscaler
    return given


def get(shape: type[S], deployment_id: DeploymentRef, rest: str, context: Context) -> Flow[S]:
    """Return what a GET about the deployment answers."""
    request = build.get(path_of(deployment_id) + rest, kind=KIND, ref=text_of(deployment_id))
    return read(shape, request, (yield from ask(request, context)))


def post(
    shape: type[S],
    deployment_id: DeploymentRef,
    rest: str,
    body: Mapping[str, object],
    context: Context,
) -> Flow[S]:
    """Return what a POST about the deployment answers."""
    request = build.post(
        path_of(deployment_id) + rest,
        dict(body),
        key=context.new_key(),
        kind=KIND,
        ref=text_of(deployment_id),
        timeout=context.at_least(30 + SPARE_SECONDS),
    )
    return read(shape, request, (yield from ask(request, context)))


def text_of(id: DeploymentRef) -> str:
    """Return the id itself."""
    return id_of(id, KIND)


def path_of(id: DeploymentRef) -> str:
    """Return the path of the deployment's record."""
    return build.path("/api/deployments/{}", text_of(id), what="deployment id")

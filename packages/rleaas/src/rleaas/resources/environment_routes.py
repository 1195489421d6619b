"""The routes of one environment, as both the collection and the handle use them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, cast

from rlcore import ConfigurationError, Deadline

from rleaas._flow import request as build
from rleaas._flow.context import Context
from rleaas._flow.decode import read
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Request
from rleaas.models import EndpointGrant, Environment, EnvironmentVersion, Shape
from rleaas.resources.kinds import field_of

KIND = "environment"
BRING_UP_SECONDS = 90.0
"""How long an environment that has to be started first may take to answer, at least."""


class Named(Protocol):
    """Something with a registered name: a handle, or a record."""

    @property
    def name(self) -> str:
        """The registered name."""
        ...


EnvironmentRef = str | int | Named
"""An environment by its name, its number, or itself."""


def reference(environment: EnvironmentRef) -> str:
    """Return what names the environment in a path.

    Raises:
        ConfigurationError: it is empty, no reference at all, or something of another kind.
    """
    if isinstance(environment, str | int) and not isinstance(environment, bool):
        text: str | None = str(environment)
    else:
        text = field_of(environment, KIND, "name", str)
    if text is None:
        raise ConfigurationError(
            f"{environment!r} is not an environment", hint="Pass its name, its id or its handle."
        )
    build.segment(text, "environment name")
    return text


def version_reference(environment: EnvironmentRef | EnvironmentVersion) -> str:
    """Return what names the environment, or the one version of it, such as `name@2`.

    Raises:
        ConfigurationError: it is empty, no reference at all, or something of another kind.
    """
    name = field_of(environment, "environment version", "name", str)
    if name is not None and isinstance(environment, EnvironmentVersion):
        return f"{name}@{environment.version}"
    return reference(cast("EnvironmentRef", environment))


def get(name: str, context: Context, deadline: Deadline | None = None) -> Flow[Environment]:
    """Return the environment's record."""
    request = build.get(_path("/api/environments/{}", name), kind=KIND, ref=name)
    reply = yield from ask(request, context, deadline)
    return read(Environment, request, reply)


def endpoint(
    name: str, version: int | None, context: Context, deadline: Deadline | None = None
) -> Flow[EndpointGrant]:
    """Return where the environment is served."""
    request = build.get(
        _path("/api/environments/{}/endpoint", name),
        {"version": version},
        kind=KIND,
        ref=name if version is None else f"{name}@{version}",
        timeout=context.at_least(BRING_UP_SECONDS),
    )
    reply = yield from ask(request, context, deadline)
    return read(EndpointGrant, request, reply)


def update(
    name: str, config: Mapping[str, object] | None, new_name: str | None, context: Context
) -> Flow[None]:
    """Change config or name; what is None stays."""
    body: dict[str, object] = {}
    if config is not None:
        body["config"] = dict(config)
    if new_name is not None:
        body["name"] = new_name
    if not body:
        raise ConfigurationError(
            f"nothing to update of environment {name!r}",
            hint="Pass config=, name=, system= or category=.",
        )
    request = Request(
        method="PUT", path=_path("/api/environments/{}", name), json=body, kind=KIND, ref=name
    )
    yield from ask(request, context)


def set_word(name: str, what: str, word: str, context: Context) -> Flow[None]:
    """Change the system or the category."""
    path = _path("/api/environments/{}", name) + f"/{what}"
    request = Request(method="PUT", path=path, json={what: word}, kind=KIND, ref=name)
    yield from ask(request, context)


def act(name: str, action: str, context: Context) -> Flow[Shape]:
    """Do one of the actions that have no body."""
    request = build.post(
        _path("/api/environments/{}", name) + f"/{action}",
        key=context.new_key(),
        kind=KIND,
        ref=name,
        timeout=context.at_least(BRING_UP_SECONDS),
    )
    reply = yield from ask(request, context)
    return read(Shape, request, reply)


def delete(name: str, confirm: bool, context: Context) -> Flow[Shape]:
    """Delete it, if that is confirmed."""
    if confirm is not True:
        raise ConfigurationError(
            f"environment {name!r} was not deleted: that removes its jobs, checkpoints and "
            "evaluations for good",
            code="not_confirmed",
            hint="Pass confirm=True.",
        )
    request = Request(
        method="DELETE", path=_path("/api/custom-environments/{}", name), kind=KIND, ref=name
    )
    reply = yield from ask(request, context)
    return read(Shape, request, reply)


def _path(template: str, name: str) -> str:
    return build.path(template, name, what="environment name")

"""The routes of what belongs to an environment, as both the collection and the handle use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from rlcore import ConfigurationError

from rleaas._flow import request as build
from rleaas._flow.context import Context
from rleaas._flow.decode import read, read_list
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Request
from rleaas.models import Shape
from rleaas.models.environment import Environment, EnvironmentVersion
from rleaas.models.environment_parts import (
    DataAttachment,
    RepositoryCheck,
    RepositoryConfig,
)
from rleaas.resources.environment_routes import KIND

S = TypeVar("S", bound=Shape)

# A repository may take that long to answer; the server bounds it.
REPOSITORY_SECONDS = 240.0


def load(
    shape: type[S], path: str, name: str, context: Context, timeout: float | None = None
) -> Flow[S]:
    """Return what a GET about the environment answers."""
    request = build.get(_path(path, name), kind=KIND, ref=name, timeout=timeout)
    return read(shape, request, (yield from ask(request, context)))


def put(
    shape: type[S], path: str, name: str, body: Mapping[str, object], context: Context
) -> Flow[S]:
    """Return what a PUT about the environment answers."""
    request = Request(method="PUT", path=_path(path, name), json=dict(body), kind=KIND, ref=name)
    return read(shape, request, (yield from ask(request, context)))


def versions(name: str, context: Context) -> Flow[list[EnvironmentVersion]]:
    """Return every version, oldest first."""
    request = build.get(_path("/api/environments/{}/versions", name), kind=KIND, ref=name)
    found, _ = read_list(
        EnvironmentVersion, request, (yield from ask(request, context)), "versions"
    )
    return found


def configure_tools(
    name: str,
    access_pattern: str | None,
    tool_names: Sequence[str] | None,
    approval_mode: str | None,
    context: Context,
) -> Flow[Environment]:
    """Say which tools episodes may call; what is None stays."""
    if access_pattern is not None and tool_names is not None:
        raise ConfigurationError(
            "access_pattern and tool_names say the same thing in two ways",
            hint="Pass one of them.",
        )
    given: dict[str, object | None] = {
        "access_pattern": access_pattern,
        "tool_names": None if tool_names is None else list(tool_names),
        "approval_mode": approval_mode,
    }
    body = {field: value for field, value in given.items() if value is not None}
    return (yield from put(Environment, "/api/custom-environments/{}", name, body, context))


def attach_data(
    name: str, asset_id: str, injection: Mapping[str, object] | None, context: Context
) -> Flow[DataAttachment]:
    """Give the environment an uploaded asset."""
    body = {"data_asset_id": asset_id, "injection_config": dict(injection or {})}
    request = build.post(
        _path("/api/environments/{}/data", name), body, key=context.new_key(), kind=KIND, ref=name
    )
    return read(DataAttachment, request, (yield from ask(request, context)))


def list_data(name: str, context: Context) -> Flow[list[DataAttachment]]:
    """Return what data the environment is given."""
    request = build.get(_path("/api/environments/{}/data", name), kind=KIND, ref=name)
    found, _ = read_list(DataAttachment, request, (yield from ask(request, context)), "data")
    return found


def detach_data(name: str, asset_id: str, context: Context) -> Flow[Shape]:
    """Take an asset away from the environment."""
    path = _path("/api/environments/{}/data", name) + "/" + build.segment(asset_id, "asset id")
    request = Request(method="DELETE", path=path, kind="data_attachment", ref=asset_id)
    return read(Shape, request, (yield from ask(request, context)))


def validate_repository(
    repo_url: str, branch: str, auth_type: str, username: str, token: str, context: Context
) -> Flow[RepositoryCheck]:
    """Have the platform ask a repository for its branch."""
    body = {"repoUrl": repo_url, "branch": branch, "authType": auth_type}
    body.update({key: text for key, text in (("username", username), ("token", token)) if text})
    request = build.post(
        "/api/repo/validate", body, key=context.new_key(), timeout=REPOSITORY_SECONDS
    )
    return read(RepositoryCheck, request, (yield from ask(request, context)))


def save_repository(
    name: str,
    provider: str,
    repo_url: str,
    branch: str,
    context_path: str,
    auth_type: str,
    username: str,
    token: str,
    context: Context,
) -> Flow[RepositoryConfig]:
    """Keep where the environment's code is."""
    body = {
        "provider": provider,
        "repoUrl": repo_url,
        "branch": branch,
        "contextPath": context_path,
        "authType": auth_type,
        "username": username,
        "token": token,
    }
    return (yield from put(RepositoryConfig, "/api/environments/{}/repo", name, body, context))


def repository_body(given: Mapping[str, object]) -> dict[str, object]:
    """Return the `repo` of a registration in the published spelling, from either one."""
    spelling = {"repo_url": "repoUrl", "context_path": "contextPath", "auth_type": "authType"}
    body = {key: value for key, value in given.items() if key not in spelling}
    body.update({spelling[key]: given[key] for key in spelling if key in given})
    return body


def _path(template: str, name: str) -> str:
    return build.path(template, name, what="environment name")

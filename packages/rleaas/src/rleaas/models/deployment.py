"""Deployments: records of where things run, and what was found out about them."""

from __future__ import annotations

from pydantic import Field

from rleaas.models.shape import JsonObject, Moment, Shape, Status


class Deployment(Shape):
    """A deployment; `not_connected` where the server knows no cluster to put it on."""

    id: str
    provider: str
    cluster_name: str
    env_name: str | None = None
    environment_id: int | None = None
    status: Status
    app_status: Status | None = None
    app_status_msg: str = ""
    image: str | None = None
    region: str | None = None
    namespace: str | None = None
    deployment_urls: list[JsonObject] = Field(default_factory=list[JsonObject])
    created_at: Moment | None = None
    updated_at: Moment | None = None


class DeploymentLogs(Shape):
    """Lines of a deployment's log, and where to go on."""

    lines: list[str] = Field(default_factory=list[str])
    cursor: int
    done: bool
    app_status: Status | None = None
    app_status_msg: str = ""


class Manifests(Shape):
    """Kubernetes objects, as JSON and as a YAML stream to be applied."""

    deployment_id: str
    manifests: list[JsonObject]
    yaml: str
    omitted: list[str] = Field(default_factory=list[str])


class Availability(Shape):
    """Which URLs of a deployment answered."""

    acknowledged: bool
    deployment_id: str
    message: str = ""
    checks: list[JsonObject] = Field(default_factory=list[JsonObject])
    elapsed_seconds: float = 0.0


class ModelProbe(Shape):
    """What a model answered to one question."""

    ok: bool
    endpoint: str | None = None
    status_code: int | None = None
    result: object = None
    error: str | None = None

"""What belongs to an environment: its data, its repository, and what is reported about it."""

from __future__ import annotations

from pydantic import Field

from rleaas.models.shape import JsonObject, Moment, Shape


class DataAsset(Shape):
    """An uploaded file."""

    id: str
    name: str
    media_type: str = "application/octet-stream"
    sha256: str
    size_bytes: int
    created_at: Moment | None = None


class DataAttachment(Shape):
    """Data that an environment is given, and how it is to take it in."""

    data_asset_id: str
    environment_id: int | None = None
    injection_config: JsonObject = Field(default_factory=dict[str, object])
    attached_at: Moment | None = None
    data_asset: DataAsset | None = None


class RepositoryConfig(Shape):
    """Where the code of an environment is kept; the token is never told."""

    provider: str = "github"
    repoUrl: str = ""  # noqa: N815 - the published spelling
    branch: str = "main"
    contextPath: str = ""  # noqa: N815
    authType: str = "none"  # noqa: N815
    username: str = ""
    hasToken: bool | None = None  # noqa: N815
    checks: list[JsonObject] = Field(default_factory=list[JsonObject])


class RepositoryCheck(Shape):
    """Whether a repository was reached and has the branch."""

    ok: bool
    message: str = ""
    code: str | None = None
    commit: str | None = None


class RiskReport(Shape):
    """What was refused around an environment, and the thresholds in force."""

    environment_name: str
    risk_thresholds: dict[str, float] = Field(default_factory=dict[str, float])
    compliance_violations: JsonObject = Field(default_factory=dict[str, object])


class EnvironmentAnalysis(Shape):
    """What is known of an environment's code and contract."""

    name: str
    commit: str | None = None
    readme_raw: str = ""
    files: list[JsonObject] = Field(default_factory=list[JsonObject])
    endpoints: list[JsonObject] = Field(default_factory=list[JsonObject])
    models: JsonObject = Field(default_factory=dict[str, object])


class PublicUrls(Shape):
    """The URLs that deployments of an environment have been given."""

    env_name: str
    count: int = 0
    urls: list[JsonObject] = Field(default_factory=list[JsonObject])

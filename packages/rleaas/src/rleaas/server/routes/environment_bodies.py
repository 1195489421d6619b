"""What requests about environments may say."""

from typing import Annotated, Literal

from pydantic import Field

from rleaas.server.routes.bodies import Body, JsonObject
from rleaas.server.rules.tool_access import AccessPattern, ApprovalMode

Description = Annotated[str, Field(max_length=2000)]
_Word = Annotated[str, Field(min_length=1, max_length=100)]
_Text = Annotated[str, Field(max_length=1000)]

DETAILS = (
    "tools",
    "scenarios",
    "verifiers",
    "simulations",
    "owner",
    "sdk",
    "compute",
    "license",
    "infrastructure",
    "infra",
    "verifier_configs",
    "metadata",
    "system",
    "access_pattern",
    "tool_names",
    "approval_mode",
)


class MergeEnvironment(Body):
    """The fields to change; what is left out stays as it is."""

    new_name: str | None = None
    description: Description | None = None
    source: Annotated[str, Field(max_length=1000)] | None = None
    kwargs: JsonObject | None = None
    config: JsonObject | None = None
    vertical: _Word | None = None
    category: _Word | None = None
    domain: _Word | None = None
    tags: list[str] | None = None
    tools: list[JsonObject | str] | None = None
    scenarios: list[JsonObject | str] | None = None
    verifiers: list[JsonObject | str] | None = None
    simulations: list[JsonObject | str] | None = None
    owner: _Text | None = None
    sdk: _Text | None = None
    compute: _Text | None = None
    license: _Text | None = None
    infrastructure: JsonObject | None = None
    infra: JsonObject | None = None
    verifier_configs: JsonObject | None = None
    metadata: JsonObject | None = None
    system: _Word | None = None
    access_pattern: AccessPattern | None = None
    tool_names: list[str] | None = None
    approval_mode: ApprovalMode | None = None


class SetSystem(Body):
    """The system that an environment stands for."""

    system: _Word
    metadata: JsonObject | None = None


class SetCategory(Body):
    """The vertical that an environment belongs to."""

    category: _Word


class CheckRepository(Body):
    """A repository to be reached; nothing of it is kept."""

    repoUrl: str = Field(min_length=1, max_length=1000)  # noqa: N815 - the published spelling
    branch: str = Field("main", min_length=1, max_length=255)
    authType: Literal["none", "pat", "basic"] = "none"  # noqa: N815
    username: str = Field("", max_length=200)
    token: str = Field("", max_length=10_000)


class SaveRepository(Body):
    """Where the code of an environment is kept, and how to be let in."""

    provider: Literal["github", "gitlab", "azure_devops", "bitbucket", "huggingface", "other"] = (
        "github"
    )
    repoUrl: str = Field("", max_length=1000)  # noqa: N815
    branch: str = Field("main", max_length=255)
    contextPath: str = Field("", max_length=1000)  # noqa: N815
    authType: Literal["none", "pat", "basic"] = "none"  # noqa: N815
    username: str = Field("", max_length=200)
    token: str = Field("", max_length=10_000)


class AttachData(Body):
    """An uploaded asset, and how the environment is to take it in."""

    data_asset_id: str = Field(min_length=1, max_length=100)
    injection_config: JsonObject = Field(default_factory=dict[str, object])

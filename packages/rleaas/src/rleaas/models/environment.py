"""Registered environments and how to reach them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints
from rlcore import EnvironmentIdentity

from rleaas.models.scenario import Scenario as Scenario
from rleaas.models.shape import JsonObject, Moment, Shape, Status

CreateEnvironmentDomain = Literal["finance", "healthcare", "enterprise", "human_resources"]
CreateEnvironmentSdk = Literal["gradio", "docker", "static", "custom"]
CreateEnvironmentCompute = Literal["cpu-basic", "cpu-upgrade", "gpu-t4", "gpu-a10"]
CreateEnvironmentLicense = Literal[
    "", "apache-2.0", "mit", "gpl-3.0", "bsd-3-clause", "proprietary", "other"
]

READY = "ready"
ENVIRONMENT_STATUSES = ("registered", "provisioning", READY, "failed", "deprovisioned")
ENVIRONMENT_FAILURES = frozenset({"failed", "error"})
"""Statuses out of which an environment does not come by waiting; `error` is an older word."""

VERTICAL_OF_DOMAIN: Mapping[str, str] = {
    "finance": "FinSim",
    "healthcare": "MedSim",
    "enterprise": "DevSim",
    "human_resources": "HRSim",
}
DOMAIN_OF_VERTICAL: Mapping[str, str] = {
    vertical: domain for domain, vertical in VERTICAL_OF_DOMAIN.items()
}
# The published names of the same tables.
DOMAIN_TO_VERTICAL: Mapping[str, str] = VERTICAL_OF_DOMAIN
VERTICAL_TO_DOMAIN: Mapping[str, str] = DOMAIN_OF_VERTICAL


class Environment(Shape):
    """A registered environment.

    `status` goes `registered`, `provisioning`, then `ready` or `failed` (the reason is in
    `status_reason`); `deprovisioned` when its compute was given back. One that is ready and was
    stopped, such as for being idle, is not `is_running`; it starts again on demand. `warnings` name
    what its config says without effect.
    """

    other_names: ClassVar = {
        "id": ("environment_id",),
        "vertical": ("category",),
    }

    id: int
    name: str
    status: Status
    status_reason: str | None = None
    version: int | None = None
    source: str | None = None
    kwargs: JsonObject = Field(default_factory=dict[str, object])
    config: JsonObject = Field(default_factory=dict[str, object])
    warnings: list[str] = Field(default_factory=list[str])
    is_running: bool | None = None
    contract: JsonObject | None = None
    contract_digest: str | None = None
    vertical: str | None = None
    domain: str | None = None
    description: str = ""
    tags: list[str] = Field(default_factory=list[str])
    metadata: JsonObject = Field(default_factory=dict[str, object])
    infrastructure: JsonObject | None = None
    entity_count: int | None = None
    tool_count: int | None = None
    scenario_count: int | None = None
    created_at: Moment | None = None
    updated_at: Moment | None = None

    @property
    def waits_for_nothing(self) -> bool:
        """Whether it stays as it is until somebody gives it a source, or starts it again."""
        has_no_source = self.source is None and bool(self.status_reason)
        return self.status == "deprovisioned" or (self.status == "registered" and has_no_source)

    @property
    def identity(self) -> EnvironmentIdentity | None:
        """Name, version and contract digest; None before the contract is known."""
        if self.contract_digest is None:
            return None
        return EnvironmentIdentity(self.name, self.version, self.contract_digest)


class EnvironmentVersion(Shape):
    """One version in an environment's history."""

    version: int
    status: Status | None = None
    status_reason: str | None = None
    source: str | None = None
    kwargs: JsonObject = Field(default_factory=dict[str, object])
    config: JsonObject = Field(default_factory=dict[str, object])
    contract_digest: str | None = None
    created_at: Moment | None = None


class EndpointGrant(Shape):
    """Where a registered environment is served, and a token that opens it for a while."""

    address: str
    # Kept out of the repr: whoever has it can step the environment.
    token: str | None = Field(default=None, repr=False)
    expires_at: Moment | None = None
    environment_id: int | None = None
    environment_name: str
    version: int | None = None
    contract_digest: str
    contract: JsonObject | None = Field(default=None, repr=False)


class CreateEnvironmentRequest(Shape):
    """What a registration says, in the words of the published form; further fields are kept."""

    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
    description: Annotated[str, StringConstraints(strip_whitespace=True, max_length=2000)] = ""
    source: str = "custom"
    owner: str = ""
    license: CreateEnvironmentLicense = ""
    sdk: CreateEnvironmentSdk = "gradio"
    compute: CreateEnvironmentCompute = "cpu-basic"
    domain: CreateEnvironmentDomain | None = None
    vertical: str | None = None


class UpdateEnvironmentSystemRequest(Shape):
    """What system an environment stands for."""

    system: str
    metadata: JsonObject | None = None

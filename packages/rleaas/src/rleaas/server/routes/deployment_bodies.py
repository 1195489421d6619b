"""What requests about deployments may say."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from rleaas.server.routes.bodies import Body, JsonObject
from rleaas.server.rules.deployments import url_problem

_Word = Annotated[str, Field(max_length=300)]
_Quantity = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$")]
_Label = Annotated[str, Field(pattern=r"^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$")]
_LabelName = Annotated[
    str,
    Field(pattern=r"^([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$"),
]
_Replicas = Annotated[int, Field(ge=1, le=1000)]


def _url(url: str) -> str:
    problem = url_problem(url)
    if problem:
        raise ValueError(problem)
    return url


Url = Annotated[str, Field(max_length=2000), AfterValidator(_url)]


class CreateDeployment(Body):
    """What to run where; what is left out is taken from the environment's infrastructure."""

    provider: _Word = ""
    cluster_name: _Word = ""
    env_name: _Word | None = None
    image: Annotated[str, Field(pattern=r"^[^\s-][^\s]{0,499}$")] | None = None
    region: _Word | None = None
    subscription_id: _Word | None = None
    resource_group: _Word | None = None
    account_id: _Word | None = None
    project_id: _Word | None = None
    cluster_label: _Word | None = None
    node_pool_name: _Word | None = None
    vm_size: _Word | None = None
    instance_type: _Word | None = None
    machine_type: _Word | None = None
    node_count: Annotated[int, Field(ge=1, le=10_000)] | None = None
    node_group_name: _Word | None = None
    network_plugin: _Word | None = None
    k8s_version: _Word | None = None
    namespace: Annotated[str, Field(pattern=r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$")] | None = (
        None
    )
    cpu: _Quantity | None = None
    gpu: Annotated[str, Field(pattern=r"^[0-9]{1,4}$")] | Annotated[int, Field(ge=0)] | None = None
    memory: _Quantity | None = None
    scaling: _Word | None = None
    min_replicas: _Replicas | None = None
    max_replicas: _Replicas | None = None
    k8s_labels: dict[_LabelName, _Label] | None = None
    repo_url: _Word | None = None
    repo_branch: _Word | None = None
    repo_provider: _Word | None = None
    repo_auth_type: _Word | None = None
    repo_username: _Word | None = None
    repo_token: Annotated[str, Field(max_length=10_000)] | None = None

    @model_validator(mode="after")
    def _in_order(self) -> "CreateDeployment":
        if self.min_replicas and self.max_replicas and self.min_replicas > self.max_replicas:
            raise ValueError("min_replicas is larger than max_replicas")
        return self


class SetAppStatus(Body):
    """How somebody says that the application is."""

    status: Literal[
        "pending",
        "cloning",
        "detecting",
        "building",
        "deploying",
        "running",
        "failed",
        "not_connected",
    ]
    message: str = Field("", max_length=2000)


class DeploymentUrl(Body):
    """Where a part of a deployment is reached."""

    label: _Word = ""
    url: Url
    type: Literal["api", "dashboard", "ingress", "service", "model", "custom"] = "custom"


class SaveUrls(Body):
    """All URLs of a deployment."""

    urls: list[DeploymentUrl] = Field(max_length=100)


class CheckAvailability(Body):
    """How long to try, and how often."""

    timeout_seconds: float = Field(10.0, gt=0, le=25)
    interval_seconds: float = Field(1.0, ge=0.1, le=25)


class ProbeModel(Body):
    """One question to a model; without a URL, to the one that was configured."""

    model_url: Url | None = None
    model: _Word | None = None
    prompt: str = Field("Say hello.", max_length=20_000)
    stream: bool = False


class ConfigureModel(Body):
    """The model that a deployment serves, and where."""

    model_id: str = Field(min_length=1, max_length=300)
    hf_token: str = Field("", max_length=10_000)
    namespace: _Word = ""
    endpoint_url: str = Field("", max_length=2000)


CloudConfig = dict[
    Literal[
        "TRAINING_ALGORITHMS",
        "CLOUD_PROVIDERS",
        "REGIONS",
        "PROVIDER_REGIONS",
        "PROVIDER_INSTANCE_TYPES",
        "K8S_VERSIONS",
        "NETWORK_PLUGINS",
        "AUTOSCALER_POLICIES",
    ],
    list[str] | JsonObject,
]

"""What the published client does wrong about environments, and this one does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest
from rlcore import AuthenticationError, ConfigurationError, EnvironmentNotFound
from rleaas._flow.wire import Flow
from rleaas.models import Environment
from rleaas.resources.data_assets import DataAssetsClient
from rleaas.resources.deployment_routes import from_infrastructure
from rleaas.resources.deployments import DeploymentsClient
from rleaas.resources.environment_handle import EnvironmentResource
from rleaas.resources.environments import EnvironmentsClient
from rleaas.testing import Offline, converse, reply

RECORD: dict[str, object] = {"id": 3, "name": "E", "status": "ready", "version": 1}


def handle() -> EnvironmentResource[Offline]:
    return EnvironmentResource(Offline(), Environment.model_validate(RECORD))


# defect: F-1
@pytest.mark.parametrize(
    ("status", "error"), [(404, EnvironmentNotFound), (401, AuthenticationError)]
)
def test_waiting_for_what_does_not_exist_or_may_not_be_seen_fails(
    status: int, error: type[Exception]
) -> None:
    with pytest.raises(error):
        converse(handle().wait_until_ready(), [reply({"detail": "no"}, status)])


# defect: F-22
def test_an_empty_config_is_sent_as_such() -> None:
    talk = converse(handle().update(config={}), [reply({}), reply(RECORD)])

    assert talk.requests[0].json == {"config": {}}


# defect: P-9
@pytest.mark.parametrize("environment", ["E", handle(), Environment.model_validate(RECORD)])
def test_an_environment_is_given_by_name_handle_or_record(
    environment: str | EnvironmentResource[Offline] | Environment,
) -> None:
    talk = converse(EnvironmentsClient(Offline()).load_repo_config(environment), [reply({})])

    assert talk.requests[0].path == "/api/environments/E/repo"


# defect: S-1
@pytest.mark.parametrize(
    ("ask", "path"),
    [
        (
            lambda: EnvironmentsClient(Offline()).load_repo_config("a/b?c#d é"),
            "/api/environments/a%2Fb%3Fc%23d%20%C3%A9/repo",
        ),
        (lambda: DeploymentsClient(Offline()).get("../agents"), "/api/deployments/..%2Fagents"),
        (lambda: DataAssetsClient(Offline()).get("x/y"), "/api/data-assets/x%2Fy"),
    ],
)
def test_what_names_something_stays_one_segment(ask: Callable[[], Flow[object]], path: str) -> None:
    with pytest.raises(Exception, match="not found") as caught:
        converse(ask(), [reply({"detail": "not found"}, 404)])

    assert cast("object", getattr(caught.value, "status_code", None)) == 404
    flow = ask()
    assert getattr(next(flow), "path", None) == path
    flow.close()


# defect: S-1
@pytest.mark.parametrize("id", ["", " ", "..", "."])
def test_an_id_that_would_hit_something_else_is_refused_before_it_is_sent(id: str) -> None:
    with pytest.raises(ConfigurationError):
        converse(DeploymentsClient(Offline()).delete(id), [])
    with pytest.raises(ConfigurationError):
        converse(DataAssetsClient(Offline()).delete(id), [])


# defect: F-18
def test_every_wish_of_an_infrastructure_is_sent() -> None:
    given = from_infrastructure(
        "E",
        {
            "provider": "Azure",
            "cpu": "2",
            "memory": "1Gi",
            "azure": {"cluster_name": "c", "vm_size": "v"},
            "k8s": {"autoscaler": "HPA", "max_replicas": 2},
        },
    )

    assert {name: value for name, value in given.items() if value is not None} == {
        "provider": "Azure",
        "env_name": "E",
        "cpu": "2",
        "memory": "1Gi",
        "cluster_name": "c",
        "vm_size": "v",
        "max_replicas": 2,
        "scaling": "HPA",
    }


# defect: A-7
def test_data_that_the_documentation_speaks_of_can_be_uploaded() -> None:
    asset = {"id": "data_1", "name": "x", "sha256": "0" * 64, "size_bytes": 1}
    talk = converse(DataAssetsClient(Offline()).upload(b"x", "x"), [reply(asset)])

    assert talk.requests[0].content == b"x"
    assert talk.result.id == "data_1"

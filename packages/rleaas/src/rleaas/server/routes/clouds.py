"""Routes about clouds: their vocabulary, manifests to apply, and what is not connected."""

from typing import Annotated, NoReturn

from fastapi import APIRouter, Depends, Query
from rlcore import ConflictError, PermissionDeniedError

from rleaas.server.access import Caller, require_user
from rleaas.server.failures import documented
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.routes.deployment_bodies import CloudConfig
from rleaas.server.rules import manifests
from rleaas.server.rules.clouds import DEFAULTS
from rleaas.server.rules.json_values import text
from rleaas.server.store import audit, deployments, environments

router = APIRouter(
    tags=["deployments"], dependencies=[Depends(require_user)], responses=documented(401)
)

Subscription = Annotated[str, Query(min_length=1, max_length=200)]
Group = Annotated[str, Query(max_length=200)]


@router.get("/api/deployments/{id}/manifests", responses=documented(403, 404, 409))
def get_manifests(
    id: str,
    caller: Caller,
    version: Annotated[int | None, Query(ge=1)] = None,
    secret: bool = False,
) -> JsonObject:
    """The Kubernetes objects that serve the deployment's environment, to be applied by hand.

    The Secret opens the environment to whoever has it: it is given to admins who ask for it.
    """
    if secret and "admin" not in caller.principal.scopes:
        raise PermissionDeniedError("only admins are given the Secret of a deployment")
    with caller.read() as session:
        row = deployments.find(session, id)
        if row.environment_id is None:
            raise ConflictError(
                "the deployment is of no environment", code="deployment_without_environment"
            )
        found = environments.find_version(session, str(row.environment_id), version)
    if found.source is None or not text(row.record.get("image")):
        raise ConflictError(
            "an environment needs a source, and its deployment an image, to be served on a cluster",
            code="deployment_incomplete",
            hint="Pass image= with rlmesh and what the source needs in it",
        )
    served = manifests.Served(
        found.environment.name, found.version, found.source, found.kwargs, found.contract_digest
    )
    rendered = manifests.render(row.record, served)
    if secret:
        with caller.write() as session:
            audit.record(
                session,
                caller,
                action="deployment.secret_shown",
                subject=f"deployment:{row.id}",
                environment_name=found.environment.name,
                data={"version": found.version},
            )
        key = caller.state.keys.environment(found.id).reveal()
        rendered.insert(0, manifests.secret(row.record, served, key))
    return {
        "deployment_id": row.id,
        "manifests": rendered,
        "yaml": manifests.as_yaml(rendered),
        "omitted": [] if secret else ["Secret"],
    }


@router.get("/api/cloud-config")
def get_cloud_config(caller: Caller) -> JsonObject:
    """The words that deployments are described with."""
    with caller.read() as session:
        return {**DEFAULTS, **deployments.cloud_config(session)}


@router.put("/api/cloud-config", responses=documented(422))
def change_cloud_config(body: CloudConfig, caller: Caller) -> JsonObject:
    """Replace the given keys for the organisation; the others stay."""
    with caller.write() as session:
        changed = deployments.change_cloud_config(
            session, {str(name): words for name, words in body.items()}
        )
        audit.record(
            session,
            caller,
            action="cloud_config.changed",
            subject="cloud_config",
            data={"keys": sorted(body)},
        )
    return {**DEFAULTS, **changed}


@router.get("/api/azure/clusters", responses=documented(409, 422))
def list_azure_clusters(
    subscription_id: Subscription, caller: Caller, resource_group: Group = ""
) -> list[JsonObject]:
    """Refused: this server is connected to no cloud."""
    _refuse("list clusters")


@router.delete("/api/azure/clusters/{name}", responses=documented(409, 422))
def delete_azure_cluster(
    name: str, subscription_id: Subscription, resource_group: Group, caller: Caller
) -> JsonObject:
    """Refused: this server is connected to no cloud."""
    _refuse(f"delete cluster {name!r}")


def _refuse(what: str) -> NoReturn:
    raise ConflictError(
        f"this server is connected to no Azure account and cannot {what}",
        code="cloud_not_connected",
        hint="Use the provider's own tools",
    )

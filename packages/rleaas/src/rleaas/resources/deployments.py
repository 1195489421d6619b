"""Deployments: record, look up, probe."""

from __future__ import annotations

from builtins import list as list_
from collections.abc import Mapping, Sequence

from rleaas._binding import D, call
from rleaas._flow import request as build
from rleaas._flow.decode import read, read_list
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Request
from rleaas.models import Shape
from rleaas.models.deployment import (
    Availability,
    Deployment,
    DeploymentLogs,
    Manifests,
    ModelProbe,
)
from rleaas.models.environment_parts import PublicUrls
from rleaas.resources import deployment_routes as routes
from rleaas.resources import environment_parts as parts
from rleaas.resources.clouds import Clouds
from rleaas.resources.deployment_routes import DeploymentRef
from rleaas.resources.environment_routes import EnvironmentRef, reference


class DeploymentsClient(Clouds[D]):
    """Records of where environments run. The platform's own server applies nothing to clusters."""

    @call
    def create(
        self,
        provider: str,
        cluster_name: str = "",
        env_name: EnvironmentRef | None = None,
        region: str | None = None,
        subscription_id: str | None = None,
        resource_group: str | None = None,
        account_id: str | None = None,
        project_id: str | None = None,
        cluster_label: str | None = None,
        node_pool_name: str | None = None,
        vm_size: str | None = None,
        instance_type: str | None = None,
        machine_type: str | None = None,
        node_count: int | None = None,
        node_group_name: str | None = None,
        network_plugin: str | None = None,
        k8s_version: str | None = None,
        namespace: str | None = None,
        cpu: str | None = None,
        gpu: str | int | None = None,
        memory: str | None = None,
        scaling: str | None = None,
        min_replicas: int | None = None,
        max_replicas: int | None = None,
        k8s_labels: Mapping[str, str] | None = None,
        repo_url: str | None = None,
        repo_branch: str | None = None,
        repo_provider: str | None = None,
        repo_auth_type: str | None = None,
        repo_username: str | None = None,
        repo_token: str | None = None,
        *,
        image: str | None = None,
    ) -> Flow[Deployment]:
        """Record what is to run where, and return the record.

        What is left out is taken from the environment's infrastructure; a cluster that has no name
        is named after the environment. The tokens are stored encrypted and never told.

        Args:
            provider: `Azure`, `AWS`, `GCP` or `On-Premise`; empty: that of the infrastructure.
            cluster_name: the cluster.
            env_name: the environment, by name, id or handle.
            region: where the cluster is.
            subscription_id: of Azure.
            resource_group: of Azure.
            account_id: of AWS.
            project_id: of GCP.
            cluster_label: what people call the cluster.
            node_pool_name: of Azure and GCP.
            vm_size: of Azure.
            instance_type: of AWS.
            machine_type: of GCP.
            node_count: how many nodes.
            node_group_name: of AWS.
            network_plugin: such as `azure-cni`.
            k8s_version: such as `1.33`.
            namespace: `rl-environments` by default.
            cpu: of each pod, such as `500m`.
            gpu: of each pod.
            memory: of each pod, such as `1Gi`.
            scaling: how it scales.
            min_replicas: the fewest pods.
            max_replicas: the most pods.
            k8s_labels: for every object.
            repo_url: where the code is.
            repo_branch: of the repository.
            repo_provider: of the repository.
            repo_auth_type: of the repository.
            repo_username: of the repository.
            repo_token: of the repository.
            image: the container image that the manifests run.

        Raises:
            InvalidRequestError: the platform refuses a field.
            EnvironmentNotFound: there is no such environment.
        """
        given: dict[str, object | None] = {
            "provider": provider,
            "cluster_name": cluster_name,
            "env_name": None if env_name is None else reference(env_name),
            "region": region,
            "subscription_id": subscription_id,
            "resource_group": resource_group,
            "account_id": account_id,
            "project_id": project_id,
            "cluster_label": cluster_label,
            "node_pool_name": node_pool_name,
            "vm_size": vm_size,
            "instance_type": instance_type,
            "machine_type": machine_type,
            "node_count": node_count,
            "node_group_name": node_group_name,
            "network_plugin": network_plugin,
            "k8s_version": k8s_version,
            "namespace": namespace,
            "cpu": cpu,
            "gpu": gpu,
            "memory": memory,
            "scaling": scaling,
            "min_replicas": min_replicas,
            "max_replicas": max_replicas,
            "k8s_labels": None if k8s_labels is None else dict(k8s_labels),
            "repo_url": repo_url,
            "repo_branch": repo_branch,
            "repo_provider": repo_provider,
            "repo_auth_type": repo_auth_type,
            "repo_username": repo_username,
            "repo_token": repo_token,
            "image": image,
        }
        return (yield from routes.create(given, self._context))

    @call
    def list(self, env_name: EnvironmentRef | None = None) -> Flow[list_[Deployment]]:
        """Return every deployment, or those of one environment, oldest first."""
        name = None if env_name is None else reference(env_name)
        request = build.get("/api/deployments", {"env_name": name})
        reply = yield from ask(request, self._context)
        found, _ = read_list(Deployment, request, reply, "deployments")
        return found

    @call
    def get(self, deployment_id: DeploymentRef) -> Flow[Deployment]:
        """Return one deployment.

        Raises:
            NotFoundError: there is none.
        """
        return (yield from routes.get(Deployment, deployment_id, "", self._context))

    @call
    def delete(self, deployment_id: DeploymentRef) -> Flow[Shape]:
        """Forget a deployment; what runs on a cluster is not touched."""
        request = Request(
            method="DELETE",
            path=routes.path_of(deployment_id),
            kind=routes.KIND,
            ref=routes.text_of(deployment_id),
        )
        return read(Shape, request, (yield from ask(request, self._context)))

    @call
    def sync(self, deployment_id: DeploymentRef) -> Flow[Deployment]:
        """Have the platform look at the cluster, where it knows one; return the record."""
        return (yield from routes.post(Deployment, deployment_id, "/sync", {}, self._context))

    @call
    def deploy_app(self, deployment_id: DeploymentRef) -> Flow[Deployment]:
        """Ask for the application to be deployed; its `app_status` says what came of it."""
        return (yield from routes.post(Deployment, deployment_id, "/deploy-app", {}, self._context))

    @call
    def set_app_status(
        self, deployment_id: DeploymentRef, status: str, message: str = ""
    ) -> Flow[Deployment]:
        """Record how the application is.

        Raises:
            InvalidRequestError: the word is not one of a deployment's.
        """
        body = {"status": status, "message": message}
        return (
            yield from routes.post(
                Deployment, deployment_id, "/set-app-status", body, self._context
            )
        )

    @call
    def stream_logs(
        self, deployment_id: DeploymentRef, cursor: int = 0, wait_seconds: float = 20
    ) -> Flow[DeploymentLogs]:
        """Return the log lines after `cursor`; without any, wait a while for some."""
        query = {"cursor": max(0, cursor), "wait_seconds": min(max(wait_seconds, 1), 30)}
        request = build.get(
            routes.path_of(deployment_id) + "/logs/stream",
            query,
            kind=routes.KIND,
            ref=routes.text_of(deployment_id),
            timeout=self._context.at_least(query["wait_seconds"] + routes.SPARE_SECONDS),
        )
        return read(DeploymentLogs, request, (yield from ask(request, self._context)))

    @call
    def manifests(
        self, deployment_id: DeploymentRef, version: int | None = None, *, secret: bool = False
    ) -> Flow[Manifests]:
        """Return the Kubernetes objects that serve the environment, to be applied by hand.

        Args:
            deployment_id: the deployment.
            version: an older version of the environment instead of the current one.
            secret: with the Secret that tokens are signed with; for admins.

        Raises:
            ConflictError: the environment has no source, or the deployment no image.
            PermissionDeniedError: the Secret is for admins.
        """
        query = {"version": version, "secret": True if secret else None}
        request = build.get(
            routes.path_of(deployment_id) + "/manifests",
            query,
            kind=routes.KIND,
            ref=routes.text_of(deployment_id),
        )
        return read(Manifests, request, (yield from ask(request, self._context)))

    @call
    def get_urls(
        self, deployment_id: DeploymentRef, *, url_type: str | None = None
    ) -> Flow[list_[dict[str, object]]]:
        """Return the URLs of a deployment, or those of one type."""
        record = yield from routes.get(Deployment, deployment_id, "", self._context)
        return _of_type(record.deployment_urls, url_type)

    @call
    def get_primary_url(
        self, deployment_id: DeploymentRef, *, prefer_type: str = "dashboard"
    ) -> Flow[str | None]:
        """Return the first URL of the preferred type, else the first of all, else None."""
        record = yield from routes.get(Deployment, deployment_id, "", self._context)
        urls = [*_of_type(record.deployment_urls, prefer_type), *record.deployment_urls]
        return str(urls[0]["url"]) if urls else None

    @call
    def save_urls(
        self, deployment_id: DeploymentRef, urls: Sequence[Mapping[str, object]]
    ) -> Flow[Deployment]:
        """Replace the URLs of a deployment; each has `label`, `url` and `type`."""
        body = {"urls": [dict(url) for url in urls]}
        request = Request(
            method="PUT",
            path=routes.path_of(deployment_id) + "/urls",
            json=body,
            kind=routes.KIND,
            ref=routes.text_of(deployment_id),
        )
        return read(Deployment, request, (yield from ask(request, self._context)))

    @call
    def list_public_urls(self, env_name: EnvironmentRef) -> Flow[PublicUrls]:
        """Return the URLs of all deployments of an environment."""
        path = "/api/environments/{}/public-urls"
        return (yield from parts.load(PublicUrls, path, reference(env_name), self._context))

    @call
    def availability_test(
        self,
        deployment_id: DeploymentRef,
        timeout_seconds: float | None = None,
        interval_seconds: float | None = None,
    ) -> Flow[Availability]:
        """Have the platform ask each URL until all answer or the time is over."""
        given = {"timeout_seconds": timeout_seconds, "interval_seconds": interval_seconds}
        body = {name: value for name, value in given.items() if value is not None}
        return (
            yield from routes.post(
                Availability, deployment_id, "/availability-test", body, self._context
            )
        )

    @call
    def probe_model(
        self,
        deployment_id: DeploymentRef,
        model_url: str | None = None,
        model: str | None = None,
        prompt: str | None = None,
        stream: bool = False,
    ) -> Flow[ModelProbe]:
        """Have the platform ask a model one question; a model that fails is told, not raised."""
        given = {"model_url": model_url, "model": model, "prompt": prompt, "stream": stream or None}
        body = {name: value for name, value in given.items() if value is not None}
        return (
            yield from routes.post(ModelProbe, deployment_id, "/probe-model", body, self._context)
        )

    @call
    def configure_model(
        self,
        deployment_id: DeploymentRef,
        model_id: str,
        hf_token: str = "",
        namespace: str = "",
        endpoint_url: str = "",
    ) -> Flow[Deployment]:
        """Register where a model is reached; the token is stored encrypted and never told.

        Raises:
            ConflictError: without `endpoint_url`, at a server that can start no model.
        """
        body = {
            "model_id": model_id,
            "hf_token": hf_token,
            "namespace": namespace,
            "endpoint_url": endpoint_url,
        }
        return (
            yield from routes.post(
                Deployment, deployment_id, "/configure-model", body, self._context
            )
        )


def _of_type(urls: Sequence[dict[str, object]], kind: str | None) -> list_[dict[str, object]]:
    if kind is None:
        return list_(urls)
    return [url for url in urls if str(url.get("type", "")).lower() == kind.lower()]

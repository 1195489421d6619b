"""The words that deployments are described with, and the clusters of a cloud."""

from __future__ import annotations

from builtins import list as list_
from collections.abc import Mapping

from rleaas._binding import D, Resource, call
from rleaas._flow import request as build
from rleaas._flow.decode import read, read_list
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Request
from rleaas.models import Shape


class Clouds(Resource[D]):
    """The part of the deployments' client that is about clouds."""

    @call
    def get_cloud_config(self) -> Flow[Shape]:
        """Return the words that deployments are described with."""
        request = build.get("/api/cloud-config")
        return read(Shape, request, (yield from ask(request, self._context)))

    @call
    def update_cloud_config(self, patch: Mapping[str, object]) -> Flow[Shape]:
        """Replace the given keys of the cloud configuration; the others stay."""
        request = Request(method="PUT", path="/api/cloud-config", json=dict(patch))
        return read(Shape, request, (yield from ask(request, self._context)))

    @call
    def list_azure_clusters(
        self, subscription_id: str, resource_group: str | None = None
    ) -> Flow[list_[Shape]]:
        """Return the clusters of an Azure subscription.

        Raises:
            ConflictError: the server is connected to no Azure account.
        """
        query = {"subscription_id": subscription_id, "resource_group": resource_group}
        request = build.get("/api/azure/clusters", query)
        reply = yield from ask(request, self._context)
        found, _ = read_list(Shape, request, reply, "clusters")
        return found

    @call
    def delete_azure_cluster(
        self, cluster_name: str, subscription_id: str, resource_group: str
    ) -> Flow[Shape]:
        """Delete a cluster of an Azure subscription.

        Raises:
            ConflictError: the server is connected to no Azure account.
        """
        request = Request(
            method="DELETE",
            path=build.path("/api/azure/clusters/{}", cluster_name, what="cluster name"),
            params=(("subscription_id", subscription_id), ("resource_group", resource_group)),
        )
        return read(Shape, request, (yield from ask(request, self._context)))

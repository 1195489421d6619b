"""Deployments, under the published path of the module."""

from rleaas.resources.deployments import DeploymentsClient

__all__ = ["DeploymentsClient"]

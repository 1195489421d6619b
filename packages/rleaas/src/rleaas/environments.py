"""Environments, under the published path of the module."""

from rleaas.resources.environment_handle import EnvironmentResource
from rleaas.resources.environments import EnvironmentsClient

__all__ = ["EnvironmentResource", "EnvironmentsClient"]

"""Agents, under the published path of the module."""

from rleaas.models.agent import AgentExportFormat as ExportFormat
from rleaas.models.agent import AgentFramework
from rleaas.resources.agent_handle import AgentResource
from rleaas.resources.agents import AgentsClient

__all__ = ["AgentFramework", "AgentResource", "AgentsClient", "ExportFormat"]

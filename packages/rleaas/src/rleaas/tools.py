"""Tools, under the published path of the module."""

from rleaas.resources.tools import ToolsClient

__all__ = ["ToolsClient"]

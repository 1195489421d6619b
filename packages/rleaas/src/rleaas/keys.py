"""API keys, under the published path of the module."""

from rleaas.resources.keys import KeysClient

__all__ = ["KeysClient"]

"""The caller's profile, under the published path of the module."""

from rleaas.resources.keys import ProfileClient

__all__ = ["ProfileClient"]

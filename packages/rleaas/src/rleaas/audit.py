"""The audit log, under the published path of the module."""

from rleaas.resources.audit import AuditLogClient

__all__ = ["AuditLogClient"]

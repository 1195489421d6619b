"""The audit log, under the published path of the module."""

from rleaas.resources.audit import AuditLogClient
from rleaas.resources.report_signature import verify_report

__all__ = ["AuditLogClient", "verify_report"]

"""The tables: what the server remembers between two starts."""

from rleaas.server.store.tables.access import (
    ApiKeyRow,
    MemberRow,
    OrganisationRow,
    UserRow,
)
from rleaas.server.store.tables.base import (
    FIRST_ORGANISATION,
    Base,
    JsonList,
    JsonObject,
    Owned,
    UtcTime,
)
from rleaas.server.store.tables.catalogue import (
    AgentRecordRow,
    AgentRow,
    AgentVersionRow,
    DataAssetRow,
    DataAttachmentRow,
    RepositoryRow,
    ScenarioRow,
    SuiteRow,
    ToolRow,
    VerifierAttachmentRow,
    VerifierAuditRow,
    VerifierRow,
    VerifierVersionRow,
)
from rleaas.server.store.tables.environments import (
    EnvironmentRow,
    VersionRow,
)
from rleaas.server.store.tables.jobs import (
    CheckpointRow,
    ExportRow,
    JobRow,
)
from rleaas.server.store.tables.operations import (
    DeploymentRow,
    IdempotencyRow,
    LeaseRow,
    SettingRow,
)
from rleaas.server.store.tables.records import (
    AuditRow,
    DeliveryRow,
    EventRow,
    GovernanceRow,
    KpiRow,
    RolloutRow,
    WebhookRow,
)

__all__ = [
    "FIRST_ORGANISATION",
    "AgentRecordRow",
    "AgentRow",
    "AgentVersionRow",
    "ApiKeyRow",
    "AuditRow",
    "Base",
    "CheckpointRow",
    "DataAssetRow",
    "DataAttachmentRow",
    "DeliveryRow",
    "DeploymentRow",
    "EnvironmentRow",
    "EventRow",
    "ExportRow",
    "GovernanceRow",
    "IdempotencyRow",
    "JobRow",
    "JsonList",
    "JsonObject",
    "KpiRow",
    "LeaseRow",
    "MemberRow",
    "OrganisationRow",
    "Owned",
    "RepositoryRow",
    "RolloutRow",
    "ScenarioRow",
    "SettingRow",
    "SuiteRow",
    "ToolRow",
    "UserRow",
    "UtcTime",
    "VerifierAttachmentRow",
    "VerifierAuditRow",
    "VerifierRow",
    "VerifierVersionRow",
    "VersionRow",
    "WebhookRow",
]

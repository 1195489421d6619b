"""The shapes that client and server exchange. This list is what is public."""

from rleaas.models.access import (
    ApiKey,
    Identity,
    Member,
    NewApiKey,
    NewOrganisation,
    Organisation,
    Profile,
    RevokedKey,
    SsoStatus,
)
from rleaas.models.agent import (
    Agent,
    AgentBinding,
    AgentCheck,
    AgentExport,
    AgentExportFormat,
    AgentFramework,
    AgentValidation,
    AgentVersion,
    DryRun,
)
from rleaas.models.audit import AuditEvent, ChainState, Governance
from rleaas.models.checkpoint import Checkpoint
from rleaas.models.environment import (
    ENVIRONMENT_FAILURES,
    READY,
    EndpointGrant,
    Environment,
    EnvironmentVersion,
)
from rleaas.models.environment_parts import (
    DataAsset,
    DataAttachment,
    EnvironmentAnalysis,
    PublicUrls,
    RepositoryCheck,
    RepositoryConfig,
    RiskReport,
)
from rleaas.models.evaluation import (
    EVALUATION_FAILURES,
    FINISHED_EVALUATION,
    EpisodeRecord,
    Evaluation,
    EvaluationReport,
)
from rleaas.models.event import Event, EventPage
from rleaas.models.platform import PlatformInfo
from rleaas.models.scenario import (
    Cloned,
    Scenario,
    ScenarioSuite,
    SuitePurpose,
)
from rleaas.models.shape import JsonObject, Moment, Shape, Status
from rleaas.models.tool import (
    Tool,
    ToolsPut,
)
from rleaas.models.training import (
    FINISHED_TRAINING,
    LogPage,
    MetricPage,
    MetricPoint,
    TrainingJob,
    TrainingResults,
)
from rleaas.models.verifier import (
    AttachedVerifier,
    FailurePolicy,
    Verifier,
    VerifierResult,
    VerifierType,
    VerifierVersion,
)
from rleaas.models.webhook import Delivery, Webhook

__all__ = [
    "ENVIRONMENT_FAILURES",
    "EVALUATION_FAILURES",
    "FINISHED_EVALUATION",
    "FINISHED_TRAINING",
    "READY",
    "Agent",
    "AgentBinding",
    "AgentCheck",
    "AgentExport",
    "AgentExportFormat",
    "AgentFramework",
    "AgentValidation",
    "AgentVersion",
    "ApiKey",
    "AttachedVerifier",
    "AuditEvent",
    "ChainState",
    "Checkpoint",
    "Cloned",
    "DataAsset",
    "DataAttachment",
    "Delivery",
    "DryRun",
    "EndpointGrant",
    "Environment",
    "EnvironmentAnalysis",
    "EnvironmentVersion",
    "EpisodeRecord",
    "Evaluation",
    "EvaluationReport",
    "Event",
    "EventPage",
    "FailurePolicy",
    "Governance",
    "Identity",
    "JsonObject",
    "LogPage",
    "Member",
    "MetricPage",
    "MetricPoint",
    "Moment",
    "NewApiKey",
    "NewOrganisation",
    "Organisation",
    "PlatformInfo",
    "Profile",
    "PublicUrls",
    "RepositoryCheck",
    "RepositoryConfig",
    "RevokedKey",
    "RiskReport",
    "Scenario",
    "ScenarioSuite",
    "Shape",
    "SsoStatus",
    "Status",
    "SuitePurpose",
    "Tool",
    "ToolsPut",
    "TrainingJob",
    "TrainingResults",
    "Verifier",
    "VerifierResult",
    "VerifierType",
    "VerifierVersion",
    "Webhook",
]

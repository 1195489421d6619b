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
from rleaas.models.audit import AuditEvent, ChainState
from rleaas.models.checkpoint import Checkpoint
from rleaas.models.environment import (
    ENVIRONMENT_FAILURES,
    READY,
    EndpointGrant,
    Environment,
    EnvironmentVersion,
)
from rleaas.models.evaluation import (
    EVALUATION_FAILURES,
    FINISHED_EVALUATION,
    EpisodeRecord,
    Evaluation,
    EvaluationReport,
)
from rleaas.models.platform import PlatformInfo
from rleaas.models.shape import JsonObject, Moment, Shape, Status
from rleaas.models.training import (
    FINISHED_TRAINING,
    LogPage,
    MetricPage,
    MetricPoint,
    TrainingJob,
    TrainingResults,
)

__all__ = [
    "ENVIRONMENT_FAILURES",
    "EVALUATION_FAILURES",
    "FINISHED_EVALUATION",
    "FINISHED_TRAINING",
    "READY",
    "ApiKey",
    "AuditEvent",
    "ChainState",
    "Checkpoint",
    "EndpointGrant",
    "Environment",
    "EnvironmentVersion",
    "EpisodeRecord",
    "Evaluation",
    "EvaluationReport",
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
    "RevokedKey",
    "Shape",
    "SsoStatus",
    "Status",
    "TrainingJob",
    "TrainingResults",
]

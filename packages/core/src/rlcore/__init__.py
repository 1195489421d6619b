"""What the control plane and the data plane share. This list is what is public."""

from importlib import import_module
from typing import TYPE_CHECKING

from rlcore.backoff import Backoff
from rlcore.boundary import boundary
from rlcore.credentials import ANONYMOUS, Anonymous, ApiKey, Bearer, Credential
from rlcore.deadline import Deadline
from rlcore.digest import contract_differences, contract_digest
from rlcore.endpoint import (
    Endpoint,
    EnvironmentIdentity,
    EnvironmentURI,
    check_environment_name,
)
from rlcore.errors import (
    AddressError,
    ConfigurationError,
    Error,
    ExpressionError,
    MissingDependencyError,
    TokenRejected,
)
from rlcore.mesh_errors import (
    AccessDenied,
    BindError,
    BundleError,
    CallTimeout,
    EnvironmentException,
    IdentityError,
    IncompatibleError,
    InvalidActionError,
    InvalidObservationError,
    InvalidValueError,
    JournalError,
    ModelException,
    ProtocolException,
    RecordingError,
    RLMeshException,
    RunFailed,
    RunInterrupted,
    ServerUnreachable,
    SessionBusy,
    SessionClosed,
    TlsError,
    TransportError,
    UnsupportedError,
)
from rlcore.not_found_errors import (
    AgentNotFound,
    CheckpointNotFound,
    EnvironmentNotFound,
    EvaluationNotFound,
    NotFoundError,
    ScenarioNotFound,
    SuiteNotFound,
    ToolNotFound,
    TrainingJobNotFound,
    VerifierNotFound,
)
from rlcore.outcome_errors import (
    CheckpointCorrupted,
    EnvironmentFailed,
    EvaluationCancelled,
    EvaluationFailed,
    GraderError,
    ModelFailed,
    ReportNotVerified,
    RolloutsUnreadable,
    TrainingJobCancelled,
    TrainingJobFailed,
)
from rlcore.platform_errors import (
    AuthenticationError,
    ConflictError,
    InvalidRequestError,
    PermissionDeniedError,
    PlatformTimeout,
    PlatformUnreachable,
    QuotaExceededError,
    RateLimitError,
    RLEaaSAPIError,
    RLEaaSError,
    ServerFailure,
    UnexpectedReply,
    UnsupportedRequestError,
)
from rlcore.resolvers import Resolver, register, resolve, schemes, unregister
from rlcore.secret import Secret
from rlcore.status import error_from_http, http_from_error
from rlcore.tokens import Claims, mint_token, verify_token
from rlcore.wire_status import (
    env_error_code_for,
    error_from_env_code,
    error_from_grpc,
    grpc_code_for,
)

if TYPE_CHECKING:
    from rlcore.settings import ClientSettings, resolve_client_settings

__all__ = [
    "ANONYMOUS",
    "AccessDenied",
    "AddressError",
    "AgentNotFound",
    "Anonymous",
    "ApiKey",
    "AuthenticationError",
    "Backoff",
    "Bearer",
    "BindError",
    "BundleError",
    "CallTimeout",
    "CheckpointCorrupted",
    "CheckpointNotFound",
    "Claims",
    "ClientSettings",
    "ConfigurationError",
    "ConflictError",
    "Credential",
    "Deadline",
    "Endpoint",
    "EnvironmentException",
    "EnvironmentFailed",
    "EnvironmentIdentity",
    "EnvironmentNotFound",
    "EnvironmentURI",
    "Error",
    "EvaluationCancelled",
    "EvaluationFailed",
    "EvaluationNotFound",
    "ExpressionError",
    "GraderError",
    "IdentityError",
    "IncompatibleError",
    "InvalidActionError",
    "InvalidObservationError",
    "InvalidRequestError",
    "InvalidValueError",
    "JournalError",
    "MissingDependencyError",
    "ModelException",
    "ModelFailed",
    "NotFoundError",
    "PermissionDeniedError",
    "PlatformTimeout",
    "PlatformUnreachable",
    "ProtocolException",
    "QuotaExceededError",
    "RLEaaSAPIError",
    "RLEaaSError",
    "RLMeshException",
    "RateLimitError",
    "RecordingError",
    "ReportNotVerified",
    "Resolver",
    "RolloutsUnreadable",
    "RunFailed",
    "RunInterrupted",
    "ScenarioNotFound",
    "Secret",
    "ServerFailure",
    "ServerUnreachable",
    "SessionBusy",
    "SessionClosed",
    "SuiteNotFound",
    "TlsError",
    "TokenRejected",
    "ToolNotFound",
    "TrainingJobCancelled",
    "TrainingJobFailed",
    "TrainingJobNotFound",
    "TransportError",
    "UnexpectedReply",
    "UnsupportedError",
    "UnsupportedRequestError",
    "VerifierNotFound",
    "boundary",
    "check_environment_name",
    "contract_differences",
    "contract_digest",
    "env_error_code_for",
    "error_from_env_code",
    "error_from_grpc",
    "error_from_http",
    "grpc_code_for",
    "http_from_error",
    "mint_token",
    "register",
    "resolve",
    "resolve_client_settings",
    "schemes",
    "unregister",
    "verify_token",
]

_SETTINGS = ("ClientSettings", "resolve_client_settings")


if not TYPE_CHECKING:
    # Only clients of the control plane have settings; servers and clients of environments start
    # sooner without what reads them.
    def __getattr__(name: str) -> object:
        if name not in _SETTINGS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module("rlcore.settings"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_SETTINGS})

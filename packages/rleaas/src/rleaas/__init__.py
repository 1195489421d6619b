"""The control plane: a typed client, and the real local server behind it.

This list is what is public. Names are imported when they are first used, so that `import rleaas`
loads no HTTP library, no web framework and no training library. `Blocking` and `Awaiting` are for
annotations: a handle of `Client` is an `EnvironmentResource[Blocking]`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlcore import (
        AgentNotFound,
        AuthenticationError,
        CheckpointCorrupted,
        CheckpointNotFound,
        ConfigurationError,
        ConflictError,
        EnvironmentFailed,
        EnvironmentIdentity,
        EnvironmentNotFound,
        Error,
        EvaluationCancelled,
        EvaluationFailed,
        EvaluationNotFound,
        InvalidRequestError,
        MissingDependencyError,
        NotFoundError,
        PermissionDeniedError,
        PlatformTimeout,
        PlatformUnreachable,
        QuotaExceededError,
        RateLimitError,
        RLEaaSAPIError,
        RLEaaSError,
        ScenarioNotFound,
        Secret,
        ServerFailure,
        SuiteNotFound,
        ToolNotFound,
        TrainingJobCancelled,
        TrainingJobFailed,
        TrainingJobNotFound,
        UnexpectedReply,
        UnsupportedRequestError,
        VerifierNotFound,
    )

    from rleaas._drivers.awaiting import Awaiting
    from rleaas._drivers.blocking import Blocking
    from rleaas.client import AsyncClient, Client
    from rleaas.models import (
        Agent,
        AgentBinding,
        AgentExport,
        AgentValidation,
        AgentVersion,
        AttachedVerifier,
        Checkpoint,
        DryRun,
        EndpointGrant,
        Environment,
        EnvironmentVersion,
        EpisodeRecord,
        Evaluation,
        EvaluationReport,
        FailurePolicy,
        LogPage,
        MetricPoint,
        PlatformInfo,
        Scenario,
        ScenarioSuite,
        Tool,
        TrainingJob,
        TrainingResults,
        Verifier,
        VerifierResult,
        VerifierVersion,
    )
    from rleaas.resources.agent_handle import AgentResource
    from rleaas.resources.agents import AgentsClient
    from rleaas.resources.checkpoints import CheckpointResource, CheckpointsClient
    from rleaas.resources.environment_handle import EnvironmentResource
    from rleaas.resources.environments import EnvironmentsClient
    from rleaas.resources.evaluation_handle import EvaluationJobResource
    from rleaas.resources.evaluations import EvaluationClient
    from rleaas.resources.scenarios import ScenarioClient
    from rleaas.resources.suites import ScenarioSuiteClient
    from rleaas.resources.tools import ToolsClient
    from rleaas.resources.training import TrainingClient
    from rleaas.resources.training_handle import TrainingJobResource
    from rleaas.resources.verifier_handle import VerifierResource
    from rleaas.resources.verifiers import VerifierClient

    __version__: str

__all__ = [
    "Agent",
    "AgentBinding",
    "AgentExport",
    "AgentNotFound",
    "AgentResource",
    "AgentValidation",
    "AgentVersion",
    "AgentsClient",
    "AsyncClient",
    "AttachedVerifier",
    "AuthenticationError",
    "Awaiting",
    "Blocking",
    "Checkpoint",
    "CheckpointCorrupted",
    "CheckpointNotFound",
    "CheckpointResource",
    "CheckpointsClient",
    "Client",
    "ConfigurationError",
    "ConflictError",
    "DryRun",
    "EndpointGrant",
    "Environment",
    "EnvironmentFailed",
    "EnvironmentIdentity",
    "EnvironmentNotFound",
    "EnvironmentResource",
    "EnvironmentVersion",
    "EnvironmentsClient",
    "EpisodeRecord",
    "Error",
    "Evaluation",
    "EvaluationCancelled",
    "EvaluationClient",
    "EvaluationFailed",
    "EvaluationJobResource",
    "EvaluationNotFound",
    "EvaluationReport",
    "FailurePolicy",
    "InvalidRequestError",
    "LogPage",
    "MetricPoint",
    "MissingDependencyError",
    "NotFoundError",
    "PermissionDeniedError",
    "PlatformInfo",
    "PlatformTimeout",
    "PlatformUnreachable",
    "QuotaExceededError",
    "RLEaaSAPIError",
    "RLEaaSError",
    "RateLimitError",
    "Scenario",
    "ScenarioClient",
    "ScenarioNotFound",
    "ScenarioSuite",
    "ScenarioSuiteClient",
    "Secret",
    "ServerFailure",
    "SuiteNotFound",
    "Tool",
    "ToolNotFound",
    "ToolsClient",
    "TrainingClient",
    "TrainingJob",
    "TrainingJobCancelled",
    "TrainingJobFailed",
    "TrainingJobNotFound",
    "TrainingJobResource",
    "TrainingResults",
    "UnexpectedReply",
    "UnsupportedRequestError",
    "Verifier",
    "VerifierClient",
    "VerifierNotFound",
    "VerifierResource",
    "VerifierResult",
    "VerifierVersion",
    "__version__",
]

_HOMES = {
    "Agent": "rleaas.models",
    "AgentBinding": "rleaas.models",
    "AgentExport": "rleaas.models",
    "AgentValidation": "rleaas.models",
    "AgentVersion": "rleaas.models",
    "AttachedVerifier": "rleaas.models",
    "DryRun": "rleaas.models",
    "FailurePolicy": "rleaas.models",
    "Scenario": "rleaas.models",
    "ScenarioSuite": "rleaas.models",
    "Tool": "rleaas.models",
    "Verifier": "rleaas.models",
    "VerifierResult": "rleaas.models",
    "VerifierVersion": "rleaas.models",
    "AgentsClient": "rleaas.resources.agents",
    "AgentResource": "rleaas.resources.agent_handle",
    "ScenarioClient": "rleaas.resources.scenarios",
    "ScenarioSuiteClient": "rleaas.resources.suites",
    "ToolsClient": "rleaas.resources.tools",
    "VerifierClient": "rleaas.resources.verifiers",
    "VerifierResource": "rleaas.resources.verifier_handle",
    "Awaiting": "rleaas._drivers.awaiting",
    "Blocking": "rleaas._drivers.blocking",
    "AsyncClient": "rleaas.client",
    "Client": "rleaas.client",
    "CheckpointResource": "rleaas.resources.checkpoints",
    "CheckpointsClient": "rleaas.resources.checkpoints",
    "EnvironmentResource": "rleaas.resources.environment_handle",
    "EnvironmentsClient": "rleaas.resources.environments",
    "EvaluationClient": "rleaas.resources.evaluations",
    "EvaluationJobResource": "rleaas.resources.evaluation_handle",
    "TrainingClient": "rleaas.resources.training",
    "TrainingJobResource": "rleaas.resources.training_handle",
    "Checkpoint": "rleaas.models",
    "EndpointGrant": "rleaas.models",
    "Environment": "rleaas.models",
    "EnvironmentVersion": "rleaas.models",
    "EpisodeRecord": "rleaas.models",
    "Evaluation": "rleaas.models",
    "EvaluationReport": "rleaas.models",
    "LogPage": "rleaas.models",
    "MetricPoint": "rleaas.models",
    "PlatformInfo": "rleaas.models",
    "TrainingJob": "rleaas.models",
    "TrainingResults": "rleaas.models",
}


if not TYPE_CHECKING:  # a checker would take every name for one that is there

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name == "__version__":
            from importlib.metadata import version

            value: object = version("rleaas")
        else:
            from importlib import import_module

            value = getattr(import_module(_HOMES.get(name, "rlcore")), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

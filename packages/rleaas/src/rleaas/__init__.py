"""The control plane: a typed client, and the real local server behind it.

This list is what is public. Names are imported when they are first used, so that `import rleaas`
loads no HTTP library, no web framework and no training library. `Blocking` and `Awaiting` are for
annotations: a handle of `Client` is an `EnvironmentResource[Blocking]`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlcore import (
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
        Secret,
        ServerFailure,
        TrainingJobCancelled,
        TrainingJobFailed,
        TrainingJobNotFound,
        UnexpectedReply,
        VerifierNotFound,
    )

    from rleaas._drivers.awaiting import Awaiting
    from rleaas._drivers.blocking import Blocking
    from rleaas.client import AsyncClient, Client
    from rleaas.models import (
        Checkpoint,
        EndpointGrant,
        Environment,
        EnvironmentVersion,
        EpisodeRecord,
        Evaluation,
        EvaluationReport,
        LogPage,
        MetricPoint,
        PlatformInfo,
        TrainingJob,
        TrainingResults,
    )
    from rleaas.resources.checkpoints import CheckpointResource, CheckpointsClient
    from rleaas.resources.environment_handle import EnvironmentResource
    from rleaas.resources.environments import EnvironmentsClient
    from rleaas.resources.evaluation_handle import EvaluationJobResource
    from rleaas.resources.evaluations import EvaluationClient
    from rleaas.resources.training import TrainingClient
    from rleaas.resources.training_handle import TrainingJobResource

    __version__: str

__all__ = [
    "AsyncClient",
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
    "Secret",
    "ServerFailure",
    "TrainingClient",
    "TrainingJob",
    "TrainingJobCancelled",
    "TrainingJobFailed",
    "TrainingJobNotFound",
    "TrainingJobResource",
    "TrainingResults",
    "UnexpectedReply",
    "VerifierNotFound",
    "__version__",
]

_HOMES = {
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

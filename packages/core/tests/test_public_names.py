import ast
import subprocess
import sys
from pathlib import Path

import rlcore

SOURCE = Path(rlcore.__file__).parent


PUBLIC = [
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


def test_the_public_names_are_exactly_these() -> None:
    assert sorted(rlcore.__all__) == PUBLIC
    assert all(hasattr(rlcore, name) for name in rlcore.__all__)


def test_rlcore_imports_the_standard_library_only() -> None:
    foreign: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                foreign.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                foreign.add((node.module or "").partition(".")[0])

    assert foreign - sys.stdlib_module_names == {"rlcore"}


def test_importing_rlcore_loads_nothing_that_only_some_callers_need() -> None:
    code = "import sys, rlcore; print(*sorted(sys.modules))"

    loaded = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(SOURCE.parent)!r}); {code}",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()

    assert "rlcore" in loaded
    assert not {
        "asyncio",
        "importlib.metadata",
        "random",
        "logging",
        "socket",
        "tomllib",
        "pathlib",
    } & set(loaded)


def test_the_names_that_are_loaded_on_first_use_are_listed() -> None:
    assert {"ClientSettings", "resolve_client_settings"} <= set(dir(rlcore))

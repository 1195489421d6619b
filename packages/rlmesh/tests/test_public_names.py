import subprocess
import sys

import pytest
import rlmesh

PUBLIC = [
    "DESCRIBE_METADATA_KEY",
    "DESCRIBE_SCHEMA_VERSION",
    "ENV_RESET_OPTIONS_KEY",
    "NO_ADAPTER",
    "RANDOM_SAMPLE",
    "AccessDenied",
    "AddressError",
    "BindError",
    "BuildInfo",
    "BundleError",
    "CallTimeout",
    "ClientTls",
    "Comparison",
    "ConfigurationError",
    "Coverage",
    "Disagreement",
    "Endpoint",
    "EnvContract",
    "EnvFactory",
    "EnvServer",
    "EnvironmentException",
    "EnvironmentIdentity",
    "EpisodeResult",
    "Error",
    "IdentityError",
    "IncompatibleError",
    "Interval",
    "InvalidActionError",
    "InvalidMetadataError",
    "InvalidObservationError",
    "InvalidValueError",
    "JournalError",
    "MissingDependencyError",
    "Model",
    "ModelException",
    "ModelServer",
    "Outcome",
    "Param",
    "ParamSpec",
    "PredictContext",
    "PredictionError",
    "ProtocolException",
    "RLMeshException",
    "RecordingError",
    "RemoteEnv",
    "RemoteModel",
    "RemoteVectorEnv",
    "RunContext",
    "RunFailed",
    "RunHooks",
    "RunInterrupted",
    "RunProgress",
    "RunResult",
    "ServeOptions",
    "ServerTls",
    "ServerUnreachable",
    "Session",
    "SessionBusy",
    "SessionClosed",
    "StepEvent",
    "Summary",
    "TelemetryRow",
    "Tensor",
    "TlsError",
    "TransportError",
    "UnsupportedError",
    "Variant",
    "Vector",
    "Verdict",
    "View",
    "WorkflowEditionWarning",
    "arun",
    "bootstrap_mean_interval",
    "build_info",
    "compare",
    "current_workflow_edition",
    "describe",
    "describe_json",
    "load_model",
    "params",
    "predict_seed",
    "run",
    "sanitize_metadata",
    "session",
    "spaces",
    "specs",
    "trial_index",
    "types",
    "wilson_interval",
]


def test_the_public_names_are_these() -> None:
    assert rlmesh.__all__ == PUBLIC


@pytest.mark.parametrize("name", [*PUBLIC, "jax", "numpy", "recorder", "torch", "__version__"])
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(rlmesh, name) is not None
    assert name in dir(rlmesh)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'rlmesh' has no attribute 'Modle'"):
        _ = rlmesh.Modle  # type: ignore[attr-defined]  # the point of the test


def test_functions_are_not_shadowed_by_modules_of_their_name() -> None:
    code = "import rlmesh, rlmesh.numpy, rlmesh.serve, rlmesh.runs.session, rlmesh.runs.run\n"
    code += "assert callable(rlmesh.run) and callable(rlmesh.session)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_importing_rlmesh_loads_nothing_heavy() -> None:
    code = "import sys, rlmesh; print(*sorted({name.partition('.')[0] for name in sys.modules}))"

    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=30
    )

    loaded = set(done.stdout.split())
    assert "rlmesh" in loaded
    assert loaded.isdisjoint({"grpc", "google", "gymnasium", "jax", "numpy", "torch", "rleaas"})

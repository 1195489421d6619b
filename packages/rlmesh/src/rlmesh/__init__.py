"""rlmesh: serve any Gymnasium-style environment, drive it from anywhere, evaluate models on it."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlcore import (
        AccessDenied,
        AddressError,
        BindError,
        BundleError,
        CallTimeout,
        ConfigurationError,
        Endpoint,
        EnvironmentException,
        EnvironmentIdentity,
        Error,
        IdentityError,
        IncompatibleError,
        InvalidActionError,
        InvalidObservationError,
        InvalidValueError,
        JournalError,
        MissingDependencyError,
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

    from rlmesh import jax as jax
    from rlmesh import numpy as numpy
    from rlmesh import params, spaces, specs, types
    from rlmesh import recorder as recorder
    from rlmesh import torch as torch
    from rlmesh._describe import describe, describe_json
    from rlmesh.authoring.factory import EnvFactory
    from rlmesh.authoring.keys import DESCRIBE_METADATA_KEY, DESCRIBE_SCHEMA_VERSION
    from rlmesh.authoring.variants import Variant
    from rlmesh.build import BuildInfo, build_info, current_workflow_edition
    from rlmesh.client.remote_env import RemoteEnv
    from rlmesh.client.remote_model import RemoteModel
    from rlmesh.client.vector_env import RemoteVectorEnv
    from rlmesh.codec.metadata import InvalidMetadataError, sanitize_metadata
    from rlmesh.models.answers import PredictionError
    from rlmesh.models.context import PredictContext
    from rlmesh.models.loading import load_model
    from rlmesh.models.model import Model
    from rlmesh.models.seeds import ENV_RESET_OPTIONS_KEY, predict_seed, trial_index
    from rlmesh.models.sentinels import NO_ADAPTER, RANDOM_SAMPLE
    from rlmesh.params import Param, ParamSpec, Vector
    from rlmesh.runs.arun import arun
    from rlmesh.runs.compare import Comparison, Verdict, compare
    from rlmesh.runs.comparison import Disagreement
    from rlmesh.runs.hooks import RunContext, RunHooks, StepEvent
    from rlmesh.runs.outcomes import Outcome
    from rlmesh.runs.progress import RunProgress
    from rlmesh.runs.results import Coverage, EpisodeResult, RunResult
    from rlmesh.runs.run import run
    from rlmesh.runs.session import Session, session
    from rlmesh.runs.statistics import Interval, bootstrap_mean_interval, wilson_interval
    from rlmesh.runs.summary import Summary
    from rlmesh.runs.telemetry import TelemetryRow
    from rlmesh.server.env_server import EnvServer
    from rlmesh.server.model_server import ModelServer
    from rlmesh.server.options import ServeOptions
    from rlmesh.specs import EnvContract
    from rlmesh.transport.tls import ClientTls, ServerTls
    from rlmesh.values import Tensor
    from rlmesh.viewer.view import View
    from rlmesh.workflow import WorkflowEditionWarning

    __version__: str

__all__ = [
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

_HOMES = {
    "AccessDenied": "rlcore",
    "AddressError": "rlcore",
    "BindError": "rlcore",
    "BundleError": "rlcore",
    "CallTimeout": "rlcore",
    "ConfigurationError": "rlcore",
    "Endpoint": "rlcore",
    "EnvironmentException": "rlcore",
    "EnvironmentIdentity": "rlcore",
    "Error": "rlcore",
    "IdentityError": "rlcore",
    "IncompatibleError": "rlcore",
    "InvalidActionError": "rlcore",
    "InvalidMetadataError": "rlmesh.codec.metadata",
    "InvalidObservationError": "rlcore",
    "InvalidValueError": "rlcore",
    "JournalError": "rlcore",
    "MissingDependencyError": "rlcore",
    "ModelException": "rlcore",
    "ProtocolException": "rlcore",
    "RLMeshException": "rlcore",
    "RecordingError": "rlcore",
    "RunFailed": "rlcore",
    "RunInterrupted": "rlcore",
    "ServerUnreachable": "rlcore",
    "SessionBusy": "rlcore",
    "SessionClosed": "rlcore",
    "TlsError": "rlcore",
    "TransportError": "rlcore",
    "UnsupportedError": "rlcore",
    "BuildInfo": "rlmesh.build",
    "build_info": "rlmesh.build",
    "current_workflow_edition": "rlmesh.build",
    "RemoteEnv": "rlmesh.client.remote_env",
    "RemoteModel": "rlmesh.client.remote_model",
    "RemoteVectorEnv": "rlmesh.client.vector_env",
    "sanitize_metadata": "rlmesh.codec.metadata",
    "PredictContext": "rlmesh.models.context",
    "PredictionError": "rlmesh.models.answers",
    "load_model": "rlmesh.models.loading",
    "Model": "rlmesh.models.model",
    "ENV_RESET_OPTIONS_KEY": "rlmesh.models.seeds",
    "predict_seed": "rlmesh.models.seeds",
    "trial_index": "rlmesh.models.seeds",
    "NO_ADAPTER": "rlmesh.models.sentinels",
    "RANDOM_SAMPLE": "rlmesh.models.sentinels",
    "Param": "rlmesh.params",
    "ParamSpec": "rlmesh.params",
    "Vector": "rlmesh.params",
    "Comparison": "rlmesh.runs.compare",
    "Verdict": "rlmesh.runs.compare",
    "compare": "rlmesh.runs.compare",
    "Disagreement": "rlmesh.runs.comparison",
    "RunContext": "rlmesh.runs.hooks",
    "RunHooks": "rlmesh.runs.hooks",
    "StepEvent": "rlmesh.runs.hooks",
    "Outcome": "rlmesh.runs.outcomes",
    "RunProgress": "rlmesh.runs.progress",
    "Coverage": "rlmesh.runs.results",
    "EpisodeResult": "rlmesh.runs.results",
    "RunResult": "rlmesh.runs.results",
    "arun": "rlmesh.runs.arun",
    "run": "rlmesh.runs.run",
    "Session": "rlmesh.runs.session",
    "session": "rlmesh.runs.session",
    "Interval": "rlmesh.runs.statistics",
    "bootstrap_mean_interval": "rlmesh.runs.statistics",
    "wilson_interval": "rlmesh.runs.statistics",
    "Summary": "rlmesh.runs.summary",
    "TelemetryRow": "rlmesh.runs.telemetry",
    "EnvServer": "rlmesh.server.env_server",
    "ModelServer": "rlmesh.server.model_server",
    "ServeOptions": "rlmesh.server.options",
    "EnvContract": "rlmesh.specs",
    "ClientTls": "rlmesh.transport.tls",
    "ServerTls": "rlmesh.transport.tls",
    "Tensor": "rlmesh.values",
    "View": "rlmesh.viewer.view",
    "EnvFactory": "rlmesh.authoring.factory",
    "Variant": "rlmesh.authoring.variants",
    "WorkflowEditionWarning": "rlmesh.workflow",
    "DESCRIBE_METADATA_KEY": "rlmesh.authoring.keys",
    "DESCRIBE_SCHEMA_VERSION": "rlmesh.authoring.keys",
    "describe": "rlmesh._describe",
    "describe_json": "rlmesh._describe",
}
_ROOMS = ("jax", "numpy", "params", "recorder", "spaces", "specs", "torch", "types")


if not TYPE_CHECKING:
    # Importing on first use keeps `import rlmesh` free of gRPC, numpy and gymnasium; type checkers
    # read the imports above instead, and so know every name.
    def __getattr__(name: str) -> object:
        if name in _ROOMS:
            return import_module(f"{__name__}.{name}")
        if name == "__version__":
            value = import_module("rlmesh.build").build_info().version
        elif name in _HOMES:
            value = getattr(import_module(_HOMES[name]), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted([*globals(), *_HOMES, *_ROOMS, "__version__"])

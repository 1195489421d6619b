import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest
import rleaas

HEAVY = {"httpx", "pydantic", "anyio", "fastapi", "sqlalchemy", "rlmesh", "torch", "gymnasium"}

# ruff: noqa: SIM905 - one name a line would be a page
PUBLIC = """
Agent AgentBinding AgentCheck AgentExport AgentExportFormat AgentFramework AgentNotFound
AgentResource AgentValidation AgentVersion AgentsClient ApiKey AsyncClient AttachedVerifier
AuditEvent AuditLogClient AuditReport AuthenticationError Availability Awaiting Blocking ChainState
Checkpoint CheckpointCorrupted CheckpointNotFound CheckpointResource CheckpointsClient Client Cloned
ConfigurationError ConflictError CreateEnvironmentCompute CreateEnvironmentDomain
CreateEnvironmentLicense CreateEnvironmentRequest CreateEnvironmentSdk DOMAIN_TO_VERTICAL DataAsset
DataAssetsClient DataAttachment Delivery Deployment DeploymentLogs DeploymentsClient DryRun
EndpointGrant Environment EnvironmentAnalysis EnvironmentFailed EnvironmentIdentity
EnvironmentNotFound EnvironmentResource EnvironmentVersion EnvironmentsClient EpisodeRecord Error
Evaluation EvaluationCancelled EvaluationClient EvaluationFailed EvaluationJobResource
EvaluationNotFound EvaluationReport Event EventPage FailurePolicy Governance GovernanceConfig
GovernanceConfigRequest GraderError HumanEval HumanEvalReply HumanEvalRequest HumanEvalStepScore
Identity InvalidRequestError KPI KeysClient Kpis LogPage Manifests Member MetricPage MetricPoint
MetricsClient MissingDependencyError ModelProbe NewApiKey NewOrganisation NotFoundError
ObservabilityClient Organisation OrganisationsClient PermissionDeniedError PlatformInfo
PlatformTimeout PlatformUnreachable Profile ProfileClient PublicUrls QueuedJob QuotaExceededError
RLEaaSAPIError RLEaaSError RateLimitError ReportKey ReportNotVerified RepositoryCheck
RepositoryConfig RevokedKey RiskReport Rollout RolloutComparison RolloutStep RolloutsUnreadable
Scenario ScenarioClient ScenarioNotFound ScenarioSuite
ScenarioSuiteClient Secret ServerFailure SsoStatus SuiteNotFound SuitePurpose TimelineEvent Tool
ToolNotFound ToolsClient ToolsPut TrainingCheck TrainingClient TrainingConfig TrainingJob
TrainingJobCancelled
TrainingJobFailed TrainingJobNotFound TrainingJobResource TrainingQueue TrainingRequest
TrainingResponse TrainingResults UnexpectedReply UnsupportedRequestError
UpdateEnvironmentSystemRequest VERTICAL_TO_DOMAIN VerifiedReport Verifier VerifierAudit
VerifierClient
VerifierConfigRequest VerifierListResponse
VerifierNotFound VerifierResource VerifierResult VerifierType VerifierVersion Webhook WebhooksClient
__version__ verifier verify_report
""".split()


def test_what_is_public_is_decided_here() -> None:
    assert sorted(rleaas.__all__) == PUBLIC == sorted(PUBLIC)


def test_every_public_name_is_there() -> None:
    assert [name for name in rleaas.__all__ if getattr(rleaas, name, None) is None] == []
    assert set(rleaas.__all__) <= set(dir(rleaas))


def test_every_public_name_is_what_type_checkers_are_told() -> None:
    told = [
        (node.module or "", name.name)
        for node in ast.walk(ast.parse(Path(rleaas.__file__).read_text()))
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if name.name in rleaas.__all__
    ]

    assert len(told) == len(rleaas.__all__) - 1  # all but __version__
    assert [
        (module, name)
        for module, name in told
        if getattr(rleaas, name) is not getattr(importlib.import_module(module), name)
    ] == []


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        rleaas.nothing  # type: ignore[attr-defined]  # noqa: B018 - on purpose


def loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=50
    )
    return set(ran.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("import rleaas") & HEAVY == set()


def test_a_client_loads_no_server_and_no_data_plane() -> None:
    heavy = HEAVY - {"httpx", "pydantic", "anyio"}

    assert loaded_by("import rleaas; rleaas.Client()") & heavy == set()

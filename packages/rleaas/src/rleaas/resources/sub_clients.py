"""One attribute per resource, as both clients have them."""

from __future__ import annotations

from rleaas._binding import D
from rleaas.resources.agents import AgentsClient
from rleaas.resources.audit import AuditLogClient
from rleaas.resources.checkpoints import CheckpointsClient
from rleaas.resources.data_assets import DataAssetsClient
from rleaas.resources.deployments import DeploymentsClient
from rleaas.resources.environments import EnvironmentsClient
from rleaas.resources.evaluations import EvaluationClient
from rleaas.resources.keys import KeysClient, ProfileClient
from rleaas.resources.metrics import MetricsClient
from rleaas.resources.observability import ObservabilityClient
from rleaas.resources.organisations import OrganisationsClient
from rleaas.resources.platform import Platform
from rleaas.resources.scenarios import ScenarioClient
from rleaas.resources.suites import ScenarioSuiteClient
from rleaas.resources.tools import ToolsClient
from rleaas.resources.training import TrainingClient
from rleaas.resources.verifiers import VerifierClient
from rleaas.resources.webhooks import WebhooksClient


class SubClients(Platform[D]):
    """The resources of a platform under their published names, and each in lower case."""

    def __init__(self, driver: D) -> None:
        super().__init__(driver)
        self.Environment = EnvironmentsClient(driver)
        self.Tools = ToolsClient(driver)
        self.Agent = AgentsClient(driver)
        self.Verifier = VerifierClient(driver)
        self.Scenario = ScenarioClient(driver)
        self.ScenarioSuite = ScenarioSuiteClient(driver)
        self.TrainingJob = TrainingClient(driver)
        self.Evaluation = EvaluationClient(driver)
        self.AuditLog = AuditLogClient(driver)
        self.Metrics = MetricsClient(driver)
        self.Webhook = WebhooksClient(driver)
        self.Checkpoint = CheckpointsClient(driver)
        self.DataAsset = DataAssetsClient(driver)
        self.Deployment = DeploymentsClient(driver)
        self.Observability = ObservabilityClient(driver)
        self.Keys = KeysClient(driver)
        self.Profile = ProfileClient(driver)
        self.Organisation = OrganisationsClient(driver)

    @property
    def environments(self) -> EnvironmentsClient[D]:
        """`Environment` in lower case."""
        return self.Environment

    @property
    def tools(self) -> ToolsClient[D]:
        """`Tools` in lower case."""
        return self.Tools

    @property
    def agents(self) -> AgentsClient[D]:
        """`Agent` in lower case."""
        return self.Agent

    @property
    def verifiers(self) -> VerifierClient[D]:
        """`Verifier` in lower case."""
        return self.Verifier

    @property
    def scenarios(self) -> ScenarioClient[D]:
        """`Scenario` in lower case."""
        return self.Scenario

    @property
    def scenario_suites(self) -> ScenarioSuiteClient[D]:
        """`ScenarioSuite` in lower case."""
        return self.ScenarioSuite

    @property
    def training_jobs(self) -> TrainingClient[D]:
        """`TrainingJob` in lower case."""
        return self.TrainingJob

    @property
    def evaluations(self) -> EvaluationClient[D]:
        """`Evaluation` in lower case."""
        return self.Evaluation

    @property
    def audit_log(self) -> AuditLogClient[D]:
        """`AuditLog` in lower case."""
        return self.AuditLog

    @property
    def metrics(self) -> MetricsClient[D]:
        """`Metrics` in lower case."""
        return self.Metrics

    @property
    def webhooks(self) -> WebhooksClient[D]:
        """`Webhook` in lower case."""
        return self.Webhook

    @property
    def checkpoints(self) -> CheckpointsClient[D]:
        """`Checkpoint` in lower case."""
        return self.Checkpoint

    @property
    def data_assets(self) -> DataAssetsClient[D]:
        """`DataAsset` in lower case."""
        return self.DataAsset

    @property
    def deployments(self) -> DeploymentsClient[D]:
        """`Deployment` in lower case."""
        return self.Deployment

    @property
    def observability(self) -> ObservabilityClient[D]:
        """`Observability` in lower case."""
        return self.Observability

    @property
    def keys(self) -> KeysClient[D]:
        """`Keys` in lower case."""
        return self.Keys

    @property
    def profile(self) -> ProfileClient[D]:
        """`Profile` in lower case."""
        return self.Profile

    @property
    def organisations(self) -> OrganisationsClient[D]:
        """`Organisation` in lower case."""
        return self.Organisation

"""Everything that is published of rleaas 1.1.0 is here, by the same names and parameters."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module, metadata
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
import rleaas
from rleaas import AsyncClient, Client
from rleaas.testing import Answers, reply

LISTS = ("description", "tools", "scenarios", "verifiers", "simulations")
# Ours differs where the published default cannot work or waits needlessly; a caller who says
# what is wanted notices nothing.
OTHER_DEFAULTS = {
    *(("register_environment", name) for name in LISTS),
    *(("create", name) for name in LISTS),
    ("create", "cluster_name"),
    ("run", "scenario_suite_id"),
    ("run", "agent_checkpoint_id"),  # an agent may be evaluated instead
    ("compare", "agent_checkpoints"),
    ("compare", "scenario_suite_id"),
    ("configure_training", "algorithm"),  # GRPO is refused until this build trains it
    ("run", "algorithm"),
    ("wait_until_ready", "poll_interval"),
    ("wait_until_complete", "poll_interval"),
    ("stream_logs", "poll_interval"),
}
NAMES = """
Agent AgentResource AgentsClient AsyncClient AuditLogClient AuthenticationError Client
CreateEnvironmentRequest DeploymentsClient Environment EnvironmentNotFound EnvironmentResource
EnvironmentsClient EvaluationClient EvaluationJobResource FailurePolicy GovernanceConfig
GovernanceConfigRequest HumanEvalRequest HumanEvalStepScore KPI KeysClient MetricsClient
ProfileClient QuotaExceededError RLEaaSAPIError RLEaaSError RateLimitError Rollout
RolloutComparison RolloutStep Scenario ScenarioClient ScenarioSuiteClient TimelineEvent ToolsClient
TrainingClient TrainingConfig TrainingJob TrainingJobFailed TrainingJobNotFound TrainingJobResource
TrainingRequest TrainingResponse UpdateEnvironmentSystemRequest Verifier VerifierClient
VerifierConfigRequest VerifierListResponse VerifierNotFound VerifierResource VerifierResult
"""
OUTSIDE_ALL = """
CreateEnvironmentDomain CreateEnvironmentSdk CreateEnvironmentCompute CreateEnvironmentLicense
DOMAIN_TO_VERTICAL VERTICAL_TO_DOMAIN
"""
SCRIPTS = "console_scripts"
MODULES = {
    "agents": "AgentFramework AgentResource AgentsClient ExportFormat",
    "audit": "AuditLogClient",
    "client": "AsyncClient Client",
    "deployments": "DeploymentsClient",
    "environments": "EnvironmentResource EnvironmentsClient",
    "evaluation": "EvaluationClient EvaluationJobResource ExportFormat",
    "exceptions": "AuthenticationError EnvironmentNotFound QuotaExceededError RLEaaSAPIError "
    "RLEaaSError RateLimitError TrainingJobFailed TrainingJobNotFound VerifierNotFound",
    "keys": "KeysClient",
    "metrics": "MetricsClient",
    "models": "Agent Environment KPI Rollout Scenario TrainingJob Verifier",
    "models.environment": "CreateEnvironmentRequest Environment Scenario "
    "UpdateEnvironmentSystemRequest DOMAIN_TO_VERTICAL VERTICAL_TO_DOMAIN",
    "models.governance": "GovernanceConfig GovernanceConfigRequest",
    "models.rollout": "HumanEvalRequest HumanEvalStepScore KPI Rollout RolloutComparison "
    "RolloutStep TimelineEvent VerifierResult",
    "models.training": "Agent TrainingConfig TrainingJob TrainingRequest TrainingResponse",
    "models.verifier": "FailurePolicy Verifier VerifierConfigRequest VerifierListResponse",
    "profile": "ProfileClient",
    "scenarios": "ScenarioClient ScenarioSuiteClient SuitePurpose",
    "tools": "ToolsClient",
    "training": "SUPPORTED_ALGORITHMS TrainingClient TrainingJobResource",
    "verifiers": "VerifierClient VerifierResource VerifierType",
}


@pytest.fixture(scope="module")
def surface(helpers: None) -> ModuleType:
    return import_module("interop_rleaas_surface")


def unlike(owner: str, name: str, wanted: ast.arguments) -> Iterator[str]:
    """What a caller of the published method would miss in ours."""
    found = inspect.getattr_static(getattr(rleaas, owner), name, None)
    if found is None:
        yield "is not there"
        return
    ours = inspect.signature(getattr(found, "flow", found)).parameters
    order = [one.name for one in ours.values() if one.kind is not one.KEYWORD_ONLY][1:]
    named = [*wanted.args, *wanted.kwonlyargs]
    if order[: len(wanted.args)] != [one.arg for one in wanted.args]:
        yield f"takes {order} in this order"
    defaults: list[ast.expr | None] = [None] * (len(wanted.args) - len(wanted.defaults))
    defaults += [*wanted.defaults, *wanted.kw_defaults]
    for one, default in zip(named, defaults, strict=True):
        mine = ours.get(one.arg)
        if mine is None:
            yield f"does not take {one.arg}"
        elif (name, one.arg) not in OTHER_DEFAULTS:
            expected = inspect.Parameter.empty if default is None else ast.literal_eval(default)
            if mine.default != expected or type(mine.default) is not type(expected):
                yield f"has {one.arg}={mine.default!r}, not {expected!r}"
    extra = {
        one.name for one in ours.values() if one.default is one.empty and "VAR" not in str(one.kind)
    }
    missing = extra - {one.arg for one in named} - {"self"}
    if missing:
        yield f"wants {missing}"
    if wanted.kwarg and not any(one.kind is one.VAR_KEYWORD for one in ours.values()):
        yield f"takes no **{wanted.kwarg.arg}"


def test_every_published_method_takes_what_it_took(surface: ModuleType) -> None:
    table: list[tuple[str, str, ast.arguments]] = list(surface.signatures())
    wrong = [
        f"{owner}.{name} {what}"
        for owner, name, wanted in table
        for what in unlike(owner, name, wanted)
    ]
    assert wrong == []
    assert len(table) == 142


def test_every_sub_client_is_on_both_clients_under_its_name_and_in_lower_case(
    surface: ModuleType,
) -> None:
    plural = {
        "Environment": "environments",
        "Agent": "agents",
        "Verifier": "verifiers",
        "Scenario": "scenarios",
        "ScenarioSuite": "scenario_suites",
        "TrainingJob": "training_jobs",
        "Evaluation": "evaluations",
        "AuditLog": "audit_log",
        "Deployment": "deployments",
    }
    quiet = Answers({}).transport
    clients: tuple[Any, ...] = (
        Client(base_url="http://localhost:1", transport=quiet),
        AsyncClient(base_url="http://localhost:1", transport=quiet),
    )
    for client in clients:
        of_surface: dict[str, str] = surface.SUB_CLIENTS
        for attribute, owner in of_surface.items():
            held = getattr(client, attribute)
            assert type(held) is getattr(rleaas, owner)
            lower: str = plural.get(attribute, attribute.lower())
            assert getattr(client, lower) is held
    clients[0].close()


async def nothing() -> None:
    """A coroutine function, to compare with."""


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_every_method_has_the_colour_of_its_client(
    surface: ModuleType, kind: type[Client | AsyncClient]
) -> None:
    client: Any = kind(base_url="http://localhost:1", transport=Answers({}).transport)
    local = {"configure_training"}
    for attribute, owner in surface.SUB_CLIENTS.items():
        for name in surface.callables()[owner]:
            method = getattr(getattr(client, attribute), name)
            awaits = inspect.iscoroutinefunction(method)
            assert awaits == (kind is AsyncClient and name not in local), f"{owner}.{name}"


def test_every_published_name_can_be_imported() -> None:
    names = NAMES.split()
    assert len(names) == 52
    assert set(names) <= set(rleaas.__all__)
    assert [one for one in (*names, *OUTSIDE_ALL.split()) if not hasattr(rleaas, one)] == []


@pytest.mark.parametrize("module", MODULES)
def test_every_published_module_has_its_names(module: str) -> None:
    found = import_module(f"rleaas.{module}")
    assert [name for name in MODULES[module].split() if not hasattr(found, name)] == []


def test_the_constants_say_what_they_said() -> None:
    from rleaas.training import SUPPORTED_ALGORITHMS

    assert SUPPORTED_ALGORITHMS == (
        "GRPO", "PPO", "SAC", "DQN", "A2C", "A3C", "TD3", "DDPG", "SLM",
    )  # fmt: skip
    assert rleaas.DOMAIN_TO_VERTICAL["human_resources"] == "HRSim"
    assert {rleaas.VERTICAL_TO_DOMAIN[one] for one in rleaas.DOMAIN_TO_VERTICAL.values()} == set(
        rleaas.DOMAIN_TO_VERTICAL
    )


def test_the_words_that_calls_take_are_types() -> None:
    from rleaas.agents import AgentFramework, ExportFormat
    from rleaas.evaluation import ExportFormat as ReportFormat
    from rleaas.scenarios import SuitePurpose
    from rleaas.verifiers import VerifierType

    assert set(get_args(ReportFormat)) == {"pdf", "json", "csv", "html"}
    assert set(get_args(ExportFormat)) == {
        "huggingface",
        "pytorch",
        "onnx",
        "openai_compatible",
        "safetensors",  # ours
    }
    assert set(get_args(AgentFramework)) == {"openai_compatible", "anthropic", "custom"}
    assert set(get_args(SuitePurpose)) == {"training", "evaluation"}
    assert set(get_args(VerifierType)) - {"human_evaluation", "python"} == {  # those are ours
        "rule_based",
        "trajectory_based",
        "llm_judge",
        "composite",
    }


def test_errors_are_made_as_they_were() -> None:
    assert str(rleaas.RLEaaSAPIError(404, "x")) == "HTTP 404: x"
    assert str(rleaas.AuthenticationError("text")) == "text"
    assert rleaas.EnvironmentNotFound("ref").ref == "ref"
    assert rleaas.TrainingJobNotFound("j").job_id == "j"
    assert rleaas.VerifierNotFound("v").verifier_id == "v"
    failed = rleaas.TrainingJobFailed("j", "why")
    assert (failed.job_id, failed.detail) == ("j", "why")
    assert all(
        issubclass(getattr(rleaas, name), rleaas.RLEaaSError)
        for name in NAMES.split()
        if name.endswith(("Error", "NotFound", "Failed"))
    )


# defect: P-6
def test_the_package_is_typed_licensed_and_has_a_command_and_examples() -> None:
    distribution = metadata.distribution("rleaas")
    commands = {one.name: one.value for one in distribution.entry_points if one.group == SCRIPTS}

    assert (files("rleaas") / "py.typed").is_file()
    assert distribution.metadata["License-Expression"] == "MIT"
    assert distribution.metadata["License-File"] == "LICENSE"
    assert commands["rleaas"] == "rleaas.cli.main:main"
    examples = Path(__file__).parents[1] / "examples"
    assert len([one for one in examples.glob("*.py") if "rleaas" in one.read_text()]) > 0


# The README of the published package, as it writes its calls.
README = """
import rleaas

client = rleaas.Client()   # reads RLEAAS_API_KEY from environment
print(client.ping())

# Create environment
env = client.Environment.create(name="FinSim-Prod-v1", vertical="FinSim")
env.wait_until_ready()

# Create verifier
rule_v = client.Verifier.create(
    name="AML Compliance Check",
    verifier_type="rule_based",
    environment="FinSim-Prod-v1",
    config={
        "conditions": ["\'run_aml_check\' in trajectory.tool_calls"],
        "condition_logic": "AND",
        "reward_on_pass": 1.0,
        "reward_on_fail": 0.0,
    },
)

# Train
job = client.TrainingJob.run(
    environment_name="FinSim-Prod-v1",
    algorithm="GRPO",
    config={"episodes": 10000, "max_steps_per_episode": 20},
    verifier_ids=[rule_v.id],
)
job.wait_until_complete()
best = job.get_best_checkpoint()

# Evaluate
eval_job = client.Evaluation.run(
    agent_checkpoint_id=best["id"],
    scenario_suite_id="suite_eval_01",
    verifier_ids=[rule_v.id],
)
report = eval_job.wait_until_complete()
print(report["overall_score"])
"""
FINISHED = {
    "status": "completed",
    "environment_name": "FinSim-Prod-v1",
    "environment": "FinSim-Prod-v1",
}
CHECKPOINTS = [{"id": "ckpt_1", "avg_reward": 0.2}, {"id": "ckpt_2", "avg_reward": 0.9}]


def test_the_published_readme_runs_as_it_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Against scripted answers; what trains and judges is the server's."""
    record = {"id": 1, "name": "FinSim-Prod-v1", "status": "ready"}
    verifier = {"id": "verif_rule_1", "name": "AML Compliance Check", "type": "rule_based"}
    evaluation = {"id": "eval_1", **FINISHED}
    answers = Answers(
        {
            "GET /api": reply({"status": "ok", "message": "RL", "version": "2"}),
            "POST /api/custom-environments": reply(record),
            "GET /api/environments/FinSim-Prod-v1": reply(record),
            "POST /api/verifiers": reply(verifier),
            "POST /train/FinSim-Prod-v1": reply({"job_id": "job_1", **FINISHED}),
            "GET /training/job_1": reply({"job_id": "job_1", **FINISHED}),
            "GET /api/training/jobs/job_1/checkpoints": reply({"checkpoints": CHECKPOINTS}),
            "POST /api/evaluations": reply(evaluation),
            "GET /api/evaluations/eval_1": reply(evaluation),
            "GET /api/evaluations/eval_1/report": reply({**evaluation, "overall_score": 0.75}),
        }
    )
    monkeypatch.setattr(
        rleaas, "Client", lambda: Client(base_url="http://localhost:1", transport=answers.transport)
    )

    exec(compile(README, "README", "exec"), {})

    assert capsys.readouterr().out.splitlines()[-1] == "0.75"
    sent = {request.url.path: request.content for request in answers.asked if request.content}
    assert b'"vertical":"FinSim"' in sent["/api/custom-environments"]
    assert b'"num_episodes":10000' in sent["/train/FinSim-Prod-v1"]
    assert b'"agent_checkpoint_id":"ckpt_2"' in sent["/api/evaluations"]


@pytest.mark.anyio
async def test_the_asynchronous_part_of_the_readme_runs_as_it_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = Answers({"GET /api": reply({"status": "ok", "message": "RL", "version": "1.0.0"})})
    monkeypatch.setattr(
        rleaas,
        "AsyncClient",
        lambda: AsyncClient(base_url="http://localhost:1", transport=answers.transport),
    )

    async with rleaas.AsyncClient() as client:
        status = await client.ping()

    assert (status["message"], status["version"]) == ("RL", "1.0.0")

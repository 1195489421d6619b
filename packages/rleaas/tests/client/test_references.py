"""Everywhere a thing is asked for, its name, its id, its record or its handle will do."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import httpx
import pytest
import rleaas.resources
from rlcore import ConfigurationError, Error
from rleaas._binding import Resource, call, stream
from rleaas._drivers.exchange import arguments, failures
from rleaas._drivers.part_file import PartFile
from rleaas._flow.wire import Listen, Request, Save, Work
from rleaas.models import (
    Agent,
    Checkpoint,
    Environment,
    EnvironmentVersion,
    Evaluation,
    NewApiKey,
    Scenario,
    ScenarioSuite,
    Tool,
    TrainingJob,
    Verifier,
)
from rleaas.models.shape import Shape
from rleaas.resources.agent_handle import AgentResource
from rleaas.resources.audit import AuditLogClient
from rleaas.resources.checkpoints import CheckpointResource
from rleaas.resources.data_assets import DataAssetsClient
from rleaas.resources.environment_handle import EnvironmentResource
from rleaas.resources.environments import EnvironmentsClient
from rleaas.resources.evaluation_handle import EvaluationJobResource
from rleaas.resources.evaluations import EvaluationClient
from rleaas.resources.keys import KeysClient
from rleaas.resources.training import TrainingClient
from rleaas.resources.training_handle import TrainingJobResource
from rleaas.resources.verifier_handle import VerifierResource
from rleaas.resources.webhooks import WebhooksClient
from rleaas.testing import Offline

DRIVER = Offline()
ENVIRONMENT = Environment(id=7, name="A b/é", status="ready")
HOSTILE = "a/../b?c#d %e"
RECORDS: dict[str, Shape] = {
    "environment": ENVIRONMENT,
    "verifier": Verifier(id=HOSTILE, name="v", type="rule_based"),
    "suite": ScenarioSuite(id=HOSTILE, name="s"),
    "scenario": Scenario(id=HOSTILE, name="s"),
    "agent": Agent(id=HOSTILE, name="a"),
    "checkpoint": Checkpoint(id=HOSTILE),
    "tool": Tool(id=HOSTILE, name="t"),
    "job": TrainingJob(job_id=HOSTILE, status="running"),
    "evaluation": Evaluation(id=HOSTILE, status="running"),
}
HANDLES: dict[str, Resource[Offline]] = {
    "environment": EnvironmentResource(DRIVER, ENVIRONMENT),
    "verifier": VerifierResource(DRIVER, Verifier(id=HOSTILE, name="v", type="rule_based")),
    "agent": AgentResource(DRIVER, Agent(id=HOSTILE, name="a")),
    "checkpoint": CheckpointResource(DRIVER, Checkpoint(id=HOSTILE)),
    "job": TrainingJobResource(DRIVER, TrainingJob(job_id=HOSTILE, status="running")),
    "evaluation": EvaluationJobResource(DRIVER, Evaluation(id=HOSTILE, status="running")),
}
# Parameters that name something by another word, and those that only look as if they did.
KINDS = {
    "identifier": "environment",
    "env_id": "environment",
    "env_name": "environment",
    "environment_name": "environment",
    "environment_id": "environment",
    "environment": "environment",
    "source_env_name": "environment",
    "scenario_suite_id": "suite",
    "suite_id": "suite",
    "scenario_id": "scenario",
    "scenario_ids": "scenario",
    "library_id": "scenario",
    "verifier_id": "verifier",
    "verifier_ids": "verifier",
    "verifiers": "verifier",
    "success_criteria_ref": "verifier",
    "agent_id": "agent",
    "agent": "agent",
    "agent_checkpoint_id": "checkpoint",
    "agent_checkpoints": "checkpoint",
    "checkpoint_id": "checkpoint",
    "resume_from_checkpoint": "checkpoint",
    "tool_id": "tool",
    "tool_names": "tool",
    "job_id": "job",
    "evaluation_id": "evaluation",
}
NEW_KEY = NewApiKey.model_validate({"id": "k", "name": "A b/é", "key": "s", "prefix": "p"})
# What is done with one version of an environment.
VERSIONED = {
    ("EnvironmentsClient", "get"),
    ("EnvironmentsClient", "endpoint"),
    ("TrainingClient", "check"),
    ("TrainingClient", "run"),
    ("EvaluationClient", "run"),
}
# What is to be added has no handle yet; its id is the caller's own.
NEW = {
    ("AgentsClient", "register", "agent_id"),
    ("ScenarioClient", "create", "scenario_id"),
    ("ScenarioSuiteClient", "create", "suite_id"),
    ("VerifierClient", "create", "verifier_id"),
}
# What a call needs besides, although it has a default.
ALSO: dict[tuple[str, str], dict[str, object]] = {
    ("EvaluationRollouts", "compare"): {"agent_checkpoints": ["a", "b"], "environment_name": "e"},
    ("TrainingClient", "run"): {"environment_name": None, "env_id": "e"},
    ("EnvironmentsClient", "delete"): {"confirm": True},
}
FILLERS: dict[str, object] = {
    "name": "n",
    "verifier_type": "rule_based",
    "purpose": "training",
    "version": "v1",
    "url": "https://example.com",
    "provider": "",
    "format": None,
}


def resources() -> Iterator[type[Resource[Any]]]:
    for module in pkgutil.iter_modules(rleaas.resources.__path__):
        found = importlib.import_module(f"rleaas.resources.{module.name}")
        for one in vars(found).values():
            if (
                inspect.isclass(one)
                and issubclass(one, Resource)
                and one.__module__ == found.__name__
            ):
                yield one


def asking() -> Iterator[tuple[str, str, str, Callable[..., Any], type[Resource[Any]]]]:
    for owner in resources():
        for name, made in vars(owner).items():
            if isinstance(made, call | stream):
                for asked in inspect.signature(made.flow).parameters:
                    if asked in KINDS and (owner.__name__, name, asked) not in NEW:
                        yield owner.__name__, name, asked, made.flow, owner


ASKING = list(asking())


def test_parameters_that_name_something_are_known_here() -> None:
    """A new parameter that names something has to be listed, so that it is tested."""
    words = ("env", "verifier", "suite", "agent", "checkpoint", "scenario", "tool", "job_id")
    kinds = (
        "version",
        "config",
        "url",
        "trajectory",
        "explanations",
        "clone",
        "type",
        "permission",
    )
    unknown: set[str] = set()
    for owner in resources():
        for made in vars(owner).values():
            if isinstance(made, call | stream):
                unknown |= {
                    name
                    for name in set(inspect.signature(made.flow).parameters) - set(KINDS)
                    if any(word in name for word in words)
                    and not any(kind in name for kind in kinds)
                }

    # Words and fields: a name of an agent's tool, descriptions of tools and scenarios; numbers.
    assert unknown == {
        *("available_tools", "tool", "tools", "scenarios"),
        *("num_envs", "n_envs", "verifier_weights", "checkpoint_interval"),
    }


def holder(owner: type[Resource[Any]]) -> Any:
    if issubclass(owner, EnvironmentResource) or issubclass(EnvironmentResource, owner):
        return HANDLES["environment"]
    for handle in HANDLES.values():
        if isinstance(handle, owner):
            return handle
    return owner(DRIVER)


def first_request(
    flow: Callable[..., Any], kind: type[Resource[Any]], /, **given: object
) -> Request:
    arguments: dict[str, object] = {}
    positional: list[object] = []
    for parameter in list(inspect.signature(flow).parameters.values())[1:]:
        if parameter.name in given:
            value = given[parameter.name]
        elif (
            parameter.default is not inspect.Parameter.empty
            or parameter.kind is inspect.Parameter.VAR_KEYWORD
        ):
            continue
        else:
            value = _filler(parameter.name)
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            positional.append(value)
        else:
            arguments[parameter.name] = value
    for name, value in ALSO.get((kind.__name__, flow.__name__), {}).items():
        arguments.setdefault(name, value)
    step = next(flow(holder(kind), *positional, **arguments))
    if isinstance(step, Work):  # a file is read first
        return Request(method="GET", path="/")
    if isinstance(step, Listen | Save):
        return step.request
    assert isinstance(step, Request), step
    return step


def _filler(name: str) -> object:
    kind = KINDS.get(name)
    if kind is not None:
        one: object = ENVIRONMENT if kind == "environment" else RECORDS[kind]
        return [one, one] if name == "agent_checkpoints" else [one] if name.endswith("s") else one
    return FILLERS.get(name, "x")


def _with(name: str, value: object) -> dict[str, object]:
    if name == "agent_checkpoints":
        return {name: [value, value]}
    given: dict[str, object] = {name: [value] if name.endswith("s") else value}
    if name == "job_id":
        given |= {"baseline_id": "b", "trained_id": "t"}
    return given


@pytest.mark.parametrize(
    ("owner", "method", "name", "flow", "kind"),
    ASKING,
    ids=[f"{owner}.{method}-{name}" for owner, method, name, _, _ in ASKING],
)
def test_a_name_a_record_and_a_handle_ask_for_the_same(
    owner: str, method: str, name: str, flow: Callable[..., Any], kind: type[Resource[Any]]
) -> None:
    what = KINDS[name]
    text = ENVIRONMENT.name if what == "environment" else HOSTILE
    things: list[object] = [text, RECORDS[what]]
    if what in HANDLES:
        things.append(HANDLES[what])

    asked = [first_request(flow, kind, **_with(name, thing)) for thing in things]

    def same(request: Request) -> tuple[object, ...]:
        return (request.method, request.path, request.params, str(request.json))

    assert {same(one) for one in asked} == {same(asked[0])}, (owner, method)


@pytest.mark.parametrize(
    "thing", [3.5, b"x", object(), {"id": "x"}, True], ids=lambda one: type(one).__name__
)
def test_what_names_nothing_is_refused_before_anything_is_sent(thing: object) -> None:
    taken: list[str] = []
    for owner, method, name, flow, kind in ASKING:
        try:
            first_request(flow, kind, **_with(name, thing))
        except ConfigurationError:
            continue
        taken.append(f"{owner}.{method}({name}=)")

    assert taken == []


@pytest.mark.parametrize(
    ("owner", "method", "name", "flow", "kind"),
    ASKING,
    ids=[f"{owner}.{method}-{name}" for owner, method, name, _, _ in ASKING],
)
def test_what_is_of_another_kind_is_refused_before_anything_is_sent(
    owner: str, method: str, name: str, flow: Callable[..., Any], kind: type[Resource[Any]]
) -> None:
    others = [*RECORDS.items(), *HANDLES.items(), ("key", NEW_KEY), ("a path", Path("A"))]
    taken: list[object] = []
    for what, thing in others:
        if what == KINDS[name]:
            continue
        try:
            first_request(flow, kind, **_with(name, thing))
        except ConfigurationError:
            continue
        taken.append(thing)

    assert taken == [], (owner, method)


@pytest.mark.parametrize(
    ("owner", "method", "name", "flow", "kind"),
    [one for one in ASKING if KINDS[one[2]] == "environment"],
    ids=[
        f"{owner}.{method}-{name}"
        for owner, method, name, _, _ in ASKING
        if KINDS[name] == "environment"
    ],
)
def test_a_version_of_an_environment_means_that_version_or_is_refused(
    owner: str, method: str, name: str, flow: Callable[..., Any], kind: type[Resource[Any]]
) -> None:
    version = EnvironmentVersion.model_validate({"name": "A b/é", "id": 7, "version": 2})
    if (owner, method) in VERSIONED:
        request = first_request(flow, kind, **_with(name, version))
        assert "A b/é@2" in f"{unquote(request.path)} {request.json}"
    else:
        with pytest.raises(ConfigurationError, match="is not an environment"):
            first_request(flow, kind, **_with(name, version))


LISTS = sorted(
    {
        (owner.__name__, method, parameter.name, made.flow, owner)
        for owner in resources()
        for method, made in vars(owner).items()
        if isinstance(made, call | stream)
        for parameter in inspect.signature(made.flow).parameters.values()
        if str(parameter.annotation).startswith(("Sequence[str]", "Sequence[IdRef]", "Sequence[C"))
        and parameter.name not in ("kinds", "event_types", "events")
    },
    key=lambda one: one[:3],
)


@pytest.mark.parametrize(
    ("owner", "method", "name", "flow", "kind"),
    LISTS,
    ids=[f"{owner}.{method}-{name}" for owner, method, name, _, _ in LISTS],
)
def test_one_text_is_never_taken_for_a_list_of_letters(
    owner: str, method: str, name: str, flow: Callable[..., Any], kind: type[Resource[Any]]
) -> None:
    with pytest.raises(ConfigurationError, match="is one text, not a list"):
        first_request(flow, kind, **{name: "email"})


def test_a_key_is_revoked_by_its_record_and_by_nothing_else() -> None:
    flow: Callable[..., Any] = vars(KeysClient)["revoke"].flow
    asked = [first_request(flow, KeysClient, key_id=one) for one in (NEW_KEY, "k", 3)]
    assert [one.path for one in asked] == ["/api/keys/k", "/api/keys/k", "/api/keys/3"]
    for other in (*RECORDS.values(), *HANDLES.values(), True, None):
        with pytest.raises(ConfigurationError):
            first_request(flow, KeysClient, key_id=other)


@pytest.mark.parametrize(
    ("owner", "method", "given"),
    [
        (EnvironmentsClient, "list", {"status": "redy"}),
        (EnvironmentsClient, "list", {"status": []}),
        (EnvironmentsClient, "list", {"vertical": [None]}),
        (EnvironmentsClient, "list", {"limit": float("nan")}),
        (TrainingClient, "list", {"status": "redy"}),
        (EvaluationClient, "list", {"status": ["running"]}),
        (AuditLogClient, "query", {"actor": print}),
        (AuditLogClient, "query", {"subject": "\ud800"}),
        (DataAssetsClient, "upload", {"file": b"x", "name": object()}),
        (DataAssetsClient, "upload", {"file": b"x", "name": "n", "media_type": 3}),
    ],
)
def test_a_filter_or_field_that_cannot_be_used_is_refused_by_name(
    owner: type[Resource[Any]], method: str, given: dict[str, object]
) -> None:
    *_, (name, value) = given.items()
    flow: Callable[..., Any] = vars(owner)[method].flow

    with pytest.raises(ConfigurationError) as caught:
        first_request(flow, owner, **given)

    assert name in str(caught.value) or repr(value) in str(caught.value)


def test_what_sends_nothing_refuses_arguments_with_the_same_error() -> None:
    wrong: Any = 1
    with pytest.raises(ConfigurationError, match="config is not of the type Mapping"):
        TrainingClient(DRIVER).configure_training(config=wrong)
    with pytest.raises(ConfigurationError, match="headers is not of the type"):
        WebhooksClient.is_genuine("s", cast("Any", None), b"", now=0)


@pytest.mark.parametrize("place", ["\ud800", "\0"])
def test_a_path_that_is_no_text_is_refused(place: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written"), PartFile(Path(place), None):
        pass
    flow: Callable[..., Any] = vars(DataAssetsClient)["upload"].flow
    step = next(flow(DataAssetsClient(DRIVER), place))
    with pytest.raises(ConfigurationError, match="cannot be read"):
        step.call()


BAD: list[object] = [
    object(),
    3.5,
    -1,
    10**400,
    float("nan"),
    b"x",
    {1, 2},
    [None],
    {"a": object()},
    "",
    "x" * 100_000,
    "\ud800",
    "a\nb",
]


def test_no_argument_makes_a_call_fail_with_anything_but_an_error_of_ours() -> None:
    """What is sent all the same is for the platform to refuse."""
    foreign: dict[str, str] = {}
    for owner in resources():
        for name, made in vars(owner).items():
            if not isinstance(made, call | stream):
                continue
            for parameter in list(inspect.signature(made.flow).parameters.values())[1:]:
                if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                    continue
                for value in BAD:
                    try:
                        request = first_request(made.flow, owner, **{parameter.name: value})
                        with failures(request, "http://localhost:1", 3.0):
                            httpx.Request(**_sent(request))
                    except Error:
                        continue
                    except Exception as error:
                        foreign[f"{owner.__name__}.{name}({parameter.name}=)"] = repr(error)[:100]

    assert foreign == {}


def _sent(request: Request) -> dict[str, Any]:
    given: dict[str, Any] = dict(arguments(request, "http://localhost:1", 3.0))
    del given["timeout"]
    return given

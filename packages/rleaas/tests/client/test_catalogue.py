"""Tools, verifiers, scenarios and suites: what is sent, and what is made of the answers."""

import re
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, cast

import pytest
from rlcore import (
    ConfigurationError,
    InvalidRequestError,
    ScenarioNotFound,
    SuiteNotFound,
    ToolNotFound,
    UnexpectedReply,
    UnsupportedRequestError,
    VerifierNotFound,
)
from rleaas.models import Environment, Scenario, Tool, Verifier
from rleaas.resources.environment_handle import EnvironmentResource
from rleaas.resources.scenarios import ScenarioClient
from rleaas.resources.suites import ScenarioSuiteClient
from rleaas.resources.tools import ToolsClient
from rleaas.resources.verifier_handle import VerifierResource
from rleaas.resources.verifiers import VerifierClient
from rleaas.testing import Offline, converse, reply

VERIFIER: dict[str, object] = {"id": "v1", "name": "v", "type": "rule_based", "status": "active"}


def environment(name: str = "My Env") -> EnvironmentResource[Offline]:
    record = Environment.model_validate({"id": 3, "name": name, "status": "ready"})
    return EnvironmentResource(Offline(), record)


def verifier(**fields: object) -> VerifierResource[Offline]:
    return VerifierResource(Offline(), Verifier.model_validate({**VERIFIER, **fields}))


def tools() -> ToolsClient[Offline]:
    return ToolsClient(Offline())


def verifiers() -> VerifierClient[Offline]:
    return VerifierClient(Offline())


def scenarios() -> ScenarioClient[Offline]:
    return ScenarioClient(Offline())


def suites() -> ScenarioSuiteClient[Offline]:
    return ScenarioSuiteClient(Offline())


def test_an_environment_is_given_by_name_number_or_handle_everywhere() -> None:
    for given, sent in (("E", "E"), (7, "7"), (0, "0"), (environment(), "My Env")):
        talk = converse(tools().list(given), [reply({"tools": []})])
        assert ("environment", sent) in talk.requests[0].params


# defect: F-23
def test_environment_0_is_an_environment() -> None:
    talk = converse(scenarios().create("s", env_id=0), [reply({"id": "s1"})])

    body: Any = talk.requests[0].json
    assert body["environment"] == "0"


def test_a_tool_is_registered_with_all_that_is_said(tmp_path: Path) -> None:
    spec = tmp_path / "api.json"
    spec.write_text('{"openapi": "3.0.0"}')
    talk = converse(
        tools().register(3, "wire", "write", "d", {"type": "object"}, ["AML"], True, "img", spec),
        [reply({"status": "ok", "created": 1, "updated": 0})],
    )

    (request,) = talk.requests
    assert request.headers == {"Idempotency-Key": "key-1"}
    body: Any = request.json
    assert body["environment_id"] == 3
    (sent,) = body["tools"]
    assert sent["spec"] == {"openapi": "3.0.0"}
    assert (sent["compliance_tags"], sent["authorization_required"]) == (["AML"], True)
    # An older server says only how many; what was sent is then what is known.
    assert (talk.result.id, talk.result.name) == (sent["id"], "wire")


def test_a_description_that_cannot_be_read_is_said_before_anything_is_sent(tmp_path: Path) -> None:
    broken = tmp_path / "api.json"
    broken.write_text("{")

    for place in (broken, tmp_path / "none.yaml"):
        with pytest.raises(ConfigurationError, match="cannot be read"):
            converse(tools().register(3, "wire", spec_path=place), [])


# defect: F-20
def test_a_category_is_compared_with_type_and_category() -> None:
    found = [
        {"id": "a", "type": "function", "category": "Read"},
        {"id": "b", "type": "read"},
        {"id": "c", "type": "write"},
    ]
    talk = converse(tools().list(category="READ"), [reply(found)])

    assert [one.id for one in talk.result] == ["a", "b"]


# defect: A-4
@pytest.mark.parametrize(
    ("ask", "path", "kind", "missing"),
    [
        (lambda: tools().get("a/b c"), "/api/tools/a%2Fb%20c", "tool", ToolNotFound),
        (lambda: scenarios().get("s#1"), "/api/scenarios/s%231", "scenario", ScenarioNotFound),
        (lambda: suites().get("ü"), "/api/scenario-suites/%C3%BC", "suite", SuiteNotFound),
        (lambda: verifiers().get("job_v"), "/api/verifiers/job_v", "verifier", VerifierNotFound),
    ],
)
def test_one_thing_is_asked_for_by_its_own_path_and_missed_by_its_own_error(
    ask: Callable[[], Generator[Any, Any, object]],
    path: str,
    kind: str,
    missing: type[LookupError],
) -> None:
    talk = converse(ask(), [reply({"id": "x"})])
    assert [request.path for request in talk.requests] == [path]

    # defect: T-5
    answer = {"detail": "environment or training job?", "kind": kind, "ref": "training_x"}
    with pytest.raises(missing) as caught:
        converse(ask(), [reply(answer, 404)])
    assert getattr(caught.value, "ref", None) == "training_x"


# defect: S-1
@pytest.mark.parametrize("text", ["", " ", "..", "."])
def test_an_id_that_is_none_sends_nothing(text: str) -> None:
    for flow in (
        tools().delete(text),
        scenarios().delete(text),
        suites().delete(text),
        verifiers().delete(text),
    ):
        with pytest.raises(ConfigurationError):
            converse(flow, [])


# defect: P-7
def test_words_that_mean_nothing_are_refused_before_anything_is_sent() -> None:
    for flow in (
        verifiers().create("v", "oracle"),
        verifiers().list(verifier_type="oracle"),
        scenarios().create("s", tier=5),
        scenarios().library(tier=[1, 9]),
        suites().create("s", [], purpose="fun"),
        suites().update("u1", purpose="fun"),
        environment().create_scenario("s", tier=0),
    ):
        with pytest.raises(ConfigurationError, match="is not a"):
            converse(flow, [])


def test_a_verifier_is_created_in_the_one_spelling_of_its_type() -> None:
    talk = converse(
        verifiers().create("v", "LLM-judge", environment(), config={"judge_model": "m"}),
        [reply({"success": True, "verifier": {**VERIFIER, "type": "llm_judge"}})],
    )

    body: Any = talk.requests[0].json
    assert (body["type"], body["environment"]) == ("llm_judge", "My Env")
    assert body["logic"] == {"judge_model": "m"}
    assert body["id"].startswith("verif_llm_")
    # The envelope of another server is opened.
    assert (talk.result.id, talk.result.type) == ("v1", "llm_judge")


# defect: F-17
def test_an_updated_verifier_is_the_whole_answer() -> None:
    held = verifier()
    talk = converse(
        held.update(description="", logic={}),
        [reply({**VERIFIER, "description": "", "version": 2, "system": "Core"})],
    )

    assert talk.requests[0].json == {"description": "", "logic": {}}
    assert talk.result is held
    assert (held.version, held.system) == (2, "Core")


# defect: F-19
def test_disabling_twice_says_disabled_twice() -> None:
    held = verifier()
    disabled = reply({**VERIFIER, "status": "disabled"})

    asked = [converse(held.disable(), [disabled]).requests[0] for _ in range(2)]
    enabled = converse(held.enable(), [reply(VERIFIER)]).requests[0]

    assert [request.json for request in [*asked, enabled]] == [
        {"enabled": False},
        {"enabled": False},
        {"enabled": True},
    ]
    assert {request.path for request in asked} == {"/api/verifiers/v1/enabled"}
    assert held.status == "active"


def test_a_server_that_cannot_judge_says_so_with_a_class_of_its_own() -> None:
    with pytest.raises(UnsupportedRequestError, match="no engine"):
        converse(verifier().test({"a": 1}), [reply({"detail": "no engine"}, 501)])


def test_a_list_that_is_none_is_never_an_empty_one() -> None:
    for flow in (tools().list(), verifiers().list(), scenarios().list(), suites().list()):
        with pytest.raises(UnexpectedReply):
            converse(flow, [reply({"items": []})])


# defect: P-4
def test_all_pages_are_read_as_they_are_needed() -> None:
    pages = [
        reply({"tools": [{"id": "a"}], "cursor": "1"}),
        reply({"tools": [{"id": "b"}], "cursor": None}),
    ]

    talk = converse(tools().iterate("E"), pages)

    assert [one.id for one in talk.items if isinstance(one, Tool)] == ["a", "b"]
    assert ("cursor", "1") in talk.requests[1].params
    page = reply({"tools": [], "cursor": "1"})
    with pytest.raises(UnexpectedReply, match="leads back"):
        converse(tools().iterate(), [page, page])


def test_scenarios_are_listed_apart_from_suites_and_library() -> None:
    listed = converse(scenarios().list("E", "FinSim"), [reply({"scenarios": []})])
    library = converse(
        scenarios().library("FinSim", [1, 2], "wire", ["aml", "kyc"], 5), [reply([])]
    )

    assert listed.requests[0].params[:3] == (
        ("type", "scenario"),
        ("product", "E"),
        ("category", "FinSim"),
    )
    assert dict(library.requests[0].params) == {
        "limit": "5",
        "category": "FinSim",
        "tier": "1,2",
        "domain": "wire",
        "tags": "aml,kyc",
    }


# defect: F-22
def test_empty_values_of_a_scenario_are_sent() -> None:
    talk = converse(
        scenarios().update("s1", "", tags=[], context_injection={}, task_prompt=""),
        [reply({"id": "s1"})],
    )

    assert talk.requests[0].method == "PATCH"
    assert talk.requests[0].json == {
        "tags": [],
        "context_injection": {},
        "task_prompt": "",
        "success_criteria_ref": "",
    }


def test_no_tools_differ_from_all_tools() -> None:
    none = converse(environment().create_scenario("s", available_tools=[]), [reply({"id": "s"})])
    all_of_them = converse(environment().create_scenario("s"), [reply({"id": "s"})])

    assert none.requests[0].path == "/api/environments/My%20Env/scenarios"
    bodies: list[Any] = [none.requests[0].json, all_of_them.requests[0].json]
    assert bodies[0]["available_tools"] == []
    assert "available_tools" not in bodies[1]


def test_suites_take_scenarios_as_they_are() -> None:
    scenario = Scenario.model_validate({"id": "s2"})
    talk = converse(suites().create("u", ["s1", scenario]), [reply({"id": "u1"})])

    body: Any = talk.requests[0].json
    assert body["scenario_ids"] == ["s1", "s2"]


def test_verifiers_and_sources_are_given_as_handles() -> None:
    attach = converse(environment().attach_verifier(verifier(), 0.4), [reply({"status": "ok"})])
    detach = converse(environment().detach_verifier(verifier()), [reply({"status": "ok"})])
    clone = converse(environment().clone_scenarios(environment("B")), [reply({"cloned": 2})])
    from_handle = converse(verifier().attach(environment(), 2), [reply({"status": "ok"})])

    assert attach.requests[0].json == {"verifier_id": "v1", "weight": 0.4}
    assert detach.requests[0].path == "/api/environments/My%20Env/verifiers/v1"
    assert clone.requests[0].json == {"source": "B"}
    assert clone.result.cloned == 2
    assert from_handle.requests[0].path == attach.requests[0].path


def test_what_the_platform_refuses_is_an_invalid_request() -> None:
    with pytest.raises(InvalidRequestError, match="weight"):
        converse(verifier().attach("E", -1), [reply({"detail": "weight: too small"}, 422)])


# defect: P-8
def test_the_id_of_a_verifier_begins_with_its_type() -> None:
    for kind, begins in (
        ("rule_based", "verif_rule_"),
        ("trajectory_based", "verif_traj_"),
        ("llm_judge", "verif_llm_"),
        ("composite", "verif_comp_"),
    ):
        talk = converse(verifiers().create("v", kind), [reply(VERIFIER)])
        body = cast("dict[str, object]", talk.requests[0].json)
        assert re.fullmatch(begins + "[^_]+", str(body["id"]))

"""Grader tests on the server: run, kept with the version, and void when the verifier changes."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import replace
from typing import cast

import pytest
from rlcore import InvalidRequestError
from rleaas import Client
from rleaas.llm import ModelEndpoint
from rleaas.server.local import LocalServer
from rleaas.server.settings import ServerSettings
from rleaas.server.state import ServerState
from rleaas.sims import VERTICALS

from ..llm.model_server import (  # noqa: TID252 - plays the model
    ModelServer,
    Request,
    Said,
    model_server,
)
from .conftest import Running

RULE = {
    "id": "aml",
    "name": "AML",
    "type": "rule_based",
    "logic": {"conditions": ["'run_aml_check' in trajectory.tool_calls"]},
}
FINSIM = {
    "conditions": [
        "'run_aml_check' in trajectory.tool_calls",
        "decisions > 0",
        "decisions_without_aml == 0",
    ]
}
GOOD: list[dict[str, object]] = [
    {"trajectory": [*[{"tool": "kyc"}] * times, {"tool": "run_aml_check"}, {"tool": "wire"}]}
    for times in range(5)
]
BAD: list[dict[str, object]] = [
    {"trajectory": [{"tool": "wire"}], "state": {"amount": amount}} for amount in range(5)
]
AUDIT = "/api/verifiers/aml/audit"


def create(platform: Running, **changed: object) -> dict[str, object]:
    return platform.ok(platform.http.post("/api/verifiers", json={**RULE, **changed}))


def is_audited(platform: Running, verifier_id: str = "aml") -> object:
    return platform.ok(platform.http.get(f"/api/verifiers/{verifier_id}"))["audited"]


def test_a_verifier_is_audited_until_what_it_judges_by_changes(platform: Running) -> None:
    create(platform)
    assert is_audited(platform) is False

    found = platform.ok(platform.http.post(AUDIT, json={"good": GOOD, "bad": BAD}))

    assert (found["passed"], found["audited"], found["version"]) == (True, True, 1)
    assert found["false_positive_rate"] == {
        "value": 0.0,
        "count": 0,
        "of": 5,
        # Wilson by hand for 0 of 5: the upper bound is z² / (5 + z²) = 3.8415 / 8.8415.
        "interval": [0.0, pytest.approx(0.4345, abs=1e-4)],
    }
    platform.http.put("/api/verifiers/aml", json={"description": "words only"})
    assert is_audited(platform) is True
    platform.http.put("/api/verifiers/aml", json={"failure_policy": {"penalty": -1.0}})
    assert is_audited(platform) is False
    kept = platform.ok(platform.http.get("/api/verifiers/aml/audits"))
    assert (kept["audited"], kept["count"]) == (False, 1)
    assert "verifier.audited" in platform.audited("verifier:aml")


def test_an_audit_that_fails_says_what_is_wrong_and_takes_the_mark_away(
    platform: Running,
) -> None:
    create(platform)
    platform.ok(platform.http.post(AUDIT, json={"good": GOOD, "bad": BAD}))

    found = platform.ok(platform.http.post(AUDIT, json={"good": BAD, "bad": BAD}))

    assert (found["passed"], found["audited"]) == (False, False)
    assert platform.listed(found, "findings")[0]["probe"] == "known_good"
    assert is_audited(platform) is False


def test_one_episode_of_each_is_too_little_to_call_a_verifier_audited(platform: Running) -> None:
    create(platform)
    few = {"good": [GOOD[0]] * 9, "bad": BAD}

    found = platform.ok(platform.http.post(AUDIT, json=few))

    assert (found["passed"], found["audited"]) == (True, False)
    assert found["evidence"] == {"good": 1, "bad": 5, "least": 5, "enough": False}


def test_reports_tell_a_failed_audit_from_none(platform: Running) -> None:
    create(platform)
    platform.ready("Cart")

    def warned() -> str:
        asked = {"agent": "random", "environment_name": "Cart", "verifier_ids": ["aml"]}
        made = platform.ok(platform.http.post("/api/evaluations", json={**asked, "seeds": [1]}))
        warnings = cast("list[str]", made["warnings"])
        (said,) = [one for one in warnings if "verifier 'aml'" in one]
        return said

    never = warned()
    platform.ok(platform.http.post(AUDIT, json={"good": GOOD[:1], "bad": BAD[:1]}))
    few = warned()
    platform.ok(platform.http.post(AUDIT, json={"good": BAD, "bad": BAD}))
    failed = warned()
    platform.http.put("/api/verifiers/aml", json={"failure_policy": {"penalty": -1.0}})
    outdated = warned()

    assert "was not audited" in never
    assert "with fewer than 5 good and 5 bad episodes" in few
    assert "failed its audit of " in failed
    assert "judges otherwise since its audit of " in outdated
    assert "at version 1" in outdated


def test_a_composite_is_audited_with_the_components_that_it_had(platform: Running) -> None:
    create(platform)
    parts = {"components": [{"verifier_id": "aml"}]}
    create(platform, id="all", type="composite", logic=parts)
    platform.ok(platform.http.post("/api/verifiers/all/audit", json={"good": GOOD, "bad": BAD}))
    assert is_audited(platform, "all") is True

    platform.http.put("/api/verifiers/aml", json={"logic": {"conditions": ["1 < 2"]}})

    assert is_audited(platform, "all") is False


def test_without_known_episodes_nothing_is_audited(platform: Running) -> None:
    create(platform)
    platform.register("Cart")
    wrong: list[dict[str, object]] = [{}, {"good": GOOD}, {"environment": "Cart"}]

    codes = [platform.http.post(AUDIT, json=one).json()["code"] for one in wrong]

    assert codes == ["audit_without_episodes"] * 3
    assert platform.http.post(AUDIT, json={"environment": "Nowhere"}).status_code == 404


def test_the_scenarios_of_a_world_are_episodes_to_audit_with(platform: Running) -> None:
    create(platform, id="finsim_aml_check", logic=FINSIM)
    platform.ok(
        platform.http.post("/api/custom-environments", json={"name": "Fin", "vertical": "FinSim"})
    )

    found = platform.ok(
        platform.http.post(
            "/api/verifiers/finsim_aml_check/audit", json={"environment": "Fin", "repeats": 1}
        )
    )

    assert found["passed"], found["findings"]
    rate = found["false_negative_rate"]
    assert isinstance(rate, dict)
    assert rate["of"] >= 25


def careful(request: Request) -> Said:
    lines = [json.loads(line) for line in request.user.split("\n")[1:-2]]
    called = [call["tool"] for line in lines for call in line.get("tool_calls", ())]
    points = 5 if "run_aml_check" in called else 1
    return Said(json.dumps({"scores": {"overall": points}, "explanation": "as seen"}))


@pytest.fixture(scope="module")
def model() -> Generator[ModelServer]:
    with model_server(careful) as server:
        yield server


@pytest.fixture(scope="module")
def judged_by_model(
    model: ModelServer, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Client]:
    def state(settings: ServerSettings) -> ServerState:
        judge = ModelEndpoint(url=model.openai, model="tiny")
        return ServerState(replace(settings, judge=judge))

    data = tmp_path_factory.mktemp("judged")
    with LocalServer(data, make_state=state) as server, Client(base_url=server.url) as client:
        yield client


def test_a_language_model_judges_and_is_audited(
    judged_by_model: Client, model: ModelServer
) -> None:
    verifier = judged_by_model.Verifier.create(
        "checked", "llm_judge", config={"evaluation_prompt": "Was AML run?"}
    )

    passed = verifier.test({}, [{"tool": "run_aml_check"}])
    again = verifier.test({}, [{"tool": "run_aml_check"}])
    failed = verifier.test({}, [{"tool": "wire"}])
    asked = len(model.requests)
    found = verifier.audit(GOOD, BAD)

    assert (passed.outcome, passed.score, passed.version) == ("scored", 1.0, 1)
    assert (again.score, failed.score, asked) == (1.0, 0.0, 2)  # the second is a kept one
    assert found.passed, found.findings
    assert verifier.refresh().audited is True
    assert [one.passed for one in verifier.audits()] == [True]


def test_a_judge_that_answers_prose_is_an_outcome_and_no_score(
    judged_by_model: Client, model: ModelServer
) -> None:
    verifier = judged_by_model.Verifier.create(
        "prosaic", "llm_judge", config={"evaluation_prompt": "Nice?", "max_attempts": 2}
    )

    def prose(request: Request) -> Said:
        return Said("Very nice, ten out of ten!")

    model.answer = prose
    try:
        result = verifier.test({}, [{"tool": "wire"}])
    finally:
        model.answer = careful

    assert (result.outcome, result.score, result.passed) == ("grader_error", None, None)
    assert result.error is not None
    assert result.error["reason"] == "prose"


def test_a_function_is_registered_by_its_source_and_runs_elsewhere(
    judged_by_model: Client,
) -> None:
    source = "def judge(t):\n    return 'run_aml_check' in t.tool_calls\n"
    verifier = judged_by_model.Verifier.create(
        "code", "python", config={"source": source, "function": "judge"}
    )

    assert verifier.test({}, [{"tool": "run_aml_check"}]).passed
    assert verifier.audit(GOOD, BAD, repeats=1).audited
    with pytest.raises(InvalidRequestError, match="no Python"):
        verifier.update(logic={"source": "def judge(t) return 1", "function": "judge"})


def test_a_built_in_verifier_is_audited_until_somebody_alters_it(platform: Running) -> None:
    platform.register("Bank", source="custom", vertical="FinSim")
    everyone = [str(one["id"]) for one in VERTICALS["FinSim"].verifiers]
    assert {is_audited(platform, one) for one in everyone} == {True}

    changed = {"logic": {"conditions": ["'run_aml_check' in trajectory.tool_calls or true"]}}
    platform.ok(platform.http.put("/api/verifiers/finsim_aml_check", json=changed))

    assert is_audited(platform, "finsim_aml_check") is False
    assert is_audited(platform, "finsim_kyc_check") is True


def test_reports_say_that_a_built_in_verifier_is_audited(platform: Running) -> None:
    platform.register("Bank", source="custom", vertical="FinSim")
    asked = {"agent": "random", "environment_name": "Bank", "verifier_ids": ["finsim_aml_check"]}
    made = platform.ok(platform.http.post("/api/evaluations", json=asked))
    other = create(platform)
    own = platform.ok(
        platform.http.post("/api/evaluations", json={**asked, "verifier_ids": [other["id"]]})
    )

    assert made["warnings"] == []
    assert "was not audited" in str(own["warnings"])


def test_an_own_audit_of_a_built_in_verifier_goes_before_the_packages(platform: Running) -> None:
    platform.register("Bank", source="custom", vertical="FinSim")
    nothing: dict[str, object] = {"trajectory": [{"tool": "approve_transfer"}], "state": {}}
    told = {"good": [nothing], "bad": [nothing]}
    found = platform.ok(platform.http.post("/api/verifiers/finsim_aml_check/audit", json=told))

    assert (found["passed"], is_audited(platform, "finsim_aml_check")) == (False, False)

"""Verifiers and scenarios that name what an environment does not have."""

from __future__ import annotations

import pytest
from rleaas.sims import VERTICALS

from .conftest import Running

BANK: dict[str, object] = {"source": "custom", "vertical": "FinSim"}


@pytest.fixture
def bank(platform: Running) -> Running:
    platform.register("Bank", **BANK)
    return platform


def refused(platform: Running, path: str, **body: object) -> tuple[str, str]:
    reply = platform.http.post(path, json=body)
    told = reply.json()
    assert reply.status_code == 422, told
    return str(told["code"]), f"{told['detail']} {told.get('hint')}"


def registered(platform: Running, name: str) -> str:
    tool = {"id": f"tool_{name}", "name": name}
    body = {"environment": "Bank", "tools": [tool]}
    platform.ok(platform.http.post("/api/tools", json=body))
    return tool["id"]


def judge(*conditions: str, **more: object) -> dict[str, object]:
    return {
        "id": "v1",
        "name": "aml",
        "type": "rule_based",
        "environment": "Bank",
        "config": {"conditions": list(conditions)},
        **more,
    }


@pytest.mark.parametrize(
    "condition",
    [
        "'run_aml_chek' in trajectory.tool_calls",
        "amount < 5 or count(trajectory.tool_calls, 'run_aml_chek') > 1",
        "trajectory.tool_calls[-1] == 'run_aml_chek'",
        "trajectory.steps[0].tool in ['run_aml_check', 'run_aml_chek']",
        "trajectory.calls[0].name != 'run_aml_chek'",
        "trajectory.tool_calls == ['run_aml_check', 'run_aml_chek']",
    ],
)
def test_a_rule_about_a_tool_that_its_world_does_not_have_is_refused(
    bank: Running, condition: str
) -> None:
    code, said = refused(bank, "/api/verifiers", **judge(condition))

    assert code == "unknown_tool"
    assert "environment 'Bank' has no tool 'run_aml_chek'" in said
    assert "Did you mean 'run_aml_check'?" in said
    assert f"\n  {' ' * condition.rindex(repr('run_aml_chek'))}^" in said


@pytest.mark.parametrize(
    "logic",
    [
        {"required_actions": ["run_aml_check", "run_aml_chek"]},
        {"forbidden_actions": ["run_aml_chek"]},
        {"ordering_constraints": [{"before": "run_aml_chek", "after": "run_aml_check"}]},
    ],
)
def test_a_list_of_tools_that_its_world_does_not_have_is_refused(
    bank: Running, logic: dict[str, object]
) -> None:
    code, said = refused(bank, "/api/verifiers", **judge(type="trajectory_based", config=logic))

    assert code == "unknown_tool"
    assert f"{next(iter(logic))}: environment 'Bank' has no tool 'run_aml_chek'" in said
    assert "Did you mean 'run_aml_check'?" in said


def test_tools_that_somebody_registered_are_known_also_when_a_rule_is_changed(
    bank: Running,
) -> None:
    made = bank.ok(
        bank.http.post("/api/verifiers", json=judge("'run_aml_check' in trajectory.tool_calls"))
    )
    mine = {"logic": {"conditions": ["'call_a_friend' in trajectory.tool_calls"]}}
    before = bank.http.put(f"/api/verifiers/{made['id']}", json=mine)
    registered(bank, "call_a_friend")
    after = bank.ok(bank.http.put(f"/api/verifiers/{made['id']}", json=mine))

    assert (before.status_code, before.json()["code"]) == (422, "unknown_tool")
    assert after["version"] == 2


def test_a_rule_of_no_environment_is_checked_when_an_evaluation_begins(platform: Running) -> None:
    platform.register("Bank", **BANK)
    platform.ready("CartPole")
    nobodys = judge("'run_aml_chek' in trajectory.tool_calls", environment="")
    platform.ok(platform.http.post("/api/verifiers", json=nobodys))
    asked = {"agent": "random", "verifier_ids": ["v1"], "episodes": 1}

    code, said = refused(platform, "/api/evaluations", environment_name="Bank", **asked)
    trained = refused(platform, "/train/Bank", verifier_ids=["v1"])
    made = platform.ok(
        platform.http.post("/api/evaluations", json={"environment_name": "CartPole", **asked})
    )

    assert (code, trained[0]) == ("unknown_tool", "unknown_tool")
    assert "Did you mean 'run_aml_check'?" in said
    assert "environment 'CartPole' does not list" in str(made["warnings"])


def scenario(**more: object) -> dict[str, object]:
    return {"name": "ut", "environment": "Bank", **more}


@pytest.mark.parametrize(
    ("wrong", "code", "said"),
    [
        (
            {"available_tools": ["run_aml_check", "run_aml_chek"]},
            "unknown_tool",
            "Did you mean 'run_aml_check'?",
        ),
        (
            {"context_injection": {"based_on": "finsim_wire_02"}},
            "unknown_scenario",
            "Did you mean 'finsim_wire_002'?",
        ),
        ({"context_injection": {"based_on": 3}}, "unknown_scenario", "no scenario 3"),
        (
            {"context_injection": {"based_on": VERTICALS["MedSim"].scenarios[0].id}},
            "scenario_of_other_vertical",
            "Name one of FinSim",
        ),
        ({"success_criteria_ref": "nope"}, "unknown_verifier", "there is no verifier 'nope'"),
    ],
)
def test_a_scenario_with_nothing_behind_it_is_refused_when_it_is_written(
    bank: Running, wrong: dict[str, object], code: str, said: str
) -> None:
    made = bank.ok(bank.http.post("/api/scenarios", json=scenario(name="right")))
    changed = bank.http.patch(f"/api/scenarios/{made['id']}", json=wrong)
    found, told = refused(bank, "/api/scenarios", **scenario(**wrong))

    assert found == code
    assert said in told
    assert (changed.status_code, changed.json()["code"]) == (422, code)


def test_a_scenario_may_name_the_ids_of_tools_and_its_environments_verifier(
    bank: Running,
) -> None:
    tool = registered(bank, "mine")
    bank.ok(bank.http.post("/api/verifiers", json=judge("amount < 5")))

    bank.ok(
        bank.http.post(
            "/api/scenarios",
            json=scenario(available_tools=[tool, "mine"], success_criteria_ref="v1"),
        )
    )

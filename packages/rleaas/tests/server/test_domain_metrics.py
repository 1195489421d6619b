from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

import pytest
from rleaas.evaluation.rollouts import RolloutRecord, StepRecord
from rleaas.server.domain_metrics import metrics_of
from rleaas.server.store.kpis import figures
from rleaas.server.store.tables import RolloutRow
from rleaas.sims import VERTICALS, Call, World


def played(*calls: Call) -> RolloutRecord:
    """An episode of FinSim's first wire as a recorder would have it."""
    world = World(VERTICALS["FinSim"])
    world.reset(3, "finsim_wire_001", None)
    steps: list[StepRecord] = []
    for index, call in enumerate(calls):
        arguments = world.suggested(call.tool)
        result = world.call(call.tool, arguments)
        told = {"tool": call.tool, "arguments": dict(arguments), "result": result.value}
        ran = {"tool_calls": [told] if result.ok else []}
        steps.append(StepRecord(index=index, tool=call.tool, ok=result.ok, info=ran))
    return RolloutRecord(id="one", steps=tuple(steps), state=world.state.to_json())


def row(**data: object) -> RolloutRow:
    return RolloutRow(total_reward=1.0, total_steps=2, data=data, created_at=datetime.now(UTC))


def test_a_worlds_episode_is_told_by_the_metrics_of_its_vertical() -> None:
    metrics = metrics_of("sim://FinSim")
    assert metrics is not None

    good = metrics(played(Call("run_aml_check"), Call("approve_transfer")))
    bad = metrics(played(Call("approve_transfer")))

    # No second officer: the amount is far below the limit.
    assert good.keys() == VERTICALS["FinSim"].metrics.keys() - {"second_officer_rate"}
    assert good["aml_compliance_rate"] is True
    assert bad["aml_compliance_rate"] is False
    assert metrics(replace(played(Call("run_aml_check")), error="it broke")) == {}
    assert metrics(RolloutRecord(id="nothing")) == {}


@pytest.mark.parametrize("source", [None, "", "gym://FinSim"])
def test_other_environments_have_none(source: str | None) -> None:
    assert metrics_of(source) is None


def test_figures_have_the_rates_of_a_domain_with_their_intervals() -> None:
    rows = [row(domain_metrics={"aml_compliance_rate": one}) for one in (True,) * 9 + (False,)]

    told = figures([*rows, row(), row(domain_metrics={"aml_compliance_rate": None})])

    assert told["aml_compliance_rate"] == 0.9
    assert told["metrics"] == {"aml_compliance_rate": 0.9}
    intervals = cast("dict[str, list[float] | None]", told["intervals"])
    # 9 of 10: Brown, Cai and DasGupta (2001), table of Wilson's interval.
    assert [round(end, 3) for end in intervals["aml_compliance_rate"] or ()] == [0.596, 0.982]
    assert (told["kyc_check_rate"], told["pass_rate"]) == (None, None)
    assert intervals["pass_rate"] is None


def test_what_a_verifier_passed_counts_before_what_the_environment_says() -> None:
    told = figures([row(passed=False, success=True), row(success=True)])

    assert told["pass_rate"] == 0.5


def test_a_rate_is_of_the_episodes_that_its_rule_is_about() -> None:
    metrics = metrics_of("sim://DevSim")
    assert metrics is not None
    world = World(VERTICALS["DevSim"])

    def idle(scenario: str) -> RolloutRecord:
        world.reset(1, scenario)
        world.call("finish", {})
        return RolloutRecord(id=scenario, steps=(StepRecord(index=0),), state=world.state.to_json())

    told = metrics(idle("devsim_access_001"))

    assert "safe_deploy_rate" not in told  # nothing waits to be deployed
    assert told["sox_compliance_rate"] is False  # the request was left where it lay


def test_figures_say_how_many_episodes_a_rate_is_of() -> None:
    rows = [row(domain_metrics={"aml_compliance_rate": True}), row(domain_metrics={})]

    told = figures(rows)

    assert (told["episodes"], told["applied"]) == (2, {"aml_compliance_rate": 1})

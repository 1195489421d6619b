"""An evaluation on a built-in world: played, judged again, and played again."""

from __future__ import annotations

from pathlib import Path

import pytest
from rleaas import Client
from rleaas.server.local import LocalServer
from rleaas.sims import VERTICALS


@pytest.mark.slow
def test_a_suite_is_played_judged_again_and_made_again(tmp_path: Path) -> None:
    with LocalServer(tmp_path) as server, Client(base_url=server.url) as client:
        env = client.Environment.create("FinSim-Prod-v1", vertical="FinSim")
        env.wait_until_ready(60)
        rule = client.Verifier.create(
            "AML",
            verifier_type="rule_based",
            environment="FinSim-Prod-v1",
            config={"conditions": ["'run_aml_check' in trajectory.tool_calls"]},
        )
        evaluation = client.Evaluation.run(
            agent="random",
            environment_name="FinSim-Prod-v1",
            scenario_suite_id="suite_eval_01",
            verifier_ids=[rule.id],
            seeds=[0, 1],
            num_workers=2,
        )
        report = evaluation.wait_until_complete(40, 0.2, progress=False)
        other = client.Verifier.create(
            "short",
            verifier_type="rule_based",
            config={"conditions": ["trajectory.length >= 0"]},
        )
        judged = client.Evaluation.rescore(report, [other]).wait_until_complete(
            40, 0.2, progress=False
        )
        client.Verifier.get(rule.id).update(
            logic={"conditions": ["not ('run_aml_check' in trajectory.tool_calls)"]}
        )
        again = client.Evaluation.reproduce(report, 40, 0.2)
        kept = client.Evaluation.list_rollouts("FinSim-Prod-v1")

    scenarios = len(report.scenario_ids)
    assert (report.asked, report.scored, report.failed) == (2 * scenarios, 2 * scenarios, 0)
    score = report["overall_score"]
    assert isinstance(score, float)
    assert score < 0.5
    assert report.verifier_breakdown.keys() == {rule.id}
    assert (judged.overall_score, judged.source_evaluation_id) == (1.0, report.id)
    assert [one.steps for one in judged.episodes] == [one.steps for one in report.episodes]
    assert again.verdict == "different"
    assert [one["what"] for one in again.changes] == [f"verifiers.{rule.id}"]
    assert again.overall_score == {"original": score, "reproduction": pytest.approx(1 - score)}
    assert len(kept) >= 2 * scenarios


@pytest.mark.slow
def test_a_scenario_that_names_no_case_is_played_on_a_held_out_one_and_the_report_says_which(
    tmp_path: Path,
) -> None:
    with LocalServer(tmp_path) as server, Client(base_url=server.url) as client:
        env = client.Environment.create("FinSim-Prod-v1", vertical="FinSim")
        env.wait_until_ready(60)
        own = client.Scenario.create(
            "mine", tier=1, task_prompt="Reject everything", env_name=env.name
        )
        report = client.Evaluation.run(
            agent="random", environment_name=env.name, scenario_ids=[own.id], seeds=[0]
        ).wait_until_complete(60, 0.2, progress=False)

    (said,) = [one for one in report.warnings if "names no case" in one]
    held_out = [one for one in VERTICALS["FinSim"].scenarios if one.split == "evaluation"]
    assert [one.id for one in held_out if f"{one.id} of the evaluation half" in said]

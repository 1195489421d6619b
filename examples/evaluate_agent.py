"""Evaluate a trained agent on the held-out suite, beside a random one; compare, and sign a report.

Needs a server with a checkpoint of FinSim-Prod-v1 (`python examples/train_agent.py`; without one a
short training comes first), and RLEAAS_BASE_URL if it is not at http://localhost:8000.
"""

import tempfile
from pathlib import Path

from rleaas import Client

NAME = "FinSim-Prod-v1"

folder = Path(tempfile.mkdtemp())
with Client() as client:
    client.Environment.create(NAME, vertical="FinSim").wait_until_ready()
    jobs = [
        one
        for one in client.TrainingJob.list()
        if one.environment_name == NAME and one.status == "completed"
    ]
    if not jobs:
        job = client.TrainingJob.run(
            environment_name=NAME,
            algorithm="GRPO",
            config={"episodes": 6000, "max_steps_per_episode": 20},
            seed=7,
        )
        jobs = [job.wait_until_complete()]
    best = jobs[0].get_best_checkpoint()

    verifiers = ["finsim_aml_check", "finsim_kyc_check"]
    random = client.Evaluation.run(
        agent="random",
        environment_name=NAME,
        scenario_suite_id="suite_eval_01",
        verifier_ids=verifiers,
        seeds=range(5),
    )
    trained = client.Evaluation.run(
        agent_checkpoint_id=best.id,
        scenario_suite_id="suite_eval_01",
        verifier_ids=verifiers,
        seeds=range(5),
    )
    for label, evaluation in (("random", random), ("trained", trained)):
        report = evaluation.wait_until_complete()
        print(f"{label}: {report.scored} of {report.asked} episodes scored")
        print(f"  overall score {report.overall_score:.2f}, 95 % {report.score_interval}")
        print(f"  passed {report.pass_rate:.0%}, 95 % {report.pass_interval}")
        for name, found in report.verifier_breakdown.items():
            print(f"  {name}: {found}")
        page = folder / f"{label}.html"
        page.write_text(report.to_html(), encoding="utf-8")
        print(f"  as a page: {page}")

    comparison = client.Evaluation.compare(
        environment_name=NAME, baseline_id=random.id, trained_id=trained.id
    )
    print(f"delta {comparison.delta:+.2f}: the winner is {comparison.winner}")
    for rollout in client.Evaluation.list_rollouts(NAME)[:2]:
        whole = client.Evaluation.get_rollout(rollout.id, NAME)
        calls = ", ".join(str(step.get("tool")) for step in whole.steps)
        print(f"  {rollout.scenario_id}: {calls}")

    signed = client.Evaluation.export_audit_report(
        evaluation_id=trained.id, format="pdf", signature=True
    )
    path = client.Evaluation.download_report(signed, folder / "audit.pdf")
    print(f"signed report: {path}, SHA-256 {signed.sha256[:12]}…")
    print("check it: rleaas audit verify-report", path)

"""The four types of verifiers: rules, the order of actions, a language model, and all together.

Needs a server: `rleaas serve`, and RLEAAS_BASE_URL if it is not at http://localhost:8000. The
language model judges where the server has one: `rleaas serve --judge-url URL --judge-model NAME`.
"""

from rleaas import Client, Error

NAME = "FinSim-Verifiers"
CAREFUL = [{"tool": "run_aml_check"}, {"tool": "screen_sanctions"}, {"tool": "block_transfer"}]
HASTY = [{"tool": "approve_transfer"}]

with Client() as client:
    client.Environment.create(NAME, vertical="FinSim").wait_until_ready()

    rule = client.Verifier.create(
        "AML check",
        "rule_based",
        NAME,
        config={
            "conditions": [
                "'run_aml_check' in trajectory.tool_calls",
                "transfer_amount <= 200000 OR decision != 'approved'",
            ],
            "condition_logic": "AND",
        },
    )
    order = client.Verifier.create(
        "Check, then decide",
        "trajectory_based",
        NAME,
        config={
            "required_actions": ["run_aml_check", "screen_sanctions"],
            "ordering_constraints": [{"before": "run_aml_check", "after": "block_transfer"}],
            "forbidden_actions": ["notify_customer"],
            "max_allowed_steps": 12,
        },
    )
    model = client.Verifier.create(
        "Reads like an officer",
        "llm_judge",
        NAME,
        config={
            "evaluation_prompt": "Would a compliance officer sign this off?",
            "scoring_rubric": {"scale": "1-5", "dimensions": ["accuracy", "compliance"]},
            "score_to_reward_mapping": {"5": 1.0, "4": 0.8, "3": 0.5, "2": 0.2, "1": 0.0},
        },
    )
    both = client.Verifier.create(
        "Careful",
        "composite",
        NAME,
        config={
            "components": [
                {"verifier_id": rule.id, "weight": 0.6, "floor": 1.0},
                {"verifier_id": order.id, "weight": 0.4},
            ],
            "overall_pass_threshold": 0.75,
        },
    )

    state = {"transfer_amount": 250_000, "decision": "blocked"}
    for verifier in (rule, order, both, model):
        print(f"{verifier.name} ({verifier.type}, version {verifier.version})")
        for label, trajectory in (("careful", CAREFUL), ("hasty", HASTY)):
            try:
                verdict = verifier.test(state=state, trajectory=trajectory)
                print(f"  {label:8} {verdict.score:.2f}  {verdict.explanation}")
            except Error as error:  # a judge that cannot judge gives no score
                print(f"  {label:8} no score: {error}")

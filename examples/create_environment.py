"""Create an environment, a verifier that judges it, scenarios, and suites to train and judge on.

Needs a server: `rleaas serve`, and RLEAAS_BASE_URL if it is not at http://localhost:8000.
"""

from rleaas import Client, ConflictError

NAME = "FinSim-Europe"

with Client() as client:
    # A bank under European rules, with scenarios of the first three tiers.
    environment = client.Environment.create(
        NAME, vertical="FinSim", config={"jurisdiction": "EU", "complexity_ceiling": 3}
    )
    environment.wait_until_ready()
    print(f"{environment.name}@{environment.version} is {environment.status}")

    verifier = client.Verifier.create(
        name="Checked before it was paid",
        verifier_type="rule_based",
        environment=NAME,
        config={
            "conditions": [
                "'run_aml_check' in trajectory.tool_calls",
                "'screen_sanctions' in trajectory.tool_calls or decision != 'approved'",
            ],
            "condition_logic": "AND",
        },
    )
    print(f"{verifier.name}: version {verifier.version}")

    library = client.Scenario.library(vertical="FinSim", tier=[1, 2], limit=100)
    print(f"{len(library)} scenarios of tiers 1 and 2 in the library, such as:")
    for entry in library[:3]:
        print(f"  {entry.id:24} tier {entry.tier}  {entry.title}")

    # A scenario of your own: the library's, with another amount and another prompt.
    own = client.Scenario.create(
        "A wire on a Friday evening",
        env_name=NAME,
        tier=2,
        task_prompt="It is 17:55. {case[customer_name]} wants this wire out before the weekend.",
        context_injection={"based_on": library[-1].id},
        success_criteria_ref=verifier.id,
        tags=["friday"],
    )
    training = [one for one in library if one.purpose == "training"]
    held_out = [one for one in library if one.purpose == "evaluation"]
    train = client.ScenarioSuite.create(
        "Europe: train", [*(one.id for one in training), own.id], env_name=NAME, purpose="training"
    )
    judge = client.ScenarioSuite.create(
        "Europe: judge", [one.id for one in held_out], env_name=NAME, purpose="evaluation"
    )
    for suite in (train, judge):
        print(f"{suite.id}  {suite.purpose:10} {len(suite.scenario_ids)} scenarios")

    try:
        client.ScenarioSuite.create("Leaks", [held_out[0].id], env_name=NAME, purpose="training")
    except ConflictError as error:
        print("refused:", error)

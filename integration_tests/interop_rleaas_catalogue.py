"""The published tools, agents, verifiers, scenarios and suites, call by call."""

# mypy knows the files of this folder under other names than a script beside them does.
# mypy: disable-error-code="import-not-found,untyped-decorator"

from interop_rleaas_environments import MAIN
from interop_rleaas_world import World, effect, published, raises, told


@effect("ToolsClient.register", "a tool of the environment, with all of its fields")
def register_tool(world: World) -> None:
    made = world.client.Tools.register(
        world.env.id, "wire", "write", "Sends money.", {"type": "object"}, ["AML"], True, "img:1"
    )
    found = world.client.Tools.get(made["id"])
    told(found, name="wire", type="write", environment=MAIN, compliance_tags=["AML"])
    told(found, authorization_required=True, docker_image="img:1", parameters={"type": "object"})
    world.kept.update(tool=made["id"])


@effect("ToolsClient.list", "those of the environment; by category")
def list_tools(world: World) -> None:
    names = {one["name"] for one in world.client.Tools.list(env_id=world.env.id)}
    assert names == {"push", "wire"}
    assert {one["name"] for one in world.client.Tools.list(env_name=MAIN)} == names
    assert len(world.client.Tools.list(category="WRITE", env_name=MAIN)) == 2
    assert world.client.Tools.list(category="search", env_name=MAIN) == []


@effect("ToolsClient.get", "by id and by name; KeyError where there is none")
def get_tool(world: World) -> None:
    assert world.client.Tools.get("wire", env_name=MAIN)["id"] == world.tool
    raises(KeyError, lambda: world.client.Tools.get("nobody"))


@effect("ToolsClient.upsert", "adds what is new and changes what is there")
def upsert_tools(world: World) -> None:
    tools = [{"id": world.tool, "description": "Wires."}, {"id": "tool_b", "name": "read"}]
    told(world.client.Tools.upsert(tools, env_id=world.env.id), created=1, updated=1)
    told(world.client.Tools.get(world.tool), name="wire", description="Wires.", type="write")


@effect("ToolsClient.update", "merges the fields")
def update_tool(world: World) -> None:
    world.client.Tools.update(world.tool, description="Moves money.")
    told(world.client.Tools.get(world.tool), description="Moves money.", name="wire")


@effect("ToolsClient.delete", "it is gone")
def delete_tool(world: World) -> None:
    told(world.client.Tools.delete(world.tool), status="deleted", id=world.tool)
    raises(KeyError, lambda: world.client.Tools.get(world.tool))


@effect(
    "AgentsClient.register",
    "an agent with what the client sends",
    "as promised; framework, model_ref and permissions cannot be cured: never sent (A-1)",
)
def register_agent(world: World) -> None:
    agent = world.client.Agent.register(
        "Balancer", "base-1", compatible_categories=["DevSim"], trainable=False
    )
    told(world.client.Agent.get(agent.id), name="Balancer", base_model="base-1", trainable=False)
    assert world.client.Agent.get(agent.id).compatible_categories == ["DevSim"]
    world.kept.update(agent=agent)


@effect("AgentsClient.get", "the agent; KeyError where there is none")
def get_agent(world: World) -> None:
    assert world.client.Agent.get(world.agent.id).name == "Balancer"
    raises(KeyError, lambda: world.client.Agent.get("agent_none"))


@effect("AgentsClient.list", "every agent")
def list_agents(world: World) -> None:
    assert world.agent.id in [one.id for one in world.client.Agent.list()]


@effect("AgentsClient.configure", "the fields change, and a version is kept")
def configure_agent(world: World) -> None:
    world.client.Agent.configure(world.agent.id, base_model="base-2", framework="custom")
    told(world.client.Agent.get(world.agent.id), base_model="base-2", framework="custom")


@effect("AgentsClient.list_versions", "v1, v2, ... with what was configured")
def list_versions(world: World) -> None:
    found = world.client.Agent.list_versions(world.agent.id)
    assert [one["version"] for one in found] == ["v1", "v2"]
    assert found[0]["config"]["base_model"] == "base-1"


@effect("AgentsClient.rollback", "as it was at that version; an unknown one is refused")
def rollback(world: World) -> None:
    world.client.Agent.rollback(world.agent.id, "v1")
    assert world.client.Agent.get(world.agent.id).base_model == "base-1"
    error = raises(
        published.RLEaaSAPIError, lambda: world.client.Agent.rollback(world.agent.id, "v99")
    )
    assert error.status_code == 404


@effect("AgentsClient.validate", "whether it holds together, check by check")
def validate(world: World) -> None:
    found = world.client.Agent.validate(world.agent.id)
    assert isinstance(found["valid"], bool)
    assert all({"name", "passed", "detail"} <= set(one) for one in found["checks"])


@effect("AgentsClient.deploy", "bound to the environment, under the label")
def deploy_agent(world: World) -> None:
    made = world.client.Agent.deploy(world.agent.id, str(world.env.id), label="canary")
    told(made, agent_id=world.agent.id, label="canary", status="bound", environment=MAIN)
    assert made["deployment_id"]


@effect("AgentResource.configure", "the fields change")
def handle_configure(world: World) -> None:
    world.agent.configure(base_model="base-3")
    assert world.client.Agent.get(world.agent.id).base_model == "base-3"


@effect("AgentResource.list_versions", "its versions")
def handle_list_versions(world: World) -> None:
    assert [one["version"] for one in world.agent.list_versions()][:2] == ["v1", "v2"]


@effect("AgentResource.rollback", "as it was at that version")
def handle_rollback(world: World) -> None:
    world.agent.rollback("v2")
    assert world.client.Agent.get(world.agent.id).base_model == "base-2"


@effect("AgentResource.validate", "whether it holds together")
def handle_validate(world: World) -> None:
    assert "valid" in world.agent.validate()


@effect("AgentResource.deploy", "bound to the environment")
def handle_deploy(world: World) -> None:
    told(world.agent.deploy(MAIN), environment=MAIN, label=None)


@effect("VerifierClient.create", "the verifier, whole")
def create_verifier(world: World) -> None:
    config = {"conditions": ["transfer_amount <= 200000"], "condition_logic": "AND"}
    made = world.client.Verifier.create("AML", "rule_based", MAIN, None, config, "checks", "SAP")
    told(made, name="AML", type="rule_based", environment=MAIN, logic=config, system="SAP")
    told(made, status="active", description="checks")
    world.kept.update(verifier=made)


@effect("VerifierClient.get", "the verifier; VerifierNotFound where there is none")
def get_verifier(world: World) -> None:
    told(world.client.Verifier.get(world.verifier.id), name="AML", logic=world.verifier.logic)
    raises(published.VerifierNotFound, lambda: world.client.Verifier.get("verif_none"))


@effect("VerifierClient.list", "by environment, type (either spelling) and system")
def list_verifiers(world: World) -> None:
    listing = world.client.Verifier.list
    assert world.verifier.id in [one.id for one in listing(environment=MAIN)]
    assert world.verifier.id in [one.id for one in listing(verifier_type="rule-based")]
    assert [one.id for one in listing(system="sap")] == [world.verifier.id]
    assert listing(verifier_type="llm_judge") == []


@effect("VerifierClient.test", "score, passed and breakdown of the episode that was sent")
def judge(world: World) -> None:
    wire = [{"tool": "wire", "arguments": {"transfer_amount": 300_000}}]
    told(world.client.Verifier.test(world.verifier.id, trajectory=wire), score=0.0, passed=False)
    judged = world.client.Verifier.test(world.verifier.id, state={"transfer_amount": 5})
    told(judged, score=1.0, passed=True)
    assert judged["breakdown"]["checks"][0]["passed"] is True
    # This server has no language model: that is said, and nothing is scored.
    question = {"evaluation_prompt": "Polite?"}
    graded = world.client.Verifier.create("tone", "llm_judge", MAIN, None, question)
    refusal = raises(published.RLEaaSAPIError, lambda: world.client.Verifier.test(graded.id))
    assert "no judge configured" in refusal.detail
    world.client.Verifier.delete(graded.id)


@effect("VerifierResource.update", "the field changes, and the record stays whole")
def update_verifier(world: World) -> None:
    world.verifier.update(name="AML 2", description="checks more")
    found = world.client.Verifier.get(world.verifier.id)
    told(found, name="AML 2", description="checks more", logic=world.verifier.logic)


@effect("VerifierResource.duplicate", "another one that judges the same")
def duplicate(world: World) -> None:
    copy = world.verifier.duplicate()
    assert copy.id != world.verifier.id
    told(copy, name="AML 2 (Copy)", logic=world.verifier.logic)
    world.kept.update(copy=copy)


@effect("VerifierResource.disable", "it judges no more; called again, it does")
def disable(world: World) -> None:
    assert world.verifier.disable().status == "disabled"
    assert world.client.Verifier.get(world.verifier.id).status == "disabled"
    assert world.verifier.disable().status == "active"


@effect("VerifierResource.delete", "it is gone")
def handle_delete(world: World) -> None:
    world.copy.delete()
    raises(published.VerifierNotFound, lambda: world.client.Verifier.get(world.copy.id))


@effect("VerifierResource.test", "the same")
def handle_judge(world: World) -> None:
    told(world.verifier.test({"transfer_amount": 5}), score=1.0, passed=True)


@effect("VerifierClient.delete", "it is gone")
def delete_verifier(world: World) -> None:
    told(world.client.Verifier.delete(world.verifier.id), status="deleted")
    raises(published.VerifierNotFound, lambda: world.client.Verifier.get(world.verifier.id))


@effect("ScenarioClient.create", "the scenario, whole")
def create_scenario(world: World) -> None:
    made = world.client.Scenario.create(
        "wire", world.env.id, None, 4, "Send it.", ["push"], 30, {"balance": 3}, None, ["aml"]
    )
    found = world.client.Scenario.get(made["id"])
    told(found, name="wire", tier=4, task_prompt="Send it.", max_steps=30, tags=["aml"])
    told(found, environment=MAIN, context_injection={"balance": 3}, available_tools=["push"])
    world.kept.update(scenario=made["id"])


@effect("ScenarioClient.get", "the scenario; KeyError where there is none")
def get_scenario(world: World) -> None:
    assert world.client.Scenario.get(world.scenario)["name"] == "wire"
    raises(KeyError, lambda: world.client.Scenario.get("scen_none"))


@effect("ScenarioClient.update", "merges the fields")
def update_scenario(world: World) -> None:
    world.client.Scenario.update(world.scenario, tier=2, tags=["kyc"])
    told(world.client.Scenario.get(world.scenario), tier=2, tags=["kyc"], task_prompt="Send it.")


@effect("ScenarioClient.list", "those of the environment, and no suites")
def list_scenarios(world: World) -> None:
    suite = world.client.ScenarioSuite.create("aside", [world.scenario], env_name=MAIN)
    found = [one["id"] for one in world.client.Scenario.list(env_name=MAIN)]
    assert world.scenario in found
    assert suite["id"] not in found
    # What an agent may learn on is held out of nothing.
    world.client.Scenario.delete(suite["id"])


@effect("ScenarioClient.library", "entries of the library that fit, with all that is documented")
def library(world: World) -> None:
    found = world.client.Scenario.library(vertical="FinSim", tier=[1, 2], limit=3)
    assert len(found) == 3
    for one in found:
        assert {"id", "tier", "title", "avg_completion_steps", "tags", "vertical"} <= set(one)
        assert (one["vertical"], one["tier"] in (1, 2)) == ("FinSim", True)
    same = world.client.Scenario.library(tags=found[0]["tags"], limit=1000)
    assert found[0]["id"] in [one["id"] for one in same]


@effect("ScenarioClient.from_library", "a copy in the environment, under an id of its own")
def from_library(world: World) -> None:
    first = world.client.Scenario.library(vertical="FinSim", limit=1)[0]
    made = world.client.Scenario.from_library(first["id"], env_name=MAIN)
    told(made, source="library", environment=MAIN, tier=first["tier"])
    assert made["id"].startswith("scen_")
    world.client.Scenario.delete(made["id"])
    error = raises(
        published.RLEaaSAPIError,
        lambda: world.client.Scenario.from_library("lib_1", env_name=MAIN),
    )
    assert (error.status_code, error.detail) == (404, "Scenario not found")


@effect("ScenarioSuiteClient.create", "the suite with its scenarios in their order")
def create_suite(world: World) -> None:
    first = world.client.Scenario.list(env_name=MAIN)[0]["id"]
    ids = [world.scenario, first]
    made = world.client.ScenarioSuite.create("held out", ids, env_name=MAIN, purpose="evaluation")
    told(made, name="held out", scenario_ids=ids, purpose="evaluation", environment=MAIN)
    world.kept.update(suite=made["id"])


@effect("ScenarioSuiteClient.get", "the suite; KeyError where there is none")
def get_suite(world: World) -> None:
    assert world.client.ScenarioSuite.get(world.suite)["name"] == "held out"
    raises(KeyError, lambda: world.client.ScenarioSuite.get("suite_none"))


@effect("ScenarioSuiteClient.list", "by environment and purpose")
def list_suites(world: World) -> None:
    listing = world.client.ScenarioSuite.list
    assert [one["id"] for one in listing(MAIN, purpose="evaluation")] == [world.suite]
    assert world.suite not in [one["id"] for one in listing(purpose="training")]


@effect("ScenarioClient.delete", "it is gone")
def delete_scenario(world: World) -> None:
    told(world.client.Scenario.delete(world.scenario), status="deleted")
    raises(KeyError, lambda: world.client.Scenario.get(world.scenario))

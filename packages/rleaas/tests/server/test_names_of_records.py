"""Verifiers, scenarios, suites and agents are found by id, else by name."""

import pytest
from rlcore import ConflictError, NotFoundError
from rleaas import Client

from .conftest import Running

NAME = "Wire/transfer & é"


def test_a_name_with_slashes_and_accents_finds_what_an_id_finds(platform: Running) -> None:
    platform.register("E")
    with Client(base_url=platform.server.url) as client:
        verifier = client.Verifier.create(NAME, "rule_based")
        scenario = client.Scenario.create(NAME)
        suite = client.ScenarioSuite.create(NAME, [NAME])
        agent = client.Agent.register(NAME, "m")
        env = client.Environment.get("E")

        assert client.Verifier.get(NAME).id == verifier.id
        assert client.Scenario.get(NAME).id == scenario.id
        assert client.ScenarioSuite.get(NAME).id == suite.id
        assert client.Agent.get(NAME).id == agent.id
        assert suite.scenario_ids == [scenario.id]
        env.attach_verifier(NAME, 2.0)
        assert [one.id for one in env.list_verifiers()] == [verifier.id]
        assert client.Agent.configure(NAME, base_model="n").base_model == "n"
        client.ScenarioSuite.delete(NAME)
        with pytest.raises(NotFoundError):
            client.ScenarioSuite.get(suite.id)


def test_an_id_goes_before_a_name_and_a_name_of_several_is_a_conflict(platform: Running) -> None:
    with Client(base_url=platform.server.url) as client:
        first = client.Verifier.create("a", "rule_based", verifier_id="verif_1")
        client.Verifier.create("verif_1", "rule_based")
        client.Verifier.create("a", "rule_based")

        assert client.Verifier.get("verif_1").id == first.id
        with pytest.raises(ConflictError, match="verif_1") as caught:
            client.Verifier.get("a")
    assert caught.value.code == "ambiguous_name"


def test_a_scenario_that_is_listed_by_name_and_id_is_listed_twice(platform: Running) -> None:
    with Client(base_url=platform.server.url) as client:
        one = client.Scenario.create("s")
        reply = platform.http.post(
            "/api/scenario-suites", json={"name": "x", "scenario_ids": ["s", one.id]}
        )
    assert (reply.status_code, "twice" in reply.text) == (422, True)


@pytest.mark.parametrize("name", ["a\0b", "nothing", "%", "' OR 1=1 --"])
def test_a_name_that_nothing_has_is_missed(platform: Running, name: str) -> None:
    with Client(base_url=platform.server.url) as client, pytest.raises(NotFoundError):
        client.Verifier.get(name)

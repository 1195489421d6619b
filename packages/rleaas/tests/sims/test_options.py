"""The published words of a configuration: each has an effect, or is said to have none."""

from __future__ import annotations

from typing import Any

import pytest
from rlcore import ConfigurationError
from rleaas.sims import VERTICALS, World, make
from rleaas.sims.options import without_effect
from rlmesh.specs import contract_of

every_vertical = pytest.mark.parametrize("name", sorted(VERTICALS))


def records(name: str, **config: Any) -> dict[str, Any]:
    world = World(VERTICALS[name], config)
    world.reset(3, VERTICALS[name].scenarios[0])
    return {key: dict(rows) for key, rows in world.state.tables.items()}


@every_vertical
def test_another_version_of_the_data_is_another_world_and_another_identity(name: str) -> None:
    first, second = records(name), records(name, data_version="2025.2")

    assert records(name, data_version=1) == first
    assert records(name, data_version="2025.2") == second
    assert first != second
    for face in ("discrete", "text"):
        digests = {
            contract_of(make(name, face, data_version=version)).digest
            for version in ("1", "2", "3")
        }
        assert len(digests) == 3
        assert contract_of(make(name, face)).digest in digests


@every_vertical
def test_every_task_can_be_solved_on_another_version_of_the_data(name: str) -> None:
    world = World(VERTICALS[name], {"data_version": "2025.2"})
    for scenario in VERTICALS[name].scenarios:
        world.reset(5, scenario)
        world.play(scenario.reference)
        assert world.succeeded(), scenario.id


def test_a_bank_has_as_many_customers_as_accounts_are_asked_for() -> None:
    assert len(records("FinSim", customer_accounts=40, org_size=8)["accounts"]) == 40
    assert len(records("FinSim", customer_accounts=40)["customers"]) == 40
    assert len(records("FinSim", org_size=8)["accounts"]) == 8


@pytest.mark.parametrize(
    ("said", "expected"),
    [(2, {"finance", "engineering"}), (["north", "south", "west"], {"north", "south", "west"})],
)
def test_people_are_of_the_departments_that_there_are(said: object, expected: set[str]) -> None:
    world = World(VERTICALS["HRSim"], {"departments": said, "org_size": 100})
    world.reset(1)
    pinned = {world.state.case[key] for key in world.state.case if key.endswith("_department")}
    people = world.state.tables["people"].values()
    assert {one["department"] for one in people} - pinned <= expected
    for scenario in VERTICALS["HRSim"].scenarios:
        world.reset(5, scenario)
        world.play(scenario.reference)
        assert world.succeeded(), scenario.id


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("HRSim", {"departments": 1}),
        ("HRSim", {"departments": 7}),
        ("HRSim", {"departments": ["one"]}),
        ("HRSim", {"departments": ["a", "a"]}),
        ("HRSim", {"departments": ["a", 3]}),
        ("HRSim", {"departments": True}),
        ("FinSim", {"customer_accounts": 0}),
        ("FinSim", {"customer_accounts": "many"}),
        ("DevSim", {"data_version": ""}),
        ("DevSim", {"data_version": True}),
        ("DevSim", {"data_version": "x" * 61}),
    ],
)
def test_a_value_that_makes_no_world_is_refused(name: str, config: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        World(VERTICALS[name], config)
    assert caught.value.code == "invalid_config"


def test_a_published_word_without_effect_is_known_to_have_none() -> None:
    said = {"departments": 3, "customer_accounts": 9, "org_size": 5}
    found = {name: without_effect(VERTICALS[name].all_options, said) for name in VERTICALS}

    assert found == {
        "FinSim": ["departments"],
        "HRSim": ["customer_accounts"],
        "DevSim": ["departments", "customer_accounts"],
        "MedSim": ["departments", "customer_accounts"],
    }
    assert records("MedSim", departments=3) == records("MedSim")

"""The library, the suites of it, and what may not be shared between training and evaluation."""

from __future__ import annotations

import pytest
from rleaas import Client
from rleaas.server.rules import library
from rleaas.sims import VERTICALS, make

from .conftest import Running

EVAL, TRAIN = "suite_eval_01", "suite_train_finsim"


def first(purpose: str) -> str:
    return next(one.id for one in VERTICALS["FinSim"].scenarios if one.split == purpose)


def refused(platform: Running, path: str, body: dict[str, object]) -> tuple[int, str, str]:
    reply = platform.http.post(path, json=body)
    told = reply.json()
    return reply.status_code, told["code"], str(told["detail"])


def test_each_vertical_has_a_suite_to_train_on_and_one_that_is_held_out() -> None:
    for name in VERTICALS:
        mine = [one for one in library.suites() if one.vertical == name]
        assert {one.purpose for one in mine} == {"training", "evaluation"}
        ids = [scenario for one in mine for scenario in one.scenario_ids]
        assert sorted(ids) == sorted(one.id for one in VERTICALS[name].scenarios)
    suites = {one.id: one for one in library.suites()}
    assert (suites[EVAL].vertical, suites[EVAL].purpose) == ("FinSim", "evaluation")


def test_the_library_is_found_by_vertical_tier_domain_and_tags(platform: Running) -> None:
    with Client(base_url=platform.server.url) as client:
        some = client.Scenario.library("FinSim", limit=5)
        tiers = client.Scenario.library("finsim", tier=[1, 2], limit=100)
        one = VERTICALS["FinSim"].scenarios[0]
        same = client.Scenario.library(domain=one.domain, tags=list(one.tags), limit=100)
        nothing = client.Scenario.library("NoSim")
        whole = client.Scenario.get(one.id)

    assert len(some) == 5
    assert {found.tier for found in tiers} == {1, 2}
    assert one.id in [found.id for found in same]
    assert nothing == []
    assert (whole.id, whole.name, whole["avg_completion_steps"]) == (
        one.id,
        one.title,
        len(one.reference),
    )


def test_a_copy_from_the_library_is_the_users_own_and_plays_the_same(platform: Running) -> None:
    platform.register("Fin")
    original = VERTICALS["FinSim"].scenarios[0]
    with Client(base_url=platform.server.url) as client:
        copy = client.Scenario.from_library(original.id, env_name="Fin")
        client.Scenario.update(copy.id, name="Ours")

    assert copy.id.startswith("scen_")
    assert (copy.source, copy.environment) == ("library", "Fin")
    assert copy.context_injection == {"based_on": original.id}
    env = make("FinSim")
    told = {"id": copy.id, "tier": copy.tier, "context_injection": copy.context_injection}
    _, ours = env.reset(seed=3, options={"scenario": told})
    _, theirs = env.reset(seed=3, options={"scenario": original.id})
    assert ours["state"] == theirs["state"]


@pytest.mark.parametrize("purpose", ["training", "evaluation"])
def test_no_suite_has_a_scenario_of_the_other_purpose(platform: Running, purpose: str) -> None:
    other = "evaluation" if purpose == "training" else "training"
    theirs = first(other)
    with Client(base_url=platform.server.url) as client:
        copy = client.Scenario.from_library(theirs)
    for one in (theirs, copy.id):
        body: dict[str, object] = {"name": "mine", "scenario_ids": [one], "purpose": purpose}
        status, code, detail = refused(platform, "/api/scenario-suites", body)
        assert (status, code) == (409, "scenarios_shared")
        assert one in detail
        assert theirs in detail


def test_scenarios_of_the_same_content_are_the_same_one(platform: Running) -> None:
    for one in ("s1", "s2"):
        body = {"id": one, "name": one, "task_prompt": "Wire 5 to Ana", "tags": [one]}
        platform.ok(platform.http.post("/api/scenarios", json=body))
    suite: dict[str, object] = {"id": "u1", "name": "train", "scenario_ids": ["s1"]}
    platform.ok(platform.http.post("/api/scenario-suites", json=suite))

    held: dict[str, object] = {"name": "held", "scenario_ids": ["s2"], "purpose": "evaluation"}
    status, code, detail = refused(platform, "/api/scenario-suites", held)

    assert (status, code) == (409, "scenarios_shared")
    assert "s2 (as s1)" in detail
    turned = platform.http.patch("/api/scenario-suites/u1", json={"purpose": "evaluation"})
    assert turned.status_code == 200


def test_nothing_trains_on_a_scenario_that_is_held_out(platform: Running) -> None:
    platform.ready()
    for scenario in (EVAL, first("evaluation")):
        status, code, _ = refused(platform, "/train/CartPole", {"scenario_id": scenario})
        assert (status, code in ("evaluation_suite", "scenarios_shared")) == (409, True)
    job = platform.ok(platform.http.post("/train/CartPole", json={"scenario_id": TRAIN}))
    assert job["scenario_id"] == TRAIN


def test_what_is_built_in_stays_as_it_is(platform: Running) -> None:
    for body in ({"id": EVAL, "name": "mine"}, {"id": first("training"), "name": "mine"}):
        reply = platform.http.post("/api/scenarios", json=body)
        assert (reply.status_code, reply.json()["code"][-9:]) == (409, "read_only")
    for path in (f"/api/scenario-suites/{EVAL}", f"/api/scenarios/{first('training')}"):
        assert platform.http.patch(path, json={"name": "mine"}).status_code == 409
        assert platform.http.delete(path).status_code == 409
    shown = platform.ok(platform.http.get(f"/api/scenario-suites/{EVAL}"))
    assert shown["name"] == "FinSim evaluation"


def test_suites_come_in_pages_the_built_in_ones_last(platform: Running) -> None:
    for one in ("u1", "u2"):
        suite: dict[str, object] = {"id": one, "name": one, "scenario_ids": []}
        platform.ok(platform.http.post("/api/scenario-suites", json=suite))
    seen: list[object] = []
    cursor: object = ""
    while cursor is not None:
        query = {"limit": "3", "cursor": str(cursor)}
        page = platform.ok(platform.http.get("/api/scenario-suites", params=query))
        seen += [one["id"] for one in platform.listed(page, "suites")]
        cursor = page["cursor"]

    assert seen == ["u1", "u2", *(one.id for one in library.suites())]


def test_an_evaluation_keeps_its_suite_as_it_was(platform: Running) -> None:
    platform.ready()
    for one in ("s1", "s2"):
        platform.ok(platform.http.post("/api/scenarios", json={"id": one, "name": one}))
    suite = {"id": "u1", "name": "u", "scenario_ids": ["s1", "s2"], "purpose": "evaluation"}
    platform.ok(platform.http.post("/api/scenario-suites", json=suite))
    asked = {"agent": "random", "environment_name": "CartPole", "scenario_suite_id": "u1"}

    before = platform.ok(platform.http.post("/api/evaluations", json=asked))
    platform.ok(platform.http.delete("/api/scenarios/s2"))
    after = platform.ok(platform.http.post("/api/evaluations", json={**asked, "seeds": [1]}))

    assert (before["scenario_suite_version"], before["scenario_ids"]) == (1, ["s1", "s2"])
    assert (before["asked"], before["seeds"]) == (10, [0, 1, 2, 3, 4])
    assert (after["scenario_suite_version"], after["scenario_ids"]) == (2, ["s1"])


def test_a_suite_whose_scenario_went_with_its_environment_is_refused(platform: Running) -> None:
    platform.ready()
    platform.register("Gone", source="custom")
    body = {"id": "s1", "name": "s1", "environment": "Gone"}
    platform.ok(platform.http.post("/api/scenarios", json=body))
    suite = {"id": "u1", "name": "u", "scenario_ids": ["s1"], "purpose": "evaluation"}
    platform.ok(platform.http.post("/api/scenario-suites", json=suite))
    platform.ok(platform.http.delete("/api/custom-environments/Gone"))
    asked = {"agent": "random", "environment_name": "CartPole", "scenario_suite_id": "u1"}

    reply = platform.http.post("/api/evaluations", json=asked)

    assert (reply.status_code, reply.json()["code"]) == (404, "scenario_not_found")
    assert "was deleted" in reply.text


def test_a_verifier_of_another_environment_judges_only_where_it_is_attached(
    platform: Running,
) -> None:
    platform.ready()
    platform.register("Other", source="custom")
    judge = {
        "id": "v1",
        "name": "v",
        "type": "rule_based",
        "environment": "Other",
        "config": {"conditions": ["trajectory.length <= 9"]},
    }
    platform.ok(platform.http.post("/api/verifiers", json=judge))
    asked: dict[str, object] = {
        "agent": "random",
        "environment_name": "CartPole",
        "verifier_ids": ["v1"],
        "episodes": 2,
    }

    status, code, detail = refused(platform, "/api/evaluations", asked)
    assert (status, code) == (422, "verifier_of_other_environment")
    assert "'Other'" in detail
    attached = {"verifier_id": "v1"}
    platform.ok(platform.http.post("/api/environments/CartPole/verifiers", json=attached))
    made = platform.ok(platform.http.post("/api/evaluations", json=asked))
    assert made["verifier_ids"] == ["v1"]
    assert made["warnings"] == ["verifier 'v1' was not audited: how often it is wrong is not known"]


def test_a_suite_of_another_vertical_is_refused(platform: Running) -> None:
    platform.ready()
    platform.ok(
        platform.http.put("/api/environments/CartPole/category", json={"category": "MedSim"})
    )
    asked: dict[str, object] = {
        "agent": "random",
        "environment_name": "CartPole",
        "scenario_suite_id": EVAL,
    }
    status, code, _ = refused(platform, "/api/evaluations", asked)
    assert (status, code) == (422, "scenario_of_other_vertical")

import math

import pytest

from .conftest import Running

NONSENSE: list[dict[str, object]] = [
    {"type": "oracle"},
    {"status": "sleeping"},
    {"name": ""},
    {"logic": []},
    {"failure_policy": {"penalty": "much"}},
    {"failure_policy": {"unknown": 1}},
    {"id": "a\0b"},
]

RULE: dict[str, object] = {
    "id": "verif_rule_1",
    "name": "under the limit",
    "type": "rule_based",
    "logic": {"conditions": ["amount <= 200000"]},
}


def create(platform: Running, **fields: object) -> dict[str, object]:
    return platform.ok(platform.http.post("/api/verifiers", json={**RULE, **fields}))


def get(platform: Running, verifier_id: str = "verif_rule_1") -> dict[str, object]:
    return platform.ok(platform.http.get(f"/api/verifiers/{verifier_id}"))


def ids(platform: Running, **query: str) -> list[object]:
    page = platform.ok(platform.http.get("/api/verifiers", params=query))
    return [one["id"] for one in platform.listed(page, "verifiers")]


def test_a_new_verifier_is_active_with_a_policy_and_version_1(platform: Running) -> None:
    made = create(platform)

    assert (made["status"], made["version"], made["environment"]) == ("active", 1, "")
    assert made["failure_policy"] == {"hard_fail": False, "penalty": 0.0, "log_failure": True}
    assert get(platform) == made


def test_a_repeated_create_changes_the_same_verifier_and_makes_no_version(
    platform: Running,
) -> None:
    create(platform)
    again = create(platform, name="renamed")

    assert (again["version"], again["name"]) == (1, "renamed")
    assert ids(platform) == ["verif_rule_1"]


def test_what_a_verifier_judges_by_makes_a_version(platform: Running) -> None:
    create(platform)
    changed = platform.ok(
        platform.http.put("/api/verifiers/verif_rule_1", json={"logic": {"conditions": []}})
    )
    platform.http.put("/api/verifiers/verif_rule_1", json={"failure_policy": {"penalty": -1.0}})

    versions = platform.ok(platform.http.get("/api/verifiers/verif_rule_1/versions"))
    assert changed["version"] == 2
    assert [one["logic"] for one in platform.listed(versions, "versions")] == [
        RULE["logic"],
        {"conditions": []},
        {"conditions": []},
    ]
    assert get(platform)["failure_policy"] == {
        "hard_fail": False,
        "penalty": -1.0,
        "log_failure": True,
    }


# defect: F-17
def test_a_record_that_is_put_back_changed_is_answered_whole(platform: Running) -> None:
    platform.register("A")
    record = create(platform, environment="A", threshold=0.9)

    changed = platform.ok(
        platform.http.put("/api/verifiers/verif_rule_1", json={**record, "description": "new"})
    )

    assert {**record, "description": "new", "updated_at": changed["updated_at"]} == changed
    assert (changed["threshold"], changed["environment"], changed["version"]) == (0.9, "A", 1)


@pytest.mark.parametrize(
    ("given", "stored"),
    [("rule-based", "rule_based"), ("LLM-Judge", "llm_judge"), ("composite", "composite")],
)
def test_both_spellings_of_a_type_are_one(platform: Running, given: str, stored: str) -> None:
    assert create(platform, type=given)["type"] == stored
    assert ids(platform, type=given) == ["verif_rule_1"]
    assert ids(platform, type="trajectory-based") == []


# defect: P-7
def test_a_verifier_that_makes_no_sense_is_refused(platform: Running) -> None:
    for wrong in NONSENSE:
        assert platform.http.post("/api/verifiers", json={**RULE, **wrong}).status_code == 422
        assert ids(platform) == []


def test_a_verifier_without_name_or_type_is_refused(platform: Running) -> None:
    reply = platform.http.post("/api/verifiers", json={"name": "x"})

    assert (reply.status_code, reply.json()["code"]) == (422, "verifier_incomplete")


# defect: F-19
def test_the_state_is_set_on_its_own_route_and_toggled_on_the_inherited_one(
    platform: Running,
) -> None:
    create(platform)
    path = "/api/verifiers/verif_rule_1"

    for _ in range(2):
        said = platform.ok(platform.http.put(f"{path}/enabled", json={"enabled": False}))
        assert said["status"] == "disabled"
    toggled = [platform.ok(platform.http.patch(f"{path}/disable"))["status"] for _ in range(2)]

    assert toggled == ["active", "disabled"]
    assert platform.audited("verifier:verif_rule_1") == [
        "verifier.created",
        "verifier.disabled",
        "verifier.enabled",
        "verifier.disabled",
    ]


def test_a_duplicate_judges_the_same_under_an_id_of_its_own(platform: Running) -> None:
    platform.register("A")
    create(platform, environment="A")
    platform.http.put("/api/verifiers/verif_rule_1", json={"logic": {"conditions": ["x == 1"]}})

    made = platform.ok(platform.http.post("/api/verifiers/verif_rule_1/duplicate"))

    assert (made["name"], made["version"]) == ("under the limit (Copy)", 1)
    assert made["logic"] == {"conditions": ["x == 1"]}
    assert made["environment"] == "A"
    assert str(made["id"]).startswith("verif_rule_")
    assert made["id"] != "verif_rule_1"


def test_testing_without_an_engine_scores_nothing(platform: Running) -> None:
    create(platform)

    reply = platform.http.post("/api/verifiers/verif_rule_1/test", json={"state": {}})

    assert (reply.status_code, reply.json()["code"]) == (501, "verifier_engine_missing")
    assert platform.http.post("/api/verifiers/nope/test", json={}).status_code == 404


def test_an_attached_verifier_has_a_weight_and_can_be_detached(platform: Running) -> None:
    platform.register("A")
    create(platform)
    path = "/api/environments/A/verifiers"
    attach = {"verifier_id": "verif_rule_1", "weight": 0.4}

    platform.ok(platform.http.post(path, json=attach))
    platform.ok(platform.http.post(path, json={**attach, "weight": 0.6}))

    (one,) = platform.listed(platform.ok(platform.http.get(path)), "verifiers")
    assert (one["verifier_id"], one["weight"]) == ("verif_rule_1", 0.6)
    assert ids(platform, environment="A") == ["verif_rule_1"]
    platform.ok(platform.http.delete(f"{path}/verif_rule_1"))
    assert ids(platform, environment="A") == []
    again = platform.http.delete(f"{path}/verif_rule_1")
    assert (again.status_code, again.json()["code"]) == (404, "verifier_not_attached")


@pytest.mark.parametrize("weight", [0, -1, "heavy", math.inf])
def test_a_weight_is_a_positive_number(platform: Running, weight: str | float) -> None:
    platform.register("A")
    create(platform)
    text = {"heavy": '"heavy"', math.inf: "1e999"}.get(weight, str(weight))

    reply = platform.http.post(
        "/api/environments/A/verifiers",
        content=f'{{"verifier_id": "verif_rule_1", "weight": {text}}}',
        headers={"content-type": "application/json"},
    )

    assert reply.status_code == 422


def test_attaching_what_does_not_exist_names_the_missing_thing(platform: Running) -> None:
    platform.register("A")
    create(platform)

    nowhere = platform.http.post(
        "/api/environments/B/verifiers", json={"verifier_id": "verif_rule_1"}
    )
    nothing = platform.http.post("/api/environments/A/verifiers", json={"verifier_id": "training"})

    assert (nowhere.json()["kind"], nothing.json()["kind"]) == ("environment", "verifier")
    assert nothing.json()["detail"] == "Verifier not found"


def test_cloned_verifiers_are_new_ones_with_the_same_weights(platform: Running) -> None:
    for name in ("A", "B"):
        platform.register(name)
    create(platform)
    create(platform, id="v2", environment="A")
    platform.http.post(
        "/api/environments/A/verifiers", json={"verifier_id": "verif_rule_1", "weight": 0.3}
    )

    told = platform.ok(
        platform.http.post("/api/environments/B/clone-verifiers", json={"source": "A"})
    )

    assert told["cloned"] == 2
    attached = platform.ok(platform.http.get("/api/environments/B/verifiers"))
    (one,) = platform.listed(attached, "verifiers")
    assert (one["weight"], one["source"], one["environment"]) == (0.3, "cloned", "B")
    assert len(ids(platform, environment="B")) == 2
    assert set(ids(platform, environment="A")) == {"verif_rule_1", "v2"}


def test_a_verifier_outlives_its_environment_but_its_attachment_does_not(
    platform: Running,
) -> None:
    platform.register("A")
    create(platform, environment="A")
    platform.http.post("/api/environments/A/verifiers", json={"verifier_id": "verif_rule_1"})

    platform.ok(platform.http.delete("/api/custom-environments/A"))

    assert get(platform)["environment"] == ""
    assert platform.ok(platform.http.delete("/api/verifiers/verif_rule_1"))["status"] == "deleted"
    assert platform.http.get("/api/verifiers/verif_rule_1").status_code == 404


def test_systems_are_compared_whatever_the_case(platform: Running) -> None:
    create(platform, system="Core Banking")

    assert ids(platform, system="core banking") == ["verif_rule_1"]
    assert ids(platform, system="other") == []

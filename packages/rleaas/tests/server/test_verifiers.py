import math
import threading
import time

import pytest
from rlcore import InvalidRequestError
from rleaas import Client

from .conftest import Running

NONSENSE: list[dict[str, object]] = [
    {"type": "oracle"},
    {"status": "sleeping"},
    {"name": ""},
    {"logic": []},
    {"failure_policy": {"penalty": "much"}},
    {"failure_policy": {"unknown": 1}},
    {"failure_policy": {"hard_fail": "yes"}},
    {"failure_policy": {"penalty": 1.0}},
    {"logic": {"conditions": []}},
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
    assert get(platform) == {**made, "audited": False}


def test_a_misspelt_key_of_a_policy_is_refused_with_the_nearest_one(platform: Running) -> None:
    reply = platform.http.post("/api/verifiers", json={**RULE, "failure_policy": {"hrad_fail": 1}})

    assert reply.status_code == 422
    assert "Did you mean 'hard_fail'?" in reply.text


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
        platform.http.put(
            "/api/verifiers/verif_rule_1", json={"logic": {"conditions": ["amount <= 9"]}}
        )
    )
    platform.http.put("/api/verifiers/verif_rule_1", json={"failure_policy": {"penalty": -1.0}})

    versions = platform.ok(platform.http.get("/api/verifiers/verif_rule_1/versions"))
    assert changed["version"] == 2
    assert [one["logic"] for one in platform.listed(versions, "versions")] == [
        RULE["logic"],
        {"conditions": ["amount <= 9"]},
        {"conditions": ["amount <= 9"]},
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
    assert create(platform, type=given, logic={})["type"] == stored
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


def test_a_condition_that_cannot_be_read_is_refused_when_it_is_written(platform: Running) -> None:
    logic = {"conditions": ["amount <= 200000", "amount =< 3"]}
    created = platform.http.post("/api/verifiers", json={**RULE, "logic": logic})
    create(platform)
    changed = platform.http.put("/api/verifiers/verif_rule_1", json={"logic": logic})

    for reply in (created, changed):
        problem = reply.json()
        assert (reply.status_code, problem["code"]) == (422, "invalid_expression")
        assert problem["detail"] == (
            "verifier 'under the limit': condition 2: '=' compares nothing here\n"
            "  amount =< 3\n"
            "         ^"
        )
    assert (get(platform)["version"], get(platform)["logic"]) == (1, RULE["logic"])


def judged(platform: Running, verifier_id: str, **episode: object) -> dict[str, object]:
    return platform.ok(platform.http.post(f"/api/verifiers/{verifier_id}/test", json=episode))


def test_an_episode_that_is_sent_along_is_judged(platform: Running) -> None:
    create(platform)
    order = {"required_actions": ["kyc", "wire"]}
    create(platform, id="v_order", type="trajectory_based", logic=order)
    parts = [{"verifier_id": "verif_rule_1", "weight": 0.4}, {"verifier_id": "v_order"}]
    create(platform, id="v_all", type="composite", logic={"components": parts})
    trajectory = [{"tool": "kyc"}, {"tool": "wire", "arguments": {"amount": 300_000}}]

    rule = judged(platform, "verif_rule_1", trajectory=trajectory)
    whole = judged(platform, "v_all", trajectory=trajectory, state={"amount": 10})

    assert (rule["score"], rule["passed"], rule["version"]) == (0.0, False, 1)
    assert rule["explanation"] == "0 of 1 conditions hold: amount <= 200000"
    assert (whole["score"], whole["passed"]) == (1.0, True)


def test_a_verifier_that_cannot_judge_scores_nothing(platform: Running) -> None:
    create(platform, id="judge", type="llm_judge", logic={"evaluation_prompt": "Good?"})
    create(platform, id="person", type="human_evaluation", logic={})
    create(platform, id="empty", logic={})

    codes = {
        one: platform.http.post(f"/api/verifiers/{one}/test", json={"state": {}}).json()["code"]
        for one in ("judge", "person", "empty", "nobody")
    }

    assert codes == {
        "judge": "no_judge_configured",
        "person": "verifier_engine_missing",
        "empty": "verifier_incomplete",
        "nobody": "verifier_not_found",
    }


def test_verifiers_that_come_to_contain_each_other_are_refused(platform: Running) -> None:
    create(platform)
    create(platform, id="b", type="composite", logic={"components": [{"verifier_id": RULE["id"]}]})
    create(platform, id="a", type="composite", logic={"components": [{"verifier_id": "b"}]})

    change = {"logic": {"components": [{"verifier_id": "a"}]}}
    reply = platform.http.put("/api/verifiers/b", json=change)

    assert (reply.status_code, reply.json()["code"]) == (422, "verifier_cycle")
    assert "b -> a -> b" in reply.json()["detail"]
    assert get(platform, "b")["version"] == 1


def test_a_composite_of_what_is_not_there_is_refused_when_it_is_written(platform: Running) -> None:
    create(platform)
    whole = {"name": "all", "type": "composite", "logic": {"components": [{"verifier_id": "gone"}]}}
    sound = {"components": [{"verifier_id": RULE["id"]}]}
    create(platform, id="sound", type="composite", logic=sound)

    for reply in (
        platform.http.post("/api/verifiers", json=whole),
        platform.http.put("/api/verifiers/sound", json={"logic": whole["logic"]}),
    ):
        assert (reply.status_code, reply.json()["code"]) == (422, "invalid_verifier")
        assert "there is no verifier 'gone'" in reply.json()["detail"]
    assert get(platform, "sound")["logic"] == sound


def test_a_verifier_in_use_is_not_deleted_and_says_whose_component_it_is(platform: Running) -> None:
    create(platform)
    create(
        platform, id="all", type="composite", logic={"components": [{"verifier_id": RULE["id"]}]}
    )

    reply = platform.http.delete(f"/api/verifiers/{RULE['id']}")

    assert (reply.status_code, reply.json()["code"]) == (409, "verifier_in_use")
    assert "is a component of 'all'" in reply.json()["detail"]
    platform.ok(platform.http.delete("/api/verifiers/all"))
    platform.ok(platform.http.delete(f"/api/verifiers/{RULE['id']}"))


# One test froze the server for minutes.
def test_the_server_answers_while_it_judges_what_was_made_to_take_long(platform: Running) -> None:
    many = f"a in [{','.join(['b'] * 900)}]"
    create(platform, id="slow", logic={"conditions": [many]})
    state = {"a": [0] * 240_000, "b": [*[0] * 239_999, 1]}
    worst, over = 0.0, threading.Event()

    def ask() -> None:
        nonlocal worst
        while not over.is_set():
            began = time.monotonic()
            platform.http.get("/healthz")
            worst = max(worst, time.monotonic() - began)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        verdict = judged(platform, "slow", state=state)
    finally:
        over.set()
        asking.join()

    assert (verdict["score"], verdict["passed"]) == (0.0, False)
    assert worst < 3  # 0.1 s on a quiet machine
    too_large = {"state": {"a": [0] * 1_100_000}}
    assert platform.http.post("/api/verifiers/slow/test", json=too_large).status_code == 413


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


def test_a_caret_that_came_over_http_stands_alone_on_its_line(platform: Running) -> None:
    with Client(base_url=platform.server.url) as client, pytest.raises(InvalidRequestError) as told:
        client.Verifier.create("v", "rule_based", config={"conditions": ["'a in x"]})

    lines = str(told.value).splitlines()
    assert lines[1:3] == ["  'a in x", "  ^"]
    assert lines[3].startswith("Text ends on the line where it begins")


def test_names_that_are_too_long_are_refused(platform: Running) -> None:
    long = "x" * 10_000

    assert platform.http.post("/api/verifiers", json={**RULE, "name": long}).status_code == 422
    asked = {"agent": "random", "environment_name": "E", "name": long}
    reply = platform.http.post("/api/evaluations", json=asked)
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request")

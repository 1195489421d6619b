from .conftest import Running

NONSENSE_SUITES: list[tuple[dict[str, object], int]] = [
    ({"purpose": "fun"}, 422),
    ({"scenario_ids": ["s1", "s1"]}, 422),
    ({"scenario_ids": ["nope"]}, 404),
    ({"scenario_ids": "s1"}, 422),
]

NONSENSE: list[dict[str, object]] = [
    {"tier": 0},
    {"tier": 5},
    {"tier": True},
    {"tier": 1.5},
    {"max_steps": 0},
    {"tags": "aml"},
    {"name": ""},
    {"context_injection": []},
]


def put(platform: Running, **body: object) -> dict[str, object]:
    return platform.ok(platform.http.post("/api/scenarios", json=body))


def ids(platform: Running, path: str = "/api/scenarios", **query: str) -> list[object]:
    page = platform.ok(platform.http.get(path, params=query))
    field = "suites" if path.endswith("suites") else "scenarios"
    return [one["id"] for one in platform.listed(page, field) if one.get("source") != "built-in"]


def test_a_scenario_is_made_once_and_merged_by_its_id(platform: Running) -> None:
    platform.register("A")
    made = put(platform, id="s1", name="wire", environment="A", available_tools=["t1"], tags=["x"])
    same = put(platform, id="s1", name="wire", environment="A", available_tools=["t1"], tags=["x"])
    merged = put(platform, id="s1", tier=3)

    assert (made["tier"], made["max_steps"], made["version"]) == (1, 20, 1)
    assert same["version"] == 1
    assert (merged["tier"], merged["version"]) == (3, 2)
    assert (merged["tags"], merged["available_tools"]) == (["x"], ["t1"])
    assert platform.ok(platform.http.get("/api/scenarios/s1")) == merged


# defect: F-22
def test_falsy_fields_of_a_scenario_are_stored(platform: Running) -> None:
    put(platform, id="s1", name="wire", task_prompt="do", tags=["x"], context_injection={"a": 1})

    changed = platform.ok(
        platform.http.patch(
            "/api/scenarios/s1", json={"task_prompt": "", "tags": [], "context_injection": {}}
        )
    )

    assert (changed["task_prompt"], changed["tags"]) == ("", [])
    assert changed["context_injection"] == {}


# defect: P-7
def test_a_scenario_that_makes_no_sense_is_refused(platform: Running) -> None:
    for wrong in NONSENSE:
        reply = platform.http.post("/api/scenarios", json={"id": "s1", "name": "x", **wrong})

        assert reply.status_code == 422
        assert ids(platform) == []


def test_an_unknown_id_without_a_name_makes_no_scenario(platform: Running) -> None:
    reply = platform.http.post("/api/scenarios", json={"id": "s1", "tier": 2})

    assert (reply.status_code, reply.json()["code"]) == (422, "scenario_without_name")


# defect: P-2
def test_the_shared_route_tells_scenarios_suites_and_library_apart(platform: Running) -> None:
    platform.register("A")
    put(platform, id="s1", name="one", environment="A")
    put(platform, id="s2", name="two")
    suite = put(platform, id="u1", name="suite", scenario_ids=["s2", "s1"], environment="A")
    renamed = put(platform, id="u1", name="renamed")

    assert (suite["purpose"], suite["scenario_ids"]) == ("training", ["s2", "s1"])
    assert (renamed["name"], renamed["version"]) == ("renamed", 2)
    assert ids(platform) == ["s1", "s2"]
    assert ids(platform, product="A") == ["s1"]
    assert ids(platform, type="suite") == ["u1"]
    assert ids(platform, type="suite", product="A") == ["u1"]
    assert len(ids(platform, limit="20")) == 20
    assert ids(platform, type="scenario", limit="1") == ["s1"]
    assert ids(platform, "/api/scenario-library")[:20] == ids(platform, limit="20")


def test_several_scenarios_are_put_at_once_or_not_at_all(platform: Running) -> None:
    platform.register("A")
    told = put(platform, scenarios=[{"id": "s1", "name": "a"}, {"name": "b"}], product="A")
    again = put(platform, scenarios=[{"id": "s1", "tier": 2}])
    reply = platform.http.post(
        "/api/scenarios", json={"scenarios": [{"name": "c"}, {"id": "nameless"}]}
    )

    assert (told["created"], told["updated"]) == (2, 0)
    assert (again["created"], again["updated"]) == (0, 1)
    assert reply.status_code == 422
    assert len(ids(platform, product="A")) == 2
    assert len(ids(platform)) == 2


def test_what_the_library_does_not_have_is_not_found(platform: Running) -> None:
    import_it = {"library_id": "lib_1", "environment": "", "environment_id": None}

    replies = [
        platform.http.post("/api/scenarios", json=import_it),
        platform.http.get("/api/scenario-library/lib_1"),
    ]

    for reply in replies:
        assert (reply.status_code, reply.json()["detail"]) == (404, "Scenario not found")


def test_a_scenario_of_an_environment_gets_its_id_from_the_server(platform: Running) -> None:
    platform.register("My Env")
    made = platform.ok(
        platform.http.post("/api/environments/My Env/scenarios", json={"name": "ü / #1"})
    )

    assert str(made["id"]).startswith("scen_")
    assert made["environment"] == "My Env"
    assert ids(platform, "/api/environments/1/scenarios") == [made["id"]]


def test_cloned_scenarios_have_ids_of_their_own(platform: Running) -> None:
    for name in ("A", "B"):
        platform.register(name)
    judge = {"id": "v", "name": "v", "type": "rule_based", "config": {"conditions": ["paid"]}}
    platform.ok(platform.http.post("/api/verifiers", json=judge))
    put(platform, id="s1", name="one", tier=4, environment="A", success_criteria_ref="v")

    told = platform.ok(
        platform.http.post("/api/environments/B/clone-scenarios", json={"source": "A"})
    )

    (made,) = ids(platform, product="B")
    clone = platform.ok(platform.http.get(f"/api/scenarios/{made}"))
    assert (told["cloned"], told["source"], told["target"]) == (1, "A", "B")
    assert (clone["source"], clone["tier"], clone["cloned_from"]) == ("cloned", 4, "s1")
    assert clone["success_criteria_ref"] == "v"
    assert ids(platform, product="A") == ["s1"]
    itself = platform.http.post("/api/environments/A/clone-scenarios", json={"source": "1"})
    assert itself.status_code == 422


def test_a_suite_has_routes_of_its_own(platform: Running) -> None:
    put(platform, id="s1", name="one")
    path = "/api/scenario-suites"
    made = platform.ok(platform.http.post(path, json={"name": "held out", "scenario_ids": ["s1"]}))
    suite_id = made["id"]

    changed = platform.ok(platform.http.patch(f"{path}/{suite_id}", json={"purpose": "evaluation"}))

    assert (changed["version"], changed["scenario_ids"]) == (2, ["s1"])
    assert ids(platform, path, purpose="evaluation") == [suite_id]
    assert ids(platform, path, purpose="training") == []
    assert platform.ok(platform.http.get(f"{path}/{suite_id}")) == changed
    platform.ok(platform.http.delete(f"{path}/{suite_id}"))
    gone = platform.http.get(f"{path}/{suite_id}")
    assert (gone.status_code, gone.json()["detail"]) == (404, "Suite not found")
    assert ids(platform) == ["s1"]


def test_a_suite_that_makes_no_sense_is_refused(platform: Running) -> None:
    for wrong, status in NONSENSE_SUITES:
        put(platform, id="s1", name="one")
        body = {"id": "u1", "name": "suite", "scenario_ids": ["s1"], **wrong}

        for path in ("/api/scenarios", "/api/scenario-suites"):
            assert platform.http.post(path, json=body).status_code == status
        assert ids(platform, type="suite") == []


def test_a_deleted_scenario_leaves_its_suites(platform: Running) -> None:
    for name in ("s1", "s2"):
        put(platform, id=name, name=name)
    put(platform, id="u1", name="suite", scenario_ids=["s1", "s2"])

    told = platform.ok(platform.http.delete("/api/scenarios/s1"))

    assert told["removed_from_suites"] == ["u1"]
    suite = platform.ok(platform.http.get("/api/scenario-suites/u1"))
    assert (suite["scenario_ids"], suite["version"]) == (["s2"], 2)
    assert platform.ok(platform.http.delete("/api/scenarios/u1"))["status"] == "deleted"
    assert platform.http.delete("/api/scenarios/u1").status_code == 404


def test_scenarios_of_a_category_are_those_of_its_environments(platform: Running) -> None:
    platform.register("A", vertical="FinSim")
    platform.register("B", vertical="MedSim")
    put(platform, id="s1", name="one", environment="A")
    put(platform, id="s2", name="two", environment="B")

    assert ids(platform, category="finsim") == ["s1"]


# defect: T-1
def test_a_repeated_post_without_an_id_makes_one_scenario(platform: Running) -> None:
    platform.register("A")
    made = {
        platform.http.post(
            "/api/environments/A/scenarios",
            json={"name": "one"},
            headers={"Idempotency-Key": "k"},
        ).json()["id"]
        for _ in range(3)
    }

    assert len(made) == len(ids(platform)) == 1

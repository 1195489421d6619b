from .conftest import Running

EMBEDDED: dict[str, object] = {
    "tools": ["lookup", {"name": "wire", "method": "POST", "resource": "/wires"}],
    "scenarios": [{"name": "one", "tier": 2, "max_steps": 8}, {"title": "two", "success": "ok"}],
    "verifiers": ["v1", "nobody", {"name": "inline", "type": "rule-based"}],
}

NONSENSE: list[tuple[str, dict[str, object]]] = [
    ("scenarios", {"name": "s", "tier": 9}),
    ("tools", {"name": "t", "parameters": []}),
    ("verifiers", {"name": "v", "type": "oracle"}),
]


def listed(platform: Running, path: str, field: str) -> list[dict[str, object]]:
    return platform.listed(platform.ok(platform.http.get(path)), field)


def test_what_an_environment_is_registered_with_is_known_to_the_routes_about_it(
    platform: Running,
) -> None:
    platform.http.post("/api/verifiers", json={"id": "v1", "name": "v", "type": "composite"})

    made = platform.register("My Env", **EMBEDDED)

    assert (made["tool_count"], made["scenario_count"]) == (2, 2)
    assert made["unknown_verifiers"] == ["nobody"]
    tools = listed(platform, "/api/tools?environment=My Env", "tools")
    assert [(tool["name"], tool.get("method")) for tool in tools] == [
        ("lookup", None),
        ("wire", "POST"),
    ]
    scenarios = listed(platform, "/api/scenarios?product=My Env", "scenarios")
    assert [(one["name"], one["tier"]) for one in scenarios] == [("one", 2), ("two", 1)]
    verifiers = listed(platform, "/api/environments/My Env/verifiers", "verifiers")
    assert [one["name"] for one in verifiers] == ["v", "inline"]


def test_registering_again_changes_what_is_there_and_keeps_weights(platform: Running) -> None:
    platform.http.post("/api/verifiers", json={"id": "v1", "name": "v", "type": "composite"})
    embedded = {**EMBEDDED, "verifiers": ["v1"]}
    platform.register("A", **embedded)
    platform.http.post("/api/environments/A/verifiers", json={"verifier_id": "v1", "weight": 0.3})

    again = platform.register("A", **embedded)

    assert (again["tool_count"], again["scenario_count"]) == (2, 2)
    (one,) = listed(platform, "/api/environments/A/verifiers", "verifiers")
    assert one["weight"] == 0.3


def test_counts_follow_what_is_added_and_deleted_later(platform: Running) -> None:
    platform.register("A")
    put = {"environment": "A", "tools": [{"id": "t1", "name": "wire"}, {"name": "x"}]}
    platform.http.post("/api/tools", json=put)
    platform.http.post("/api/environments/A/scenarios", json={"name": "s"})
    platform.http.delete("/api/tools/t1")

    shown = platform.ok(platform.http.get("/api/environments/A"))
    (page,) = listed(platform, "/api/environments", "environments")

    for one in (shown, page):
        assert (one["tool_count"], one["scenario_count"]) == (1, 1)


def test_what_makes_no_sense_inside_registers_no_environment(platform: Running) -> None:
    for field, wrong in NONSENSE:
        reply = platform.http.post("/api/custom-environments", json={"name": "A", field: [wrong]})
        assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request")
        assert field in reply.json()["detail"]
    assert listed(platform, "/api/environments", "environments") == []

from collections.abc import Mapping

from .conftest import Running

NONSENSE: list[dict[str, object]] = [
    {"name": ""},
    {"name": " "},
    {"name": "a\0b"},
    {"name": "a", "id": "a\nb"},
    {"name": "a", "id": " a"},
    {"name": "a", "id": ".."},
    {"name": "a", "id": "x" * 201},
    {"name": "a", "parameters": []},
    {"name": "a", "authorization_required": "perhaps"},
    {"description": "without a name"},
]


def put(platform: Running, *tools: Mapping[str, object], **fields: object) -> dict[str, object]:
    return platform.ok(platform.http.post("/api/tools", json={"tools": list(tools), **fields}))


def names(platform: Running, **query: str) -> list[object]:
    page = platform.ok(platform.http.get("/api/tools", params=query))
    return [tool["name"] for tool in platform.listed(page, "tools")]


def test_a_tool_is_added_once_and_changed_by_its_id(platform: Running) -> None:
    first = put(platform, {"id": "t1", "name": "wire", "parameters": {"type": "object"}})
    second = put(platform, {"id": "t1", "description": "send money"})

    assert (first["created"], second["created"], second["updated"]) == (1, 0, 1)
    tool = platform.ok(platform.http.get("/api/tools/t1"))
    assert (tool["name"], tool["description"]) == ("wire", "send money")
    assert tool["parameters"] == {"type": "object"}


def test_an_update_changes_what_is_sent_and_keeps_free_fields(platform: Running) -> None:
    put(platform, {"id": "t1", "name": "wire", "method": "POST", "compliance_tags": ["AML"]})

    changed = platform.ok(
        platform.http.put("/api/tools/t1", json={"description": "", "resource": "/wires"})
    )

    assert (changed["method"], changed["resource"]) == ("POST", "/wires")
    assert changed["compliance_tags"] == ["AML"]
    assert "name" in changed


def test_falsy_values_are_stored_and_null_takes_a_free_field_away(platform: Running) -> None:
    put(platform, {"id": "t1", "name": "wire", "description": "x", "parameters": {"a": 1}, "n": 0})

    changed = platform.ok(
        platform.http.put("/api/tools/t1", json={"description": "", "parameters": {}, "n": None})
    )

    assert (changed["description"], changed["parameters"]) == ("", {})
    assert "n" not in changed


# defect: F-20
def test_a_category_matches_the_type_or_the_category(platform: Running) -> None:
    put(
        platform,
        {"name": "by category", "type": "function", "category": "Read"},
        {"name": "by type", "type": "read"},
        {"name": "other", "type": "write"},
    )

    assert names(platform, category="READ") == ["by category", "by type"]


def test_an_environment_has_its_tools_and_those_for_all(platform: Running) -> None:
    for name in ("A", "B"):
        platform.register(name)
    put(platform, {"name": "of A"}, environment_id=1)
    put(platform, {"name": "of B"}, environment="B")
    put(platform, {"name": "for all"})

    assert names(platform, environment="A") == ["of A", "for all"]
    assert names(platform, environment_id="2") == ["of B", "for all"]


def test_tools_of_an_environment_that_does_not_exist_are_not_an_empty_list(
    platform: Running,
) -> None:
    reply = platform.http.get("/api/tools", params={"environment": "nope"})

    assert (reply.status_code, reply.json()["code"]) == (404, "environment_not_found")


def test_a_tool_is_found_by_a_name_with_blanks_and_letters_of_any_kind(platform: Running) -> None:
    put(platform, {"id": "t1", "name": "Überweisung senden"})

    assert platform.ok(platform.http.get("/api/tools/Überweisung senden"))["id"] == "t1"


def test_a_name_that_several_tools_have_is_a_conflict(platform: Running) -> None:
    platform.register("A")
    put(platform, {"id": "t1", "name": "wire"}, environment="A")
    put(platform, {"id": "t2", "name": "wire"})

    assert platform.ok(platform.http.get("/api/tools/wire?environment=A"))["id"] == "t1"
    put(platform, {"id": "t3", "name": "wire"})
    reply = platform.http.get("/api/tools/wire")
    assert (reply.status_code, reply.json()["code"]) == (409, "ambiguous_name")


def test_a_deleted_tool_is_gone(platform: Running) -> None:
    put(platform, {"id": "t1", "name": "wire"})

    assert platform.ok(platform.http.delete("/api/tools/t1")) == {"status": "deleted", "id": "t1"}
    for method in ("GET", "PUT", "DELETE"):
        reply = platform.http.request(method, "/api/tools/t1", json={})
        assert (reply.status_code, reply.json()["detail"]) == (404, "Tool not found")


def test_tools_come_in_pages(platform: Running) -> None:
    put(platform, *({"name": f"t{number}"} for number in range(5)))

    first = platform.ok(platform.http.get("/api/tools?limit=3"))
    rest = platform.ok(platform.http.get(f"/api/tools?limit=3&cursor={first['cursor']}"))

    assert [tool["name"] for tool in platform.listed(rest, "tools")] == ["t3", "t4"]
    assert rest["cursor"] is None


def test_a_tool_that_makes_no_sense_is_refused_and_none_of_its_batch_stays(
    platform: Running,
) -> None:
    for tool in NONSENSE:
        reply = platform.http.post("/api/tools", json={"tools": [{"name": "good"}, tool]})

        assert reply.status_code == 422
        assert names(platform) == []


# defect: T-1
def test_a_repeated_post_with_one_key_makes_one_tool(platform: Running) -> None:
    bodies = [
        platform.http.post(
            "/api/tools", json={"tools": [{"name": "wire"}]}, headers={"Idempotency-Key": "k"}
        ).json()
        for _ in range(3)
    ]

    assert bodies[0] == bodies[1] == bodies[2]
    assert names(platform) == ["wire"]


def test_a_change_of_tools_is_audited(platform: Running) -> None:
    put(platform, {"id": "t1", "name": "wire"})
    platform.http.put("/api/tools/t1", json={"description": "x"})
    platform.http.delete("/api/tools/t1")

    assert platform.audited("tool:t1") == ["tool.registered", "tool.updated", "tool.deleted"]

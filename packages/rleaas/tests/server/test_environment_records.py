"""What is recorded about environments: names, merging, tool access, audit, reports."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from rleaas.server.rules.json_values import fields, items
from rleaas.server.store import audit, audit_chain
from rleaas.server.store.tables import FIRST_ORGANISATION, AuditRow
from sqlalchemy import select

from .conftest import Running, Start

NAMES = ["Fin Sim Prod", "team/CartPole", "Größe/環境 2"]


def actions(platform: Running) -> list[str]:
    with platform.server.state.database.read() as session:
        return list(session.scalars(select(AuditRow.action).order_by(AuditRow.number)))


# defect: S-1
@pytest.mark.parametrize("name", NAMES)
def test_an_environment_of_any_name_is_reached_by_its_escaped_name(
    platform: Running, name: str
) -> None:
    path = f"/api/environments/{quote(name, safe='')}"
    platform.register(name, source="custom")

    assert platform.ok(platform.http.get(path))["name"] == name
    assert platform.ok(platform.http.get(f"{path}/versions"))["count"] == 1
    assert platform.ok(platform.http.put(f"{path}/system", json={"system": "SAP"}))["name"] == name
    deleted = platform.http.delete(f"/api/custom-environments/{quote(name, safe='')}")
    assert platform.ok(deleted)["status"] == "deleted"


def test_an_unescaped_slash_is_no_part_of_a_name(platform: Running) -> None:
    platform.register("team/CartPole", source="custom")

    assert platform.http.get("/api/environments/team/CartPole").status_code == 404


def test_a_name_with_a_nul_is_just_not_found(platform: Running) -> None:
    assert platform.http.get("/api/environments/a%00b").json()["detail"] == "Environment not found"


def test_letters_that_look_the_same_are_the_same_name(platform: Running) -> None:
    platform.register("Gro\u0308\u00dfe", source="custom")

    assert platform.register("Gr\u00f6\u00dfe", source="custom")["id"] == 1


def test_a_pinned_reference_shows_the_environment_as_it_was(platform: Running) -> None:
    platform.register("E", source="custom", config={"size": 1})
    platform.http.put("/api/environments/E", json={"config": {"size": 2}})

    assert platform.ok(platform.http.get("/api/environments/E@1"))["config"] == {"size": 1}
    assert platform.ok(platform.http.get("/api/environments/E"))["config"] == {"size": 2}
    assert platform.http.get("/api/environments/E@3").json()["code"] == (
        "environment_version_not_found"
    )


# defect: F-24
def test_registering_again_answers_with_the_lifecycle_and_keeps_what_was_not_said(
    platform: Running,
) -> None:
    platform.ready("E", description="one", tags=["a"], config={"x": 1})
    again = platform.ok(
        platform.http.post("/api/custom-environments", json={"name": "E", "domain": "finance"})
    )

    assert again["status"] == "ready"
    assert (again["version"], again["source"]) == (1, "gym://CartPole-v1")
    assert (again["description"], again["tags"], again["config"]) == ("one", ["a"], {"x": 1})
    assert again["domain"] == "finance"


def test_a_repeated_create_is_answered_as_the_first_one_was(platform: Running) -> None:
    body = {"name": "E", "source": "custom"}
    headers = {"Idempotency-Key": "once"}
    first = platform.http.post("/api/custom-environments", json=body, headers=headers).json()
    platform.http.put("/api/custom-environments/E", json={"description": "later"})

    again = platform.http.post("/api/custom-environments", json=body, headers=headers).json()
    other = platform.http.post(
        "/api/custom-environments", json={**body, "name": "F"}, headers=headers
    )

    assert again == first
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")


def test_merging_changes_the_given_fields_only(platform: Running) -> None:
    platform.register("E", description="one", owner="Ada", metadata={"a": 1})
    merged = platform.ok(
        platform.http.put(
            "/api/custom-environments/E", json={"license": "mit", "metadata": {"b": 2}}
        )
    )

    assert (merged["description"], merged["owner"], merged["license"]) == ("one", "Ada", "mit")
    assert merged["metadata"] == {"a": 1, "b": 2}
    assert merged["version"] == 1


def test_merging_a_config_makes_a_version_and_a_new_name_is_the_name(platform: Running) -> None:
    platform.register("E", source="custom")
    platform.register("Taken", source="custom")
    merged = platform.ok(
        platform.http.put("/api/custom-environments/E", json={"config": {"x": 1}, "new_name": "N"})
    )
    taken = platform.http.put("/api/custom-environments/N", json={"new_name": "Taken"})

    assert (merged["name"], merged["version"]) == ("N", 2)
    assert (taken.status_code, taken.json()["code"]) == (409, "name_taken")
    assert platform.http.get("/api/environments/E").status_code == 404


def test_a_category_brings_its_domain(platform: Running) -> None:
    platform.register("E", source="custom")
    changed = platform.ok(
        platform.http.put("/api/environments/E/category", json={"category": "MedSim"})
    )

    assert (changed["vertical"], changed["category"]) == ("MedSim", "MedSim")
    assert changed["domain"] == "healthcare"


# defect: P-7
@pytest.mark.parametrize(
    "body",
    [
        {"access_pattern": "everything"},
        {"approval_mode": "sometimes"},
        {"tool_names": ["no such tool"]},
        {"tool_names": ["pay"], "access_pattern": "full"},
        {"acess_pattern": "full"},
    ],
)
def test_a_tool_configuration_that_means_nothing_is_refused_and_changes_nothing(
    platform: Running, body: dict[str, object]
) -> None:
    platform.register("E", source="custom", tools=[{"name": "pay"}])
    before = platform.ok(platform.http.get("/api/environments/E"))

    assert platform.http.put("/api/custom-environments/E", json=body).status_code == 422
    assert platform.ok(platform.http.get("/api/environments/E")) == before


def test_listed_tools_replace_a_pattern_and_a_pattern_a_list(platform: Running) -> None:
    platform.register("E", source="custom", tools=[{"name": "pay"}])
    path = "/api/custom-environments/E"
    platform.ok(platform.http.put(path, json={"access_pattern": "read_only"}))
    listed = platform.ok(
        platform.http.put(path, json={"tool_names": ["pay"], "approval_mode": "block"})
    )
    pattern = platform.ok(platform.http.put(path, json={"access_pattern": "full"}))

    assert (listed["tool_names"], listed["approval_mode"]) == (["pay"], "block")
    assert "access_pattern" not in listed
    assert (pattern["access_pattern"], pattern["approval_mode"]) == ("full", "block")
    assert "tool_names" not in pattern


def test_every_change_is_in_the_audit_chain(platform: Running) -> None:
    platform.register("E", source="custom")
    platform.http.put("/api/environments/E", json={"name": "F"})
    platform.http.post("/api/environments/F/deprovision")
    platform.http.delete("/api/custom-environments/F")

    assert actions(platform) == [
        "environment.created",
        "environment.updated",
        "environment.renamed",
        "environment.deprovisioned",
        "environment.deleted",
    ]
    with platform.server.state.database.read() as session:
        assert audit_chain.verify(session) is None


def test_the_risk_report_counts_what_was_denied_and_nothing_else(platform: Running) -> None:
    platform.register("E", source="custom")
    empty = platform.ok(platform.http.get("/environments/E/risk-report"))
    with platform.server.state.database.write(FIRST_ORGANISATION) as session:
        for severity in ("critical", "nonsense"):
            audit.record(
                session,
                audit.ServerItself(FIRST_ORGANISATION),
                action="tool.called",
                subject="tool:pay",
                environment_name="E",
                outcome=audit.DENIED,
                data={"severity": severity},
            )
    found = platform.ok(platform.http.get("/environments/E/risk-report"))

    assert empty["compliance_violations"] == {
        "total": 0,
        "by_severity": {"critical": 0, "error": 0, "warning": 0},
        "recent_violations": [],
    }
    violations = fields(found["compliance_violations"])
    assert violations["total"] == 2
    assert violations["by_severity"] == {"critical": 1, "error": 0, "warning": 1}
    recent = [fields(one)["severity"] for one in items(violations["recent_violations"])]
    assert recent == ["warning", "critical"]


def test_an_environment_without_deployments_has_no_public_urls(platform: Running) -> None:
    platform.register("E", source="custom")

    assert platform.ok(platform.http.get("/api/environments/E/public-urls")) == {
        "env_name": "E",
        "count": 0,
        "urls": [],
    }


def test_records_outlive_the_server(start: Start) -> None:
    one = start()
    one.register("E", source="custom", infrastructure={"provider": "AWS"})
    one.server.stop()

    found = start().http.get("/api/environments/E").json()

    assert found["infrastructure"] == {"provider": "AWS"}

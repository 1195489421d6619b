import pytest
from rlcore import ServerUnreachable, contract_digest
from rleaas.models import EndpointGrant, Environment, EnvironmentVersion
from rleaas.server.store.tables import EventRow
from sqlalchemy import select

from .conftest import CONTRACT, FakeMesh, Running, Start


def events_of(platform: Running, kind: str) -> list[dict[str, object]]:
    with platform.server.state.database.read() as session:
        rows = session.scalars(select(EventRow).where(EventRow.kind == kind)).all()
    return [row.data for row in rows]


def test_a_registered_environment_becomes_ready_with_its_contract_and_digest(
    platform: Running,
) -> None:
    registered = Environment.model_validate(platform.register())
    assert registered.status in ("registered", "provisioning", "ready")

    env = Environment.model_validate(platform.ready())

    assert env.status == "ready"
    assert env.contract == CONTRACT
    assert env.contract_digest == contract_digest(CONTRACT)
    assert (env.name, env.version, env.source) == ("CartPole", 1, "gym://CartPole-v1")


def test_it_is_brought_up_in_the_background_once_however_many_ask(
    platform: Running, mesh: FakeMesh
) -> None:
    platform.ready()
    platform.ready()

    assert len(mesh.served) == 1


def test_an_environment_that_does_not_come_up_has_failed_with_the_reason(
    platform: Running, mesh: FakeMesh
) -> None:
    mesh.refuse["gym://Nope-v0"] = "NameNotFound: Environment `Nope` doesn't exist."
    platform.register("Nope", source="gym://Nope-v0")

    reply = platform.http.get("/api/environments/Nope/endpoint")

    assert reply.status_code == 409
    assert reply.json()["code"] == "environment_failed"
    assert "NameNotFound" in reply.json()["detail"]
    env = Environment.model_validate(platform.ok(platform.http.get("/api/environments/Nope")))
    assert env.status == "failed"
    assert "NameNotFound" in (env.status_reason or "")


def test_registering_a_failed_environment_again_tries_again(
    platform: Running, mesh: FakeMesh
) -> None:
    mesh.refuse["gym://CartPole-v1"] = "no module named gymnasium"
    platform.register()
    platform.http.get("/api/environments/CartPole/endpoint")
    mesh.refuse.clear()

    assert platform.ready()["status"] == "ready"


def test_the_grant_carries_address_token_and_registered_identity(platform: Running) -> None:
    platform.ready()

    reply = platform.ok(platform.http.get("/api/environments/CartPole/endpoint?version=1"))
    grant = EndpointGrant.model_validate(reply)

    assert grant.address == "tcp://127.0.0.1:50000"
    assert grant.token
    assert (grant.environment_name, grant.version) == ("CartPole", 1)
    assert grant.contract_digest == contract_digest(CONTRACT)
    assert grant.contract == CONTRACT


def test_the_same_registration_again_is_the_same_version_and_a_changed_one_is_the_next(
    platform: Running,
) -> None:
    platform.ready()
    again = platform.register(description="other words")
    changed = platform.register(kwargs={"sutton_barto_reward": True})

    assert (again["version"], again["description"]) == (1, "other words")
    assert changed["version"] == 2
    page = platform.ok(platform.http.get("/api/environments/CartPole/versions"))
    listed = platform.listed(page, "versions")
    versions = [EnvironmentVersion.model_validate(item) for item in listed]
    assert [version.kwargs for version in versions] == [{}, {"sutton_barto_reward": True}]


def test_old_versions_stay_reachable(platform: Running) -> None:
    platform.ready()
    platform.register(kwargs={"x": 1})

    one = platform.ok(platform.http.get("/api/environments/CartPole/endpoint?version=1"))
    two = platform.ok(platform.http.get("/api/environments/CartPole/endpoint"))

    assert (one["version"], two["version"]) == (1, 2)
    assert one["address"] != two["address"]


def test_a_version_that_does_not_exist_is_not_found(platform: Running) -> None:
    platform.ready()

    reply = platform.http.get("/api/environments/CartPole/endpoint?version=7")

    assert reply.status_code == 404
    assert reply.json()["code"] == "environment_version_not_found"
    assert reply.json()["ref"] == "CartPole@7"


def test_a_contract_that_changed_behind_the_name_does_not_become_the_registered_one(
    platform: Running, mesh: FakeMesh
) -> None:
    platform.ready()
    platform.ok(platform.http.post("/api/environments/CartPole/stop"))
    mesh.contract = {**CONTRACT, "action_space": {"kind": "discrete", "n": 3}}

    grant = platform.ok(platform.http.get("/api/environments/CartPole/endpoint"))

    assert grant["contract_digest"] == contract_digest(CONTRACT)
    assert platform.ok(platform.http.get("/api/environments/CartPole"))["status"] == "ready"
    (event,) = events_of(platform, "contract_changed")
    assert event["differences"] == ["action_space.n"]


def test_an_environment_that_died_is_started_again_on_demand(
    platform: Running, mesh: FakeMesh
) -> None:
    platform.ready()
    mesh.served[0].die("Segmentation fault")

    grant = platform.ok(platform.http.get("/api/environments/CartPole/endpoint"))

    assert grant["address"] == "tcp://127.0.0.1:50001"


def test_an_environment_served_elsewhere_is_only_dialled(platform: Running, mesh: FakeMesh) -> None:
    platform.ready("Far", source="tcp://10.0.0.1:5000")

    grant = platform.ok(platform.http.get("/api/environments/Far/endpoint"))

    assert (grant["address"], grant["token"]) == ("tcp://10.0.0.1:5000", None)
    assert mesh.served == []


def test_an_endpoint_where_nobody_answers_has_failed(platform: Running, mesh: FakeMesh) -> None:
    mesh.unreachable = ServerUnreachable("nothing answers at tcp://10.0.0.1:5000")
    platform.register("Far", source="tcp://10.0.0.1:5000")

    reply = platform.http.get("/api/environments/Far/endpoint")

    assert reply.status_code == 409
    assert "nothing answers" in reply.json()["detail"]


def test_what_is_registered_without_a_source_stays_registered_and_says_why(
    platform: Running,
) -> None:
    env = Environment.model_validate(
        platform.register("Shop", source="custom", vertical="ShopSim", tools=[{"name": "pay"}])
    )

    assert env.status == "registered"
    assert "ShopSim" in (env.status_reason or "")
    assert (env.vertical, env.tool_count) == ("ShopSim", 1)
    assert platform.http.get("/api/environments/Shop/endpoint").status_code == 409


@pytest.mark.parametrize("reference", ["CartPole", "1"])
def test_an_environment_is_found_by_name_and_by_id(platform: Running, reference: str) -> None:
    platform.register()

    assert platform.ok(platform.http.get(f"/api/environments/{reference}"))["id"] == 1


def test_lists_filter_and_page(platform: Running) -> None:
    for name in ("A", "B", "C"):
        platform.register(name, source="custom", vertical="ShopSim" if name != "B" else None)

    first = platform.ok(platform.http.get("/api/environments?limit=2"))
    second = platform.ok(platform.http.get(f"/api/environments?limit=2&cursor={first['cursor']}"))
    fin = platform.ok(platform.http.get("/api/environments?category=ShopSim&limit=0&cursor="))

    assert names(first) == ["A", "B"]
    assert names(second) == ["C"]
    assert second["cursor"] is None
    assert names(fin) == ["A", "C"]
    assert names(platform.ok(platform.http.get("/api/environments?status=ready"))) == []


def test_a_new_config_is_a_new_version_and_a_new_name_is_not(platform: Running) -> None:
    platform.ready()

    configured = platform.http.put("/api/environments/CartPole", json={"config": {"a": 1}})
    renamed = platform.http.put("/api/environments/CartPole", json={"name": "Pole"})

    assert platform.ok(configured)["version"] == 2
    assert platform.ok(renamed)["version"] == 2
    assert platform.http.get("/api/environments/CartPole").status_code == 404
    assert platform.http.get("/api/environments/Pole").status_code == 200


def test_a_name_that_is_taken_is_a_conflict(platform: Running) -> None:
    platform.register("A", source="custom")
    platform.register("B", source="custom")

    reply = platform.http.put("/api/environments/A", json={"name": "B"})

    assert (reply.status_code, reply.json()["code"]) == (409, "name_taken")


def test_deprovisioning_ends_the_process_until_it_is_started_again(
    platform: Running, mesh: FakeMesh
) -> None:
    platform.ready()

    platform.ok(platform.http.post("/api/environments/CartPole/deprovision"))

    assert mesh.served[0].stopped.is_set()
    refused = platform.http.get("/api/environments/CartPole/endpoint")
    assert (refused.status_code, refused.json()["code"]) == (409, "environment_deprovisioned")
    started = platform.ok(platform.http.post("/api/environments/CartPole/start"))
    assert started["status"] == "ready"


def test_deleting_ends_the_process_and_forgets_everything(
    platform: Running, mesh: FakeMesh
) -> None:
    platform.ready()
    job_id = platform.train()
    platform.finished("training", job_id)

    deleted = platform.ok(platform.http.delete("/api/custom-environments/CartPole"))

    assert deleted["status"] == "deleted"
    assert mesh.served[0].stopped.is_set()
    assert platform.http.get("/api/environments/CartPole").status_code == 404
    assert platform.http.get(f"/training/{job_id}").status_code == 404


def test_an_environment_that_is_in_use_is_not_deleted(start: Start) -> None:
    platform = start(plan=[("until_cancelled", {})])
    platform.ready()
    job_id = platform.train()

    reply = platform.http.delete("/api/custom-environments/CartPole")

    assert reply.status_code == 409
    assert job_id in reply.json()["detail"]


def test_registrations_and_contracts_survive_a_restart(start: Start, mesh: FakeMesh) -> None:
    first = start()
    digest = first.ready()["contract_digest"]
    first.server.stop()
    mesh.contract = {"id": "other"}

    second = start()

    grant = second.ok(second.http.get("/api/environments/CartPole/endpoint"))
    assert grant["contract_digest"] == digest


def names(page: dict[str, object]) -> list[object]:
    return [item["name"] for item in Running.listed(page, "environments")]

import hashlib

import pytest

from .archives import digest_of, policy_file
from .conftest import FakeMesh, Running, Start

NO_VERSIONS: list[str] = ["v9", "newest", "v0", "v-1"]

NONSENSE: list[tuple[bytes, str, int]] = [
    (b"trainable=perhaps&name=x", "application/x-www-form-urlencoded", 422),
    (b"name=x&compatible_categories=[", "application/x-www-form-urlencoded", 400),
    (b'{"name": "x", "framework": "home-made"}', "application/json", 422),
    (b'{"framework": "custom"}', "application/json", 422),
    (b'{"name": "x", "tool_permissions": "all"}', "application/json", 422),
    (b"[1]", "application/json", 422),
    (b"{", "application/json", 400),
    (b"", "application/json", 400),
    (b"\xff\xfe", "application/x-www-form-urlencoded", 400),
]

CHECKPOINT: dict[str, object] = {"episode": 7, "avg_reward": 21.5, "content": "weights"}
TRAINED: tuple[tuple[str, dict[str, object]], ...] = (
    ("checkpoint", CHECKPOINT),
    ("completed", {}),
)
PLAYED = {
    "scored": 3,
    "failed": 0,
    "success_rate": 1.0,
    "mean_return": 9.5,
    "pass_rate": 1.0,
}
FORM = {
    "id": "agent_1",
    "name": "mine",
    "base_model": "Qwen/Qwen3-0.6B",
    "trainable": "false",
    "compatible_categories": '["FinSim"]',
}


def register(platform: Running, **fields: object) -> dict[str, object]:
    body = {"id": "agent_1", "name": "mine", "base_model": "Qwen/Qwen3-0.6B", **fields}
    return platform.ok(platform.http.post("/api/agents", json=body))


def trained(start: Start) -> tuple[Running, str]:
    """A server with a finished job; returns it and the id of the job's checkpoint."""
    platform = start(plan=TRAINED)
    platform.ready()
    job = platform.train()
    assert platform.finished("training", job) == "completed"
    return platform, f"ckpt_{job}_7"


def test_a_form_registers_an_agent_as_json_does(platform: Running) -> None:
    by_form = platform.ok(platform.http.post("/api/agents", data=FORM))
    by_json = register(platform, trainable=False, compatible_categories=["FinSim"])

    assert (by_form["trainable"], by_form["compatible_categories"]) == (False, ["FinSim"])
    assert by_json == by_form


# defect: A-1
def test_every_field_of_an_agent_comes_back(platform: Running) -> None:
    fields: dict[str, object] = {
        "model_ref": "registry/agent:3",
        "framework": "anthropic",
        "tool_permissions": ["t1"],
    }
    register(platform, **fields)

    (listed,) = platform.http.get("/api/agents").json()
    one = platform.ok(platform.http.get("/api/agents/agent_1"))
    assert listed == one
    assert {name: one[name] for name in fields} == fields


def test_an_agent_that_makes_no_sense_is_refused(platform: Running) -> None:
    for content, kind, status in NONSENSE:
        reply = platform.http.post("/api/agents", content=content, headers={"content-type": kind})

        assert reply.status_code == status, reply.text
        assert platform.http.get("/api/agents").json() == []


def test_a_configuration_is_a_version_and_a_rollback_is_a_new_one(platform: Running) -> None:
    register(platform)
    platform.ok(platform.http.put("/api/agents/agent_1/configure", json={"temperature": 0.5}))
    same = platform.ok(
        platform.http.put("/api/agents/agent_1/configure", json={"temperature": 0.5})
    )
    back = platform.ok(platform.http.post("/api/agents/agent_1/rollback", json={"version": "v1"}))

    assert same["version"] == "v2"
    assert (back["version"], back["rolled_back_to"]) == ("v3", "v1")
    assert "temperature" not in back
    versions = platform.http.get("/api/agents/agent_1/versions").json()
    assert [(one["version"], one["reason"]) for one in versions] == [
        ("v1", "registered"),
        ("v2", "configured"),
        ("v3", "rolled back to v1"),
    ]
    assert versions[1]["config"]["details"] == {"temperature": 0.5}
    assert [one["is_current"] for one in versions] == [False, False, True]


def test_going_back_to_no_version_is_not_found(platform: Running) -> None:
    for tag in NO_VERSIONS:
        register(platform)

        reply = platform.http.post("/api/agents/agent_1/rollback", json={"version": tag})

        assert (reply.status_code, reply.json()["code"]) == (404, "agent_version_not_found")


def test_an_agent_without_a_policy_of_the_platform_does_not_pretend_to_play(
    platform: Running,
) -> None:
    platform.ready()
    register(platform)
    ask = {"environment_id": "CartPole", "episodes": 3}

    language_model = platform.http.post("/api/agents/agent_1/dry-run", json=ask)
    platform.http.put("/api/agents/agent_1/configure", json={"model_ref": "checkpoint://gone"})
    gone = platform.http.post("/api/agents/agent_1/dry-run", json=ask)

    for reply in (language_model, gone):
        assert (reply.status_code, reply.json()["code"]) == (409, "agent_not_playable")
    assert platform.http.get("/api/agents/agent_1/dry-runs").json() == []
    assert platform.ok(platform.http.get("/api/evaluations"))["evaluations"] == []


def test_a_dry_run_is_an_evaluation_and_tells_how_it_went(start: Start) -> None:
    platform, checkpoint = trained(start)
    platform.server.stop()
    playing = start(plan=(("completed", {"results": PLAYED}),))
    register(playing, model_ref=f"checkpoint://{checkpoint}")

    begun = playing.ok(
        playing.http.post(
            "/api/agents/agent_1/dry-run",
            json={"environment_id": "CartPole", "episodes": 3},
            headers={"Idempotency-Key": "k"},
        )
    )
    ended = playing.finished("evaluation", str(begun["evaluation_id"]))

    assert (begun["episodes"], begun["seeds"]) == (3, [0, 1, 2])
    assert begun["avg_reward"] is None
    assert ended == "completed"
    (told,) = playing.http.get("/api/agents/agent_1/dry-runs").json()
    assert (told["id"], told["status"], told["scored"]) == (begun["id"], "completed", 3)
    assert (told["avg_reward"], told["pass_rate"]) == (9.5, 1.0)
    again = playing.http.post(
        "/api/agents/agent_1/dry-run",
        json={"environment_id": "CartPole", "episodes": 3},
        headers={"Idempotency-Key": "k"},
    )
    assert again.json() == begun
    playing.ok(playing.http.delete("/api/custom-environments/CartPole"))
    (told,) = playing.http.get("/api/agents/agent_1/dry-runs").json()
    assert (told["status"], told["avg_reward"]) == ("deleted", None)


def test_a_check_looks_at_the_model_its_file_and_the_permissions(start: Start) -> None:
    platform, checkpoint = trained(start)
    register(platform, model_ref=checkpoint, tool_permissions=["t1"])
    path = "/api/agents/agent_1/validate"

    first = platform.ok(platform.http.post(path))
    platform.http.post("/api/tools", json={"tools": [{"id": "t1", "name": "wire"}]})
    second = platform.ok(platform.http.post(path))
    platform.file_of(checkpoint).write_bytes(b"other")
    third = platform.ok(platform.http.post(path))

    def failed(report: dict[str, object]) -> list[object]:
        checks = platform.listed(report, "checks")
        return [check["name"] for check in checks if not check["passed"]]

    assert (first["valid"], failed(first)) == (False, ["tool_permissions"])
    assert (second["valid"], failed(second)) == (True, [])
    assert (third["valid"], failed(third)) == (False, ["checkpoint"])


def test_an_agent_is_bound_to_an_environment_under_a_label(platform: Running) -> None:
    platform.register("A")
    register(platform)

    made = platform.ok(
        platform.http.post(
            "/api/agents/agent_1/deploy", json={"environment_id": "1", "label": "canary"}
        )
    )

    assert (made["environment"], made["label"], made["status"]) == ("A", "canary", "bound")
    listed = platform.ok(platform.http.get("/api/agents/agent_1/deployments"))
    assert [one["deployment_id"] for one in platform.listed(listed, "deployments")] == [
        made["deployment_id"]
    ]
    nowhere = platform.http.post("/api/agents/agent_1/deploy", json={"environment_id": "B"})
    assert (nowhere.status_code, nowhere.json()["kind"]) == (404, "environment")


def test_an_exported_file_has_the_digest_that_was_told(start: Start) -> None:
    platform, checkpoint = trained(start)
    register(platform)
    for place in ("/api/agents/export", "/api/agents/agent_1/export"):
        for form in ("huggingface", "pytorch", "safetensors", "onnx"):
            told = platform.ok(
                platform.http.post(place, json={"checkpoint_id": checkpoint, "format": form})
            )
            content = platform.http.get(str(told["download_url"])).content
            assert hashlib.sha256(content).hexdigest() == told["sha256"]
            assert len(content) == told["size_bytes"]
            assert content == f"{form} of ".encode() + policy_file()
    assert platform.audited("agent:agent_1")[-1] == "agent.exported"
    assert platform.audited(f"checkpoint:{checkpoint}") == ["checkpoint.exported"] * 4


def test_facts_and_digest_are_left_out_when_nobody_wants_them(start: Start) -> None:
    platform, checkpoint = trained(start)

    def told(**flags: bool) -> dict[str, object]:
        body = {"checkpoint_id": checkpoint, "format": "onnx", **flags}
        return platform.ok(platform.http.post("/api/agents/export", json=body))

    full, bare = told(), told(include_metadata=False, include_audit_hash=False)

    facts = full["metadata"]
    assert isinstance(facts, dict)
    assert (facts["environment_name"], facts["algorithm"]) == ("CartPole", "PPO")
    assert facts["checkpoint_sha256"] == digest_of("weights")
    assert full["checks"] == {"facts": facts}
    assert bare["checks"] == {"facts": None}
    assert bare.keys() & {"metadata", "sha256"} == set()


def test_an_export_stays_what_it_was_when_its_environment_is_renamed(start: Start) -> None:
    platform, checkpoint = trained(start)
    told = platform.ok(platform.http.post("/api/agents/export", json={"checkpoint_id": checkpoint}))
    platform.ok(platform.http.put("/api/environments/CartPole", json={"name": "Renamed"}))

    reply = platform.http.get(str(told["download_url"]))
    other = platform.http.get(f"/api/checkpoints/{checkpoint}/export", params={"sha256": "0" * 64})

    assert hashlib.sha256(reply.content).hexdigest() == told["sha256"]
    assert (other.status_code, other.json()["code"]) == (409, "export_changed")


def test_what_cannot_be_exported_is_refused_for_its_own_reason(start: Start) -> None:
    platform, checkpoint = trained(start)

    def refused(**body: object) -> tuple[int, object]:
        reply = platform.http.post("/api/agents/export", json=body)
        return reply.status_code, reply.json()["code"]

    unavailable = (501, "export_format_unavailable")
    assert refused(checkpoint_id="ckpt_none_1") == (404, "checkpoint_not_found")
    assert refused(checkpoint_id=checkpoint, format="openai_compatible") == unavailable
    assert refused(checkpoint_id=checkpoint, format="pickle") == (422, "invalid_request")
    path = platform.file_of(checkpoint)
    path.write_bytes(b"tampered with")
    assert refused(checkpoint_id=checkpoint)[1] == "checkpoint_corrupted"
    path.unlink()
    assert refused(checkpoint_id=checkpoint)[1] == "checkpoint_file_missing"


def test_a_deleted_agent_is_gone_with_its_records(platform: Running) -> None:
    platform.register("A")
    register(platform)
    platform.ok(platform.http.post("/api/agents/agent_1/deploy", json={"environment_id": "A"}))

    gone = platform.ok(platform.http.delete("/api/agents/agent_1"))

    assert gone == {"deleted": True, "agent_id": "agent_1"}
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/versions"),
        ("POST", "/validate"),
        ("GET", "/dry-runs"),
        ("GET", "/deployments"),
    ):
        reply = platform.http.request(method, f"/api/agents/agent_1{path}")
        assert (reply.status_code, reply.json()["detail"]) == (404, "Agent not found")


@pytest.mark.parametrize("id", ["../..", "..", ".", "#", "?x=1", "a b", "a/b", "ü", "%2e"])
def test_an_id_that_does_not_fit_into_a_path_is_refused(platform: Running, id: str) -> None:
    refused = platform.http.post("/api/agents", json={"id": id, "name": "n"})
    assert refused.status_code == 422
    assert platform.ok(platform.http.post("/api/agents", json={"id": "A.b_1:c-", "name": "n"}))


def test_a_policy_of_other_spaces_or_without_its_file_is_not_put_to_an_environment(
    start: Start, mesh: FakeMesh
) -> None:
    platform, checkpoint = trained(start)
    register(platform, model_ref=f"rleaas://checkpoints/{checkpoint}")
    mesh.contract["action_space"] = {"kind": "discrete", "n": 3}
    platform.ready("Other")

    def replies(environment: str) -> set[tuple[int, str | None]]:
        body = {"environment_id": environment}
        sent = [platform.http.post(f"/api/agents/agent_1/{one}", json=body) for one in PUT_TO]
        return {(reply.status_code, reply.json().get("code")) for reply in sent}

    assert replies("Other") == {(422, "checkpoint_incompatible")}
    assert platform.http.post("/api/agents/agent_1/deploy", json={"environment_id": "CartPole"})
    platform.file_of(checkpoint).unlink()
    assert replies("CartPole") == {(409, "agent_not_playable")}
    platform.http.put("/api/agents/agent_1/configure", json={"model_ref": "checkpoint://gone"})
    assert replies("CartPole") == {(409, "agent_not_playable")}


PUT_TO = ("deploy", "dry-run")

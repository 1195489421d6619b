"""Data: uploaded whole, given to environments, and kept from other organisations' paths."""

import hashlib

from .conftest import Running

CONTENT = b"id,amount\n1,10\n"


def upload(platform: Running, content: bytes = CONTENT) -> str:
    reply = platform.http.post(
        "/api/data-assets",
        params={"name": "accounts.csv"},
        content=content,
        headers={"content-type": "text/csv"},
    )
    return str(platform.ok(reply)["id"])


def test_an_uploaded_asset_comes_back_with_its_bytes_and_digest(platform: Running) -> None:
    asset = upload(platform)
    known = platform.ok(platform.http.get(f"/api/data-assets/{asset}"))
    file = platform.http.get(f"/api/data-assets/{asset}/file")

    assert known["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    assert (known["name"], known["media_type"]) == ("accounts.csv", "text/csv")
    assert file.content == CONTENT
    assert file.headers["x-content-sha256"] == known["sha256"]


def test_an_upload_that_is_repeated_is_one_asset(platform: Running) -> None:
    replies = [
        platform.http.post(
            "/api/data-assets?name=x", content=CONTENT, headers={"Idempotency-Key": "once"}
        ).json()["id"]
        for _ in range(2)
    ]

    assert replies[0] == replies[1]
    assert platform.ok(platform.http.get("/api/data-assets"))["count"] == 1


def test_an_empty_upload_is_refused(platform: Running) -> None:
    reply = platform.http.post("/api/data-assets?name=x", content=b"")

    assert reply.json()["code"] == "asset_empty"
    assert platform.ok(platform.http.get("/api/data-assets"))["count"] == 0


def test_data_is_attached_listed_and_detached(platform: Running) -> None:
    platform.register("E", source="custom")
    asset = upload(platform)
    path = "/api/environments/E/data"
    body = {"data_asset_id": asset, "injection_config": {"entity_type": "account"}}
    platform.ok(platform.http.post(path, json=body))
    platform.ok(platform.http.post(path, json=body))  # as a retry would
    attached = platform.listed(platform.ok(platform.http.get(path)), "data")
    in_use = platform.http.delete(f"/api/data-assets/{asset}")
    platform.ok(platform.http.delete(f"{path}/{asset}"))

    assert [one["data_asset_id"] for one in attached] == [asset]
    assert attached[0]["injection_config"] == {"entity_type": "account"}
    assert (in_use.status_code, in_use.json()["code"]) == (409, "asset_in_use")
    assert platform.ok(platform.http.get(path))["count"] == 0
    again = platform.http.delete(f"{path}/{asset}")
    assert (again.status_code, again.json()["kind"]) == (404, "data_attachment")


def test_attaching_what_was_never_uploaded_is_refused(platform: Running) -> None:
    platform.register("E", source="custom")
    reply = platform.http.post("/api/environments/E/data", json={"data_asset_id": "data_x"})

    assert (reply.status_code, reply.json()["kind"]) == (404, "data_asset")


def test_bytes_that_two_assets_share_stay_until_the_last_is_deleted(platform: Running) -> None:
    one, two = upload(platform), upload(platform)
    platform.ok(platform.http.delete(f"/api/data-assets/{one}"))

    assert platform.http.get(f"/api/data-assets/{two}/file").content == CONTENT
    path = platform.server.state.assets.path(1, hashlib.sha256(CONTENT).hexdigest())
    platform.ok(platform.http.delete(f"/api/data-assets/{two}"))
    assert not path.exists()


def test_deleting_an_environment_takes_its_attachments_and_leaves_the_asset(
    platform: Running,
) -> None:
    platform.register("E", source="custom")
    asset = upload(platform)
    platform.ok(platform.http.post("/api/environments/E/data", json={"data_asset_id": asset}))
    platform.ok(platform.http.delete("/api/custom-environments/E"))

    assert platform.ok(platform.http.delete(f"/api/data-assets/{asset}"))["status"] == "deleted"

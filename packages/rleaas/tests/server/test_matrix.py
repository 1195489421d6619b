"""Every route of the description, asked by those who may not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import httpx
import pytest
from rleaas.server.app import create_app
from rleaas.server.store.tables import Base, SettingRow
from sqlalchemy import select

from .conftest import Running, Start

TOP = "rleaas_sk_top_0123456789"
UNSAFE = ("post", "put", "patch", "delete")
# Whoever watches a server has no key, and it tells nothing of anybody.
# The key that signs reports is for anybody to check them with.
PUBLIC = {"/healthz", "/readyz", "/api/health", "/api/report-key"}
# Its tools only read.
READING_POSTS = {"/api/agent/invoke"}
BOOKKEEPING = {"last_used_at"}
SECRET = "OnlyOurs"
THEIRS = "TheirOwn"

# JSON schemas and rows have no narrower type than Any.
Json = Any


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path, with what it takes."""

    method: str
    path: str
    body: Json
    has_parameters: bool

    def __str__(self) -> str:
        return f"{self.method.upper()} {self.path}"


@dataclass(frozen=True, slots=True)
class House:
    """Two organisations: ours with rows in it, and a lab that wants to see them."""

    platform: Running
    operations: list[Operation]
    known: Mapping[str, str]
    lab_key: str
    reader_key: str
    http: httpx.Client

    def ask(self, operation: Operation, key: str | None) -> httpx.Response:
        path = operation.path
        for name, value in self.known.items():
            path = path.replace(f"{{{name}}}", value)
        while "{" in path:
            path = path[: path.index("{")] + SECRET + path[path.index("}") + 1 :]
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return self.http.request(operation.method, path, json=operation.body, headers=headers)

    def rows(self, *without: str) -> dict[str, list[Json]]:
        """All rows of the first organisation."""
        found: dict[str, list[Json]] = {}
        with self.platform.server.state.database.engine.connect() as connection:
            for name, table in Base.metadata.tables.items():
                if name in without or "organisation_id" not in table.c:
                    continue
                columns = [column for column in table.c if column.name not in BOOKKEEPING]
                query = select(*columns).where(table.c.organisation_id == 1)
                key = list(table.primary_key.columns)
                if "audit_records" in without and name == SettingRow.__tablename__:
                    query = query.where(SettingRow.name != "audit_seal")  # which is about those
                found[name] = [tuple(row) for row in connection.execute(query.order_by(*key))]
        return found


def body_of(schema: Json, schemas: Json) -> Json:
    """The smallest value that a schema asks for."""
    if "$ref" in schema:
        return body_of(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return body_of(schema[choice][0], schemas)
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type")
    if kind == "object":
        properties = schema.get("properties", {})
        return {n: body_of(properties[n], schemas) for n in schema.get("required", [])}
    if kind == "array":
        return [body_of(schema["items"], schemas)] * schema.get("minItems", 0)
    if kind in ("integer", "number"):
        return schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    if kind == "boolean":
        return True
    return "a@b.c" if "@" in schema.get("pattern", "") else THEIRS


def operations_of(document: Json) -> Iterator[Operation]:
    schemas = document.get("components", {}).get("schemas", {})
    for path, methods in document["paths"].items():
        for method, said in methods.items():
            content = said.get("requestBody", {}).get("content", {})
            schema = content.get("application/json", {}).get("schema")
            body = None if schema is None else body_of(schema, schemas)
            yield Operation(method, path, body, "{" in path)


@pytest.fixture
def house(start: Start) -> Iterator[House]:
    plan: list[tuple[str, dict[str, object]]] = [
        ("checkpoint", {"episode": 1, "avg_reward": 1.0, "content": "x"}),
        ("completed", {}),
    ]
    platform = start(api_key=TOP, plan=plan)
    platform.ready(SECRET)
    job_id = platform.train(SECRET)
    assert platform.finished("training", job_id) == "completed"
    own = platform.ok(platform.http.post("/api/keys", json={"name": SECRET}))
    reader = platform.ok(platform.http.post("/api/keys", json={"name": "r", "scopes": ["read"]}))
    body = {"name": "lab", "admin": "a@lab"}
    lab = platform.http.post("/api/organisations", json=body).json()
    platform.http.put("/api/organisations/default/members", json={"email": "me@ours"})
    document = create_app(platform.server.state).openapi()
    with httpx.Client(base_url=platform.server.url, timeout=20, trust_env=False) as http:
        yield House(
            platform,
            list(operations_of(document)),
            {
                "env": SECRET,
                "job_id": job_id,
                "id": job_id,
                "kind": "training",
                "checkpoint_id": f"ckpt_{job_id}_1",
                "key_id": str(own["id"]),
                "organisation": "default",
                "user": "me@ours",
            },
            str(lab["key"]["key"]),
            str(reader["key"]),
            http,
        )


def wrong(
    house: House, key: str | None, expected: Callable[[Operation, httpx.Response], bool]
) -> list[str]:
    found: list[str] = []
    for operation in house.operations:
        reply = house.ask(operation, key)
        if not expected(operation, reply):
            found.append(f"{operation}: {reply.status_code} {reply.text[:150]}")
    return found


def test_without_a_key_only_that_the_server_is_up_and_its_public_key_are_told(house: House) -> None:
    before = house.rows("audit_records")  # where refusals are noted

    def expected(operation: Operation, reply: httpx.Response) -> bool:
        return reply.status_code == (200 if operation.path in PUBLIC else 401)

    assert len(house.operations) > 40
    assert wrong(house, None, expected) == []
    assert wrong(house, "rleaas_sk_unknown", expected) == []
    assert house.rows("audit_records") == before


@pytest.mark.slow
def test_the_admin_of_another_organisation_neither_sees_nor_changes_ours(house: House) -> None:
    before = house.rows()

    def expected(operation: Operation, reply: httpx.Response) -> bool:
        if operation.has_parameters:
            return reply.status_code in (400, 401, 403, 404, 405, 409, 422)
        return reply.status_code < 500 and SECRET not in reply.text

    assert wrong(house, house.lab_key, expected) == []
    assert house.rows() == before
    # It can be seen: by us.
    assert SECRET in house.platform.http.get("/api/environments").text


def test_a_key_that_may_only_read_changes_nothing(house: House) -> None:
    # Refusals are noted in one; the other keeps what was made of a checkpoint for who asks next.
    noted = ("audit_records", "checkpoint_exports")
    before = house.rows(*noted)

    def expected(operation: Operation, reply: httpx.Response) -> bool:
        if operation.method not in UNSAFE or operation.path in READING_POSTS:
            return reply.status_code < 500
        return reply.status_code in (401, 403)

    assert wrong(house, house.reader_key, expected) == []
    assert house.rows(*noted) == before


def test_a_key_that_may_write_does_nothing_that_is_for_admins(house: House) -> None:
    key = house.platform.ok(house.platform.http.post("/api/keys", json={"name": "w"}))["key"]
    admin = [one for one in house.operations if one.path.startswith("/api/organisations")]
    codes = {str(one): house.ask(one, str(key)).status_code for one in admin}

    assert len(codes) == 7
    assert set(codes.values()) == {403}
    listed = cast("list[Json]", house.platform.http.get("/api/keys").json())
    assert all(one["is_active"] for one in listed)

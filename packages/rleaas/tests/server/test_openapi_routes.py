"""The description of every route: complete, with examples that a real server gave."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from rleaas.server import described
from rleaas.server.app import create_app
from rleaas.server.local import LocalServer
from rleaas.server.settings import ServerSettings
from rleaas.server.state import ServerState

from .conftest import IMPATIENT, FakeMesh, Running, export_command, worker_command
from .walkthrough import Json, Told, Walk, walk

RECORD = "RLEAAS_RECORD_EXAMPLES"
# Whoever watches a server has no key, and nothing can go wrong with the answer.
WITHOUT_PROBLEMS = {"GET /healthz", "GET /api/health", "GET /api/report-key"}
# Its batches are numbered: one that comes twice counts once.
# Judging again says the same, and keeps nothing but the answer; so does asking a model again.
NUMBERED = {
    "POST /api/worker/{kind}/{id}/reports",
    "POST /api/worker/{kind}/{id}/judge",
    "POST /api/worker/{kind}/{id}/complete",
}
# What is always refused here: the library is empty, no cloud is connected, and nothing judges.
NOTHING_TO_SHOW = {
    "GET /api/scenario-library/{library_id}",
    "GET /api/azure/clusters",
    "DELETE /api/azure/clusters/{name}",
    "POST /api/verifiers/{verifier_id}/test",
}
FOREVER: list[tuple[str, dict[str, object]]] = [("until_cancelled", {})]
# Their answer tells how far the one job has come.
LIVE = {
    "POST /train/{env}",
    "POST /api/evaluations",
    "POST /api/evaluations/{evaluation_id}/reproduce",
    "POST /api/evaluations/{evaluation_id}/rescore",
}
PLANS: dict[str, list[tuple[str, dict[str, object]]]] = {
    "training": [
        ("metric", {"episode": 7, "avg_reward": 21.5}),
        ("checkpoint", {"episode": 7, "avg_reward": 21.5, "content": "weights"}),
        ("completed", {"success_rate": 1.0, "mean_return": 21.5}),
    ],
    "evaluation": [
        ("episode", {"index": 0, "seed": 7, "reward": 21.5, "steps": 22, "outcome": "success"}),
        ("completed", {"scored": 1, "failed": 0, "success_rate": 1.0, "mean_return": 21.5}),
    ],
}


class Anything(BaseHTTPRequestHandler):
    """Answers every question with an empty object."""

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_POST = do_GET  # noqa: N815 - the library calls it so

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Anything)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory, site: str) -> Iterator[Walk]:
    mesh, slowly = FakeMesh(), threading.Event()

    def command(kind: str, job_id: str, url: str) -> list[str]:
        return worker_command(FOREVER if slowly.is_set() else PLANS[kind])(kind, job_id, url)

    def make_state(settings: ServerSettings) -> ServerState:
        return ServerState(
            replace(settings, allowed_hosts=frozenset({"127.0.0.1"})),
            launcher=mesh,
            inspect=mesh.inspect,
            command=command,
            patience=IMPATIENT,
            export=export_command,
        )

    with (
        LocalServer(tmp_path_factory.mktemp("walk") / "data", make_state=make_state) as server,
        httpx.Client(base_url=server.url, timeout=60, trust_env=False) as http,
    ):
        yield walk(Running(server, http, mesh), site, slowly)


@pytest.fixture(scope="module")
def document(walked: Walk) -> Json:
    return create_app(walked.platform.server.state).openapi()


def operations(document: Json) -> dict[str, Json]:
    return {
        f"{method.upper()} {path}": said
        for path, methods in document["paths"].items()
        for method, said in methods.items()
    }


def test_the_examples_are_what_a_server_answers(walked: Walk, site: str) -> None:
    if os.environ.get(RECORD):
        record(walked, site)
    recorded = json.loads(described.EXAMPLES.read_text())

    assert recorded.keys() == walked.told.keys(), f"record them again, with {RECORD}=1"
    different = [
        label
        for label, told in walked.told.items()
        if shape(recorded[label].get("reply")) != shape(example(told).get("reply"))
    ]
    assert different == [], f"record them again, with {RECORD}=1"


def record(walked: Walk, site: str) -> None:
    """Write the examples anew; those that are still alike stay as they are."""
    before = json.loads(described.EXAMPLES.read_text())
    now = {label: example(told) for label, told in walked.told.items()}
    for label, said in now.items():
        old = before.get(label)
        if old is not None and shape(old.get("reply")) == shape(said.get("reply")):
            now[label] = old
    text = json.dumps(now, indent=1).replace(site, "https://rl.example")
    text = text.replace(str(walked.platform.server.state.settings.data_dir), "/var/lib/rleaas")
    described.EXAMPLES.write_text(f"{text}\n")


def example(told: Told) -> dict[str, Any]:
    asked = {"path": told.path, "query": told.query, "body": told.body}
    said: dict[str, Any] = {"status": told.status}
    said.update((name, value) for name, value in asked.items() if value)
    if told.reply.headers["content-type"].startswith("application/json"):
        said["reply"] = shortened(told.reply.json())
    return said


def shortened(value: Json) -> Json:
    if isinstance(value, dict):
        some = [*cast("dict[str, Json]", value).items()]
        return {key: shortened(one) for key, one in (some if len(some) < 60 else some[:3])}
    if isinstance(value, list):
        return [shortened(one) for one in cast("list[object]", value)[:2]]
    return f"{value[:200]}..." if isinstance(value, str) and len(value) > 240 else value


def shape(value: Json) -> Json:
    """The names of the fields of an answer itself; what is inside may depend on the moment."""
    if not isinstance(value, dict):
        return type(value).__name__
    names = sorted(cast("dict[str, Json]", value))
    return names if len(names) > 3 else "dict"


def test_every_route_is_described_with_examples_and_problems(document: Json) -> None:
    missing = {
        f"{label}: {what}" for label, said in operations(document).items() for what in gaps(said)
    }
    excused = {f"{label}: no problem" for label in WITHOUT_PROBLEMS}
    excused |= {f"{label}: no example of its answer" for label in NOTHING_TO_SHOW}

    assert sorted(missing - excused) == []


def gaps(said: Json) -> Iterator[str]:
    for name in ("summary", "description", "tags", "operationId"):
        if not said.get(name):
            yield f"no {name}"
    yield from _gaps_of_the_question(said)
    problems = {status: one for status, one in said["responses"].items() if status >= "400"}
    if not problems:
        yield "no problem"
    for status, one in problems.items():
        content = one["content"]["application/json"]
        if not content.get("schema") or not content["example"]["code"]:
            yield f"no example of {status}"
    replies = said["responses"]["200"].get("content", {})
    if not replies:
        yield "no content"
    if set(replies) == {"application/json"} and "example" not in replies["application/json"]:
        yield "no example of its answer"


def _gaps_of_the_question(said: Json) -> Iterator[str]:
    for media, one in said.get("requestBody", {}).get("content", {}).items():
        if media == "application/json" and "example" not in one:
            yield "no example of its body"
    for parameter in said.get("parameters", []):
        if parameter["in"] == "path" and "example" not in parameter:
            yield f"no example of {parameter['name']}"


def test_answers_are_of_a_kind_that_is_described(walked: Walk, document: Json) -> None:
    said = operations(document)
    other = {
        label: told.reply.headers["content-type"]
        for label, told in walked.told.items()
        if told.reply.headers["content-type"].partition(";")[0]
        not in said[label]["responses"][str(told.status)]["content"]
    }
    assert other == {}


def test_every_post_takes_an_idempotency_key(document: Json) -> None:
    without = {
        label
        for label, said in operations(document).items()
        if label.startswith("POST ")
        and not any(one["name"] == "Idempotency-Key" for one in said.get("parameters", []))
    }
    assert without == NUMBERED


def test_a_request_that_is_sent_again_gets_the_same_answer(walked: Walk) -> None:
    different = {label: said for label, (status, *said) in walked.repeated.items() if status != 200}
    assert different == {}
    changed = [
        label
        for label, (_, first, second) in walked.repeated.items()
        if first != second and (label not in LIVE or job_of(first) != job_of(second))
    ]
    assert changed == []
    assert len(walked.repeated) > 35


def job_of(reply: Json) -> Json:
    return reply["job_id" if "job_id" in reply else "id"]


def test_a_key_of_one_request_is_not_good_for_another(walked: Walk) -> None:
    http, headers = walked.platform.http, {"idempotency-key": "one for two"}
    path = "/api/environments/CartPole-Prod/start"
    assert http.post(path, headers=headers).status_code == 200
    other = http.post(path, params={"x": "1"}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")
    # Another route is another question.
    stopped = http.post("/api/environments/CartPole-Prod/stop", headers=headers)
    assert stopped.status_code == 200


def test_a_request_that_failed_may_be_sent_again_with_its_key(walked: Walk) -> None:
    http, headers = walked.platform.http, {"idempotency-key": "too early"}
    path = "/api/environments/Not-Yet/start"
    assert http.post(path, headers=headers).status_code == 404
    walked.platform.register("Not-Yet")
    assert http.post(path, headers=headers).status_code == 200


def test_the_examples_hold_no_secret_and_no_place_of_this_machine() -> None:
    text = Path(described.EXAMPLES).read_text()
    assert "/tmp" not in text
    assert "127.0.0.1:" not in text.replace("tcp://127.0.0.1:5", "")

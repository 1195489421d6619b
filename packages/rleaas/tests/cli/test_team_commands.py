"""Keys, people, webhooks, rules for data and the audit log, from the command line."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from rleaas.server.local import LocalServer
from rleaas.server.settings import ServerSettings
from rleaas.server.state import ServerState

from .conftest import Cli

TOP = "rleaas_sk_top_0123456789"


class Hook(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""


@pytest.fixture(scope="module")
def hook() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server that wants a key, and may tell this machine."""

    def may_tell(settings: ServerSettings) -> ServerState:
        return ServerState(replace(settings, allowed_hosts=frozenset({"127.0.0.1"})))

    folder = tmp_path_factory.mktemp("platform")
    with LocalServer(folder, api_key=TOP, make_state=may_tell) as server:
        yield server


@pytest.fixture
def admin(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("RLEAAS_API_KEY", TOP)
    return cli


def test_organisations_have_members_and_limits(admin: Cli) -> None:
    made = admin(
        *("org", "create", "Lab / Zürich", "--admin", "boss@lab.example"),
        *("--limit", "environments=3", "--json"),
    ).json
    assert (made["limits"], made["key"]["key"][:10]) == ({"environments": 3}, "rleaas_sk_")
    assert admin("org", "get", "Lab / Zürich", "--json").json["id"] == made["id"]
    assert {one["name"] for one in admin("org", "list", "--json").json} >= {"Lab / Zürich"}
    changed = admin("org", "set-limits", "Lab / Zürich", "--limit", "jobs=2", "--json").json
    assert changed["limits"] == {"jobs": 2}

    put = admin("org", "put-member", "Lab / Zürich", "you@lab.example", "--role", "admin", "--json")
    assert put.json["role"] == "admin"
    people = admin("org", "members", "Lab / Zürich", "--json").json
    assert {one["email"] for one in people} == {"boss@lab.example", "you@lab.example"}
    gone = admin("org", "remove-member", "Lab / Zürich", "you@lab.example", "--yes")
    assert gone.out == "removed you@lab.example\n"
    assert len(admin("org", "members", "Lab / Zürich", "--json").json) == 1
    assert admin("org", "remove-member", "Lab / Zürich", "you@lab.example", "--yes").code == 3

    as_boss = ("--api-key", made["key"]["key"])
    assert [one["name"] for one in admin("org", "list", *as_boss, "--json").json] == [
        "Lab / Zürich"
    ]
    assert admin("org", "create", "Another", "--admin", "a@b.example", *as_boss).code == 4


def test_a_key_has_limits_that_hold(admin: Cli) -> None:
    made = admin(
        *("keys", "create", "slow", "--scope", "read", "--limit", "requests_per_minute=1"), "--json"
    ).json
    assert made["limits"] == {"requests_per_minute": 1}
    key = ("--api-key", made["key"])
    assert admin("whoami", *key, "--json").json["scopes"] == ["read"]
    assert admin("whoami", *key).code == 1  # 429: the one request of this minute was made
    assert admin("keys", "revoke", made["id"], "--json").json["revoked"] is True


def test_webhooks(admin: Cli, hook: str) -> None:
    made = admin(
        *("webhook", "register", hook, "--event", "job_complete", "--secret-stdin", "--json"),
        typed="0123456789abcdef0123456789abcdef\n",
    ).json
    id = made["id"]
    assert made["secret"] == "0123456789abcdef0123456789abcdef"
    assert admin("webhook", "get", id, "--json").json["secret"] is None
    assert hook in admin("webhook", "list").out
    sent = admin("webhook", "test", id, "--json")
    assert (sent.json["status"], sent.json["status_code"]) == ("delivered", 204)
    assert [one["id"] for one in admin("webhook", "deliveries", id, "--json").json] == [
        sent.json["id"]
    ]
    refused = admin("webhook", "register", "https://10.0.0.1/hook")
    assert (refused.code, "10.0.0.1" in refused.err) == (2, True)
    assert admin("webhook", "delete", id, "--yes").out == f"deleted {id}\n"
    assert admin("webhook", "get", id).code == 3


def test_a_webhook_that_nobody_takes_is_a_failure(admin: Cli, hook: str) -> None:
    nobody = f"http://127.0.0.1:1/{hook.rpartition('/')[2]}"
    made = admin("webhook", "register", nobody, "--json").json
    told = admin("webhook", "test", made["id"])
    assert (told.code, "delivered" in told.out.split("status")[1].split("\n")[0]) == (1, False)
    admin("webhook", "delete", made["id"], "--yes")


def test_governance_is_set_shown_and_taken_back(admin: Cli) -> None:
    admin("env", "create", "Bank", "--source", "custom")
    told = admin(
        *("governance", "set", "--env", "Bank", "--retention-days", 30, "--mask", "iban"),
        *("--threshold", "pass_rate_min=0.8", "--set", "stop_on_alert=true", "--json"),
    ).json
    assert (told["data_retention_days"], told["pii_fields"]) == (30, ["iban"])
    assert told["alert_thresholds"] == {"pass_rate_min": 0.8}
    assert "iban" in admin("governance", "get", "--env", "Bank").out
    assert "iban" not in admin("governance", "get").out
    back = admin("governance", "set", "--env", "Bank", "--reset", "pii_fields", "--json").json
    assert (back["pii_fields"], back["data_retention_days"]) == ([], 30)


def test_the_audit_log_is_queried_exported_and_verified(admin: Cli, tmp_path: Path) -> None:
    admin("env", "create", "Watched", "--source", "custom")
    admin("env", "deprovision", "Watched", "--yes")
    records = admin("audit", "query", "--env", "Watched", "--json").json
    assert {one["environment"] for one in records} == {"Watched"}
    assert len(records) >= 2
    for index, record in enumerate(records):
        page = ("--env", "Watched", "--limit", 1, "--offset", index, "--json")
        assert admin("audit", "list", *page).json == [record]
    one = admin("audit", "get", records[0]["id"], "--json").json
    assert one["chain_hash"] == records[0]["chain_hash"]
    subject = ("--subject", records[0]["subject"], "--actor", records[0]["actor"])
    assert records[0]["id"] in {
        one["id"] for one in admin("audit", "list", *subject, "--json").json
    }
    assert admin("audit", "list", "--since", "2999-01-01", "--json").json == []
    assert admin("audit", "list", "--since", "yesterday").code == 2

    verified = admin("audit", "verify", "--json").json
    assert (verified["valid"], verified["has_head"]) == (True, True)
    assert admin("audit", "verify", "--head", records[0]["chain_hash"]).code == 0
    broken = admin("audit", "verify", "--head", "0" * 64)
    assert (broken.code, "does not have the head" in broken.out) == (1, True)
    saved = admin("audit", "export", "audit.csv", "--json").json["saved"]
    assert Path(saved) == tmp_path / "audit.csv"
    assert "Watched" in (tmp_path / "audit.csv").read_text()

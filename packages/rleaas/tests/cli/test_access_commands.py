"""Keys and profiles from the command line, against a server that asks for keys."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rlcore import ConfigurationError
from rleaas import Client
from rleaas.cli.commands.keys import seconds_of
from rleaas.cli.main import main
from rleaas.server.local import LocalServer

TOP = "rleaas_sk_top_0123456789"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command with a profile file of the test's own; give its exit code and output."""
    for name in ("RLEAAS_API_KEY", "RLEAAS_BASE_URL", "RLEAAS_PROFILE", "RLEAAS_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RLEAAS_CONFIG", str(tmp_path / "config.toml"))

    def command(*arguments: str, typed: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        code = main(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return command


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with LocalServer(tmp_path / "data", api_key=TOP) as server:
        yield server


def test_a_life_with_keys_on_the_command_line(
    run: Run, server: LocalServer, tmp_path: Path
) -> None:
    data = str(tmp_path / "data")
    code, first, _ = run("keys", "bootstrap", "--data", data, "--email", "me@lab")
    assert code == 0
    again, _, why = run("keys", "bootstrap", "--data", data)
    assert (again, "--another" in why) == (1, True)

    code, said, _ = run("login", "--base-url", server.url, typed=first)
    assert (code, "logged in as me@lab of default" in said) == (0, True)
    config = tmp_path / "config.toml"
    assert config.stat().st_mode & 0o777 == 0o600
    assert "admin" in run("whoami")[1]

    code, secret, _ = run("keys", "create", "ci", "--scope", "read", "--expires-in", "30d")
    assert (code, secret.startswith("rleaas_sk_")) == (0, True)
    listed = json.loads(run("keys", "list", "--json")[1])
    assert [(key["name"], key["scopes"]) for key in listed] == [
        ("ci", ["read"]),
        ("first admin key", ["read", "write", "admin"]),
    ]
    table = run("keys", "list")[1]
    assert listed[0]["prefix"] in table
    assert secret.strip() not in table

    assert run("keys", "revoke", listed[0]["id"])[1] == f"revoked {listed[0]['id']}\n"
    code, _, why = run("whoami", "--base-url", server.url, "--api-key", secret.strip())
    assert (code, "revoked" in why) == (4, True)
    assert run("keys", "revoke", "999")[0] == 3


def test_a_key_that_is_not_good_is_not_kept(run: Run, server: LocalServer, tmp_path: Path) -> None:
    code, _, why = run("login", "--base-url", server.url, typed="rleaas_sk_wrong\n")
    assert (code, "not valid" in why) == (4, True)
    assert run("login", "--base-url", server.url)[0] == 2
    assert not (tmp_path / "config.toml").exists()


def test_profiles_are_listed_chosen_and_removed_without_showing_keys(
    run: Run, server: LocalServer
) -> None:
    for name in ("home", "work"):
        assert run("login", "--base-url", server.url, "--profile", name, typed=TOP)[0] == 0
    assert run("profile", "use", "work")[1] == "work is the default now\n"
    listed = run("profile", "list", "--json")[1]
    assert json.loads(listed) == [
        {"name": "home", "default": False, "base_url": server.url, "has_key": True},
        {"name": "work", "default": True, "base_url": server.url, "has_key": True},
    ]
    assert TOP not in listed + run("profile", "list")[1]
    assert run("profile", "remove", "home")[0] == 0
    assert run("profile", "use", "home")[0] == 2


def test_a_new_profile_does_not_take_the_server_of_another(run: Run, server: LocalServer) -> None:
    run("login", "--base-url", server.url, typed=TOP)

    code, _, why = run("login", "--profile", "other", typed=TOP)

    assert (code, "localhost:8000" in why) == (5, True)


def test_bootstrapping_serves_a_server_that_is_not_running_yet(run: Run, tmp_path: Path) -> None:
    made = json.loads(run("keys", "bootstrap", "--data", str(tmp_path), "--json")[1])

    with LocalServer(tmp_path, require_key=True) as server:
        with Client(made["key"], server.url) as client:
            assert client.Keys.me().email == "admin@localhost"
        code, _, why = run("whoami", "--base-url", server.url)
    assert (code, "key is needed" in why) == (4, True)


@pytest.mark.parametrize("text", ["", "5", "d", "-1d", "1w", "1d2h"])
def test_what_is_no_span_of_time_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--expires-in"):
        seconds_of(text)
    assert seconds_of("1.5h") == 5400

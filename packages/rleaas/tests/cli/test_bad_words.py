"""What people get wrong on the command line: one line that says what, and what to do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rleaas.cli.spec import LARGEST
from rleaas.server.local import LocalServer

from .conftest import Cli

ODD_NAMES = ["a b", "a/b", "ünï/cödé 中", "x" * 80, 'it\'s "quoted"']


@pytest.fixture
def names(cli: Cli) -> None:
    for name in ("CartPole-Prod", "FinSim"):
        cli("env", "create", name, "--source", "custom")


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("env", "get", "CartPole-Prd"), "CartPole-Prod"),
        (("env", "get", "cartpole-prod2"), "CartPole-Prod"),
        (("env", "delete", "finsim2", "--yes"), "FinSim"),
        (("job", "start", "FinSin@3"), "FinSim"),
        (("tool", "list", "--env", "FinSimm"), "FinSim"),
    ],
)
def test_an_unknown_name_is_not_found_and_answered_with_the_nearest(
    cli: Cli, words: tuple[str, ...], near: str
) -> None:
    told = cli(*words)
    assert told.code == 3
    assert told.out == ""
    error, hint, *rest = told.err.splitlines()
    assert error.startswith("error: ")
    assert hint == f"hint: did you mean {near!r}?"
    assert rest == [] or rest[0].startswith("request: req_")


@pytest.mark.parametrize(
    ("words", "listing"),
    [
        (("env", "get", "qqqqqqqqqq"), "rleaas env list"),
        (("tool", "get", "qqqqqqqqqq"), "rleaas tool list"),
        (("verifier", "get", "qqqqqqqqqq"), "rleaas verifier list"),
        (("scenario", "get", "qqqqqqqqqq"), "rleaas scenario list"),
        (("suite", "get", "qqqqqqqqqq"), "rleaas suite list"),
        (("agent", "get", "qqqqqqqqqq"), "rleaas agent list"),
        (("job", "logs", "qqqqqqqqqq"), "rleaas job list"),
        (("job", "events", "qqqqqqqqqq", "--follow"), "rleaas job list"),
        (("eval", "report", "qqqqqqqqqq"), "rleaas eval list"),
        (("eval", "cancel", "qqqqqqqqqq"), "rleaas eval list"),
        (("checkpoint", "get", "qqqqqqqqqq"), "rleaas job checkpoints"),
        (("deploy", "get", "qqqqqqqqqq"), "rleaas deploy list"),
        (("webhook", "get", "qqqqqqqqqq"), "rleaas webhook list"),
        (("data", "get", "qqqqqqqqqq"), "rleaas data list"),
        (("org", "get", "qqqqqqqqqq"), "rleaas org list"),
        (("audit", "get", "qqqqqqqqqq"), "rleaas audit list"),
        (("keys", "revoke", "qqqqqqqqqq"), "rleaas keys list"),
    ],
)
def test_a_name_like_no_other_is_answered_with_where_they_are_listed(
    cli: Cli, words: tuple[str, ...], listing: str
) -> None:
    told = cli(*words)
    assert (told.code, told.out) == (3, ""), told
    assert listing in told.err


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_go_there_and_back(cli: Cli, name: str) -> None:
    assert cli("env", "create", name, "--source", "custom", "--json").json["name"] == name
    assert cli("env", "get", name, "--json").json["name"] == name
    cli("tool", "create", name, "--env", name)
    assert [one["name"] for one in cli("env", "tools", name, "--json").json] == [name]
    assert name in cli("env", "list").out
    assert cli("env", "delete", name, "--yes").code == 0
    assert cli("env", "get", name).code == 3


@pytest.mark.parametrize(
    "name", ["", " ", "a?b#c", "a%2Fb", "\x1b[2J", "a\nb", "-", "..", "\udcff"]
)
def test_names_that_are_none_are_refused_in_a_line(cli: Cli, name: str) -> None:
    told = cli("env", "create", "--source", "custom", "--", name)
    assert (told.code, told.out) == (2, ""), told
    assert "\x1b" not in told.err
    assert told.err.startswith("error: ")
    assert len(told.err.splitlines()) <= 3


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("[1, 2]", "holds a list, not an object"),
        ("just text", "holds text, not an object"),
        ("{", "neither JSON nor YAML"),
        ("name: [", "neither JSON nor YAML"),
        ("a: &a [x]\nname: *a", "aliases"),
        ("name: .nan", "nan"),
        ("name: NaN\nnmae: x", "did you mean 'name'?"),
        ("1: x", "the key 1 is not text"),
        ("name: 3", "'name' of 'spec' is a whole number, not text"),
        ("name: x\ntags: y", "'tags' of 'spec' is text, not a list"),
        ("name: true", "'name' of 'spec' is true or false, not text"),
        ("source: custom", "'name' is missing"),
        ("name: null\nsource: custom", "'name' is missing"),
        ("[" * 5_000, "neither JSON nor YAML"),
        ('{"name": "a", "kwargs": {"x": Infinity}, "source": "custom"}', "Infinity"),
        ("!!python/object/apply:os.system ['true']", "neither JSON nor YAML"),
    ],
)
def test_a_spec_that_cannot_be_used_is_named_with_what_is_wrong(
    cli: Cli, content: str, why: str
) -> None:
    Path("spec").write_text(content)
    told = cli("env", "create", "--file", "spec")
    assert (told.code, told.out) == (2, ""), told
    assert why in told.err
    assert len(told.err.splitlines()) <= 2


def test_a_spec_that_is_not_there_too_large_or_no_text_is_named(cli: Cli) -> None:
    for file, why in (("nothing.yaml", "No such file"), (".", "Is a directory"), ("\0", "null")):
        told = cli("env", "create", "--file", file)
        assert (told.code, why in told.err) == (2, True), told
    Path("large.json").write_bytes(b" " * (LARGEST + 1))
    assert "larger than the 16 MiB" in cli("env", "create", "--file", "large.json").err
    assert "larger than" in cli("env", "create", "--file", "-", typed="x" * (LARGEST + 1)).err
    Path("bytes.json").write_bytes(b"\xff\xfe\x00")
    assert "not text in UTF-8" in cli("env", "create", "--file", "bytes.json").err
    assert "standard input is empty" in cli("tool", "apply").err


def test_json_in_a_file_of_another_name_and_on_standard_input_is_taken(cli: Cli) -> None:
    spec = json.dumps({"name": "Piped", "source": "custom", "tags": ["a"]})
    assert cli("env", "create", "-f", "-", "--json", typed=spec).json["tags"] == ["a"]
    assert cli("env", "create", "-f", "-", "--tag", "b", "--json", typed=spec).json["tags"] == ["b"]
    Path("spec.json").write_text("name: x")
    assert "is not JSON" in cli("env", "create", "--file", "spec.json").err


@pytest.mark.parametrize(
    "words",
    [
        ("env", "create", "X", "--source", "custom", "--config", "{"),
        ("env", "create", "X", "--source", "custom", "--config", "[1]"),
        ("env", "create", "X", "--source", "custom", "--metadata", "@nothing"),
        ("env", "create", "X", "--source", "nonsense://"),
        ("env", "create"),
        ("env", "list", "--limit", "0"),
        ("env", "update", "X"),
        ("scenario", "create", "X", "--tier", "5"),
        ("scenario", "import"),
        ("suite", "create"),
        ("verifier", "create", "X", "--type", "nonsense"),
        ("verifier", "test", "X", "--trajectory", "[1]"),
        ("verifier", "update", "X", "--config", "nonsense"),
        ("job", "start", "X", "--config", "gamma"),
        ("job", "verdict", "X"),
        ("eval", "run", "X", "--seeds", "a"),
        ("deploy", "create", "On-Premise", "--label", "x"),
        ("webhook", "register", "not a url"),
        ("org", "create", "X", "--admin", "a@b", "--limit", "jobs=many"),
        ("keys", "create", "X", "--expires-in", "soon"),
        ("governance", "set"),
        ("governance", "set", "--threshold", "pass_rate_min=high"),
        ("tool", "create", "X", "--parameters", "{" * 200_000),
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_wrong_values_are_usage_errors_of_one_line_and_a_hint(
    cli: Cli, words: tuple[str, ...]
) -> None:
    told = cli(*words)
    assert (told.code, told.out) == (2, ""), told
    assert "Traceback" not in told.err
    assert all(len(line) < 600 for line in told.err.splitlines())
    assert len(told.err.splitlines()) <= 3


@pytest.mark.parametrize(
    "noun", ["env", "tool", "agent", "verifier", "scenario", "suite", "data", "deploy", "webhook"]
)
def test_a_deletion_is_asked_about_unless_it_is_told_yes(cli: Cli, noun: str) -> None:
    assert cli(noun, "delete", "qqqqqqqqqq", "--yes").code == 3
    cli("env", "create", "Kept", "--source", "custom")
    assert cli("env", "delete", "Kept", typed="n\n").code == 130
    refused = cli("env", "delete", "Kept")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert cli("env", "get", "Kept").code == 0


def test_a_server_that_is_gone_is_said_so_with_what_to_do(cli: Cli, tmp_path: Path) -> None:
    with LocalServer(tmp_path / "gone") as server:
        url = server.url
    for words in (("env", "list"), ("job", "logs", "x", "--follow"), ("events",)):
        told = cli(*words, "--base-url", url, "--json")
        assert (told.code, told.out) == (5, ""), told
        assert url.removeprefix("http://") in told.err
        assert "rleaas serve" in told.err
    wrong = cli("env", "list", "--base-url", "ftp://x")
    assert (wrong.code, len(wrong.err.splitlines())) == (2, 2)
    assert cli("env", "list", "--profile", "nothing").code == 2


def test_a_key_that_is_not_good_is_denied(cli: Cli, tmp_path: Path) -> None:
    with LocalServer(tmp_path / "keyed", require_key=True) as server:
        for key in ((), ("--api-key", "rleaas_sk_wrong")):
            told = cli("env", "list", "--base-url", server.url, *key)
            assert told.code == 4
            assert "request: req_" in told.err


@pytest.mark.parametrize("form", [("--json",), ()], ids=["json", "lines"])
def test_ctrl_c_ends_a_stream_with_130_and_no_traceback(
    cli: Cli, platform: LocalServer, form: tuple[str, ...]
) -> None:
    assert cli("env", "create", "Seen", "--source", "custom").code == 0
    with subprocess.Popen(
        [sys.executable, "-m", "rleaas.cli.main", "events", "--after", "0", *form],
        env={**os.environ, "RLEAAS_BASE_URL": platform.url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        try:
            assert run.stdout is not None
            assert "environment:" in run.stdout.readline()  # it follows now
            run.send_signal(signal.SIGINT)
            _, err = run.communicate(timeout=30)
        finally:
            run.kill()
    assert (run.returncode, err) == (130, "error: interrupted\n")


@pytest.mark.parametrize("address", ["ftp://x", "ray://x:10001", "x:8265", "http://"])
def test_an_address_of_ray_that_is_no_http_url_is_a_usage_error_in_our_words(
    cli: Cli, address: str
) -> None:
    ran = cli("serve", "--executor", "ray", "--ray-address", address, "--port", 0)

    assert (ran.code, ran.out) == (2, "")
    first, second = ran.err.splitlines()
    assert first.startswith("error: the Ray cluster's address ")
    assert "is not an http:// or https:// address" in first
    assert second.startswith("hint: Give --ray-address http://host:8265")

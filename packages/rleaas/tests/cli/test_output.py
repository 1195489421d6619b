"""What commands print: for people on terminals wide and narrow, for pipes, and for programs."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pytest
from rich.cells import cell_len
from rleaas.cli.console import Column, columns, print_facts, print_records, print_table
from rleaas.cli.main import main
from rleaas.cli.plain import visible
from rleaas.models import Tool

from .conftest import Cli

TITLES = ("name", "what it is", "when")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(
    monkeypatch: pytest.MonkeyPatch, width: int, rows: list[tuple[object, ...]]
) -> list[str]:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    print_table(TITLES, rows, empty="nothing")
    return re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()


def test_a_wide_terminal_shows_a_line_for_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = on_terminal(monkeypatch, 80, [("a", "thing", None), ("bb", "thing " * 3, 1.0)])
    assert lines[0].split() == ["name", "what", "it", "is", "when"]
    assert len(lines) == 3


def test_a_terminal_that_is_too_narrow_folds_and_cuts_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = on_terminal(monkeypatch, 40, [("n" * 30, "w" * 30, "e" * 30)])
    assert all(cell_len(line) <= 40 for line in lines)
    assert "".join(lines[1:]).count("w") == 30
    assert "…" not in "".join(lines)


def test_a_very_narrow_terminal_shows_each_row_as_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = on_terminal(monkeypatch, 20, [("a", "thing", "now"), ("b", None, True)])
    assert lines[:3] == ["name        a", "what it is  thing", "when        now"]
    assert lines[4:6] == ["name        b", "what it is  -"]


def test_a_pipe_gets_aligned_columns_of_any_width_without_colours(
    capsys: pytest.CaptureFixture[str],
) -> None:
    long = "x" * 500
    print_table(TITLES, [("中文", long, "now"), ("b", "ready", "now")], empty="nothing")
    first, second, third = capsys.readouterr().out.splitlines()
    assert second == f"中文  {long}  now"
    assert third.startswith("b     ready")
    assert first.startswith("name  what it is")
    assert cell_len(second) == cell_len(first) - len("when") + len("now")


def test_nothing_is_said_as_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(TITLES, [], empty="Nothing here.")
    assert capsys.readouterr().out == "Nothing here.\n"


def test_control_characters_are_shown_and_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    print_facts({"name": "a\x1b[31m\nb", "list": ["x\ty"], "map": {"k": "\x07"}})
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "\x07" not in told
    assert "a\\x1b[31m\\nb" in told
    assert len(told.splitlines()) == 3
    assert visible("plain ünï 中") == "plain ünï 中"


def test_values_are_told_as_people_say_them(capsys: pytest.CaptureFixture[str]) -> None:
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    print_facts({"yes": True, "none": None, "rate": 0.123456, "at": at, "tags": ["a", "b"]})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["yes", "yes"]
    assert lines[1].split() == ["rate", "0.1235"]
    assert lines[2].startswith("at    2026-03-01 ")
    assert lines[3].split("  ")[-1] == "a, b"


def test_columns_read_attributes_keys_and_what_a_function_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = (*columns("id", "docker image"), Column("tags", lambda one: len(one.compliance_tags)))
    print_records([Tool(id="t", docker_image="img", compliance_tags=["x"])], shown, empty="")
    print_records([{"id": "u", "docker_image": None}], columns("id", "docker image"), empty="")
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["id", "docker", "image", "tags"],
        ["t", "img", "1"],
        ["id", "docker", "image"],
        ["u", "-"],
    ]


def test_json_is_the_record_itself_the_same_one_alone_and_in_a_list(cli: Cli) -> None:
    made = cli("tool", "create", "pay", "--json").json
    assert cli("tool", "get", made["id"], "--json").json == made
    assert cli("tool", "list", "--json").json == [made]
    assert Tool.model_validate(made).name == "pay"
    assert cli("scenario", "list", "--json").json == []


def test_the_reader_of_a_pipe_may_go_away(cli: Cli) -> None:
    for index in range(3):
        cli("tool", "create", f"tool-{index}")
    with subprocess.Popen(
        [sys.executable, "-m", "rleaas.cli.main", "tool", "list", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        assert (run.stderr.read(), run.wait(30)) == ("", 1)


def test_completion_offers_the_names_of_the_server_and_nothing_where_there_is_none(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("Bank-1", "Bank/ü_2", "Other"):
        cli("env", "create", name, "--source", "custom")
    assert complete("rleaas env get Ban", monkeypatch, capsys) == ["Bank-1", "Bank/ü_2"]
    assert complete("rleaas tool list --env O", monkeypatch, capsys) == ["Other"]
    assert "list" in complete("rleaas env l", monkeypatch, capsys)
    monkeypatch.setenv("RLEAAS_BASE_URL", "http://127.0.0.1:1")
    assert complete("rleaas env get Ban", monkeypatch, capsys) == []


def complete(
    typed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    monkeypatch.setenv("_RLEAAS_COMPLETE", "complete_fish")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", typed)
    with pytest.raises(SystemExit):
        main([])
    monkeypatch.delenv("_RLEAAS_COMPLETE")
    return [line.split("\t")[0] for line in capsys.readouterr().out.splitlines() if line]


def test_json_lines_are_one_object_each(cli: Cli) -> None:
    cli("env", "create", "Seen", "--source", "custom")
    cli("deploy", "create", "On-Premise", "--env", "Seen")
    events = cli("events", "--after", 0, "--timeout", 0, "--json").lines
    assert events
    assert all({"id", "kind", "subject", "at", "data"} <= one.keys() for one in events)
    id = cli("deploy", "list", "--json").json[0]["id"]
    lines = cli("deploy", "logs", id, "--json").lines
    assert lines
    assert all(isinstance(line, str) for line in lines)
    assert cli("deploy", "logs", id).out.splitlines() == lines


def test_an_output_that_knows_few_letters_gets_escapes_and_json_that_is_still_json(
    cli: Cli,
) -> None:
    made = cli("tool", "create", "Zürich 中", "--json").json
    told: list[str] = []
    for form in ((), ("--json",)):
        run = subprocess.run(
            [sys.executable, "-m", "rleaas.cli.main", "tool", "get", made["id"], *form],
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
            capture_output=True,
            text=True,
            check=True,
        )
        told.append(run.stdout)
    assert "Z\\xfcrich \\u4e2d" in told[0]
    assert json.loads(told[1])["name"] == "Zürich 中"


def test_a_place_that_cannot_be_written_is_said_and_is_no_fault_of_ours(cli: Cli) -> None:
    Path("x.csv").write_text("1")
    asset = cli("data", "upload", "x.csv", "--json").json["id"]
    cli("env", "create", "Seen", "--source", "gym://CartPole-v1", "--no-wait")
    deployment = cli(
        *("deploy", "create", "On-Premise", "--env", "Seen", "--image", "i:1", "--json")
    ).json["id"]
    for words in (
        ("data", "download", asset, "x.csv/below"),
        ("deploy", "manifest", deployment, "--out", "x.csv/below"),
        ("audit", "export", "x.csv/below"),
    ):
        told = cli(*words)
        assert told.code in (1, 2), told
        assert "x.csv" in told.err
        assert "fault of rleaas" not in told.err


@pytest.mark.parametrize("words", [(), ("keys",)])
def test_a_noun_alone_is_its_help_and_no_error_line(cli: Cli, words: tuple[str, ...]) -> None:
    told = cli(*words)
    assert told.code == 2
    assert "Usage" in told.out + told.err
    assert "error:" not in told.err


def test_the_version_is_told_alone(cli: Cli) -> None:
    assert cli("--version").out.split() == ["rleaas", version("rleaas")]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_an_output_that_is_full_is_a_failure_and_no_fault_of_ours(cli: Cli) -> None:
    cli("tool", "create", "one")
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "rleaas.cli.main", "tool", "list", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert run.returncode == 1
    assert run.stderr == "error: the output cannot be written: No space left on device\n"


def test_an_export_makes_no_directories(cli: Cli) -> None:
    told = cli("audit", "export", "nope/x.csv")
    assert (told.code, told.err) == (
        1,
        "error: cannot use 'nope/x.csv': No such file or directory\n",
    )
    assert not Path("nope").exists()


def test_a_key_in_the_clear_is_warned_of_on_one_line(cli: Cli) -> None:
    told = cli("ping", "--base-url", "http://rl.invalid", "--api-key", "k")
    lines = told.err.splitlines()
    assert lines[0].startswith("warning: the API key goes to http://rl.invalid")
    assert lines[1].startswith("error: ")


def test_completion_warns_of_nothing(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RLEAAS_BASE_URL", "http://rl.invalid")
    monkeypatch.setenv("RLEAAS_API_KEY", "k")
    assert complete("rleaas env get x", monkeypatch, capsys) == []
    assert capsys.readouterr().err == ""


def test_no_class_of_the_sdk_is_named_to_who_gave_a_wrong_argument(cli: Cli) -> None:
    told = cli("audit", "list", "--since", "yesterday-ish")
    assert told.code == 2
    assert "Client" not in told.err


def test_an_environment_without_a_source_is_what_the_server_says(cli: Cli) -> None:
    made = cli("env", "create", "Bare", "--vertical", "FinSim", "--json")
    assert (made.json["name"], made.json["vertical"]) == ("Bare", "FinSim")

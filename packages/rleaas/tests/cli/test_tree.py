"""Every command and option says what it is for, every command shows a call, and help is quick."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, cast

import pytest
import typer
from rleaas.cli.main import main
from rleaas.cli.tree import app
from typer.core import TyperGroup
from typer.main import get_command

# Typer brings a library along whose classes have no public names.
Command = Any
ROOT = cast("TyperGroup", get_command(app))


def walk(command: Command = ROOT, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Command]]:
    yield " ".join(words), command
    if isinstance(command, TyperGroup):
        context = typer.Context(cast("Any", command))
        for name in command.list_commands(context):
            yield from walk(command.get_command(context, name), (*words, name))


ALL = dict(walk())
LEAVES = {words: one for words, one in ALL.items() if not isinstance(one, TyperGroup)}


def test_the_tree_has_every_noun_and_verb_that_people_look_for() -> None:
    nouns = {words.split(" ")[0] for words in ALL if words}
    assert nouns >= {
        *("env", "tool", "agent", "verifier", "scenario", "suite", "job", "train", "eval"),
        *("metrics", "audit", "keys", "deploy", "webhook", "org", "governance", "data", "rollout"),
    }
    for noun in ("tool", "verifier", "scenario", "suite", "deploy", "data", "webhook", "env"):
        assert {f"{noun} list", f"{noun} get", f"{noun} delete"} <= LEAVES.keys()
    assert len(LEAVES) > 150


@pytest.mark.parametrize("words", ALL)
def test_help_describes_the_command_and_each_option(words: str) -> None:
    command = ALL[words]
    assert (command.help or "").strip(), "no description"
    for option in command.params:
        described = (getattr(option, "help", None) or "").strip()
        assert described, f"{option.name} has no description"


@pytest.mark.parametrize("words", LEAVES)
def test_the_examples_of_a_command_are_calls_of_it_that_parse(words: str) -> None:
    """Each example is parsed by the command itself; nothing is run."""
    command = LEAVES[words]
    examples = (command.epilog or "").split("`")[1::2]
    assert examples, "no example"
    for example in examples:
        call = shlex.split(example.partition(" < ")[0].partition(" > ")[0])
        said = words.split(" ")
        same = {"train": "job"}.get(said[0], said[0])
        assert call[: 1 + len(said)] in (["rleaas", *said], ["rleaas", same, *said[1:]])
        command.make_context(words, call[1 + len(said) :])


@pytest.mark.parametrize("words", ["", "env", "job start", "audit"])
def test_help_is_printed_with_the_example(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words.split(), "--help"]) == 0
    told = capsys.readouterr().out
    assert "Usage: rleaas" in told
    if " " in words:
        assert f"rleaas {words}" in told.split("Example")[-1]


@pytest.mark.parametrize(
    ("words", "near"), [("enw", "env"), ("env lst", "list"), ("job logs x --folow", "--follow")]
)
def test_a_wrong_word_is_answered_with_the_near_one(
    words: str, near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    told = capsys.readouterr().err
    assert near in told
    assert "Traceback" not in told


def test_help_costs_little_and_imports_neither_client_nor_server() -> None:
    """The seconds of the processor, which a busy machine does not stretch."""
    code = (
        "import sys\n"
        "from rleaas.cli.main import main\n"
        "main(['--help'])\n"
        "heavy = {'httpx', 'pydantic', 'fastapi', 'sqlalchemy', 'numpy', 'torch', 'rlmesh'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    costs: list[float] = []
    while len(costs) < 5 and min(costs, default=1.0) >= 0.5:
        before = children_seconds()
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True
        )
        costs.append(children_seconds() - before)
        assert run.stderr.strip() == "[]"
    # Measured alone: 0.3 s.
    assert min(costs) < 0.5


def children_seconds() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_each_shell_gets_a_script_for_completion() -> None:
    for shell in ("bash", "zsh", "fish"):
        run = subprocess.run(
            [sys.executable, "-m", "rleaas.cli.main"],
            env={"_RLEAAS_COMPLETE": f"source_{shell}", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert "_RLEAAS_COMPLETE" in run.stdout, (shell, run.stderr)

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rleaas.cli.tree import app
from typer.core import TyperGroup
from typer.main import get_command

if TYPE_CHECKING:
    from rleaas.pytest_plugin import Platform

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
COMMAND_LINE = ROOT / "docs" / "command-line.md"
PAGES = [README, ARCHITECTURE, *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(language: str, page: Path = README) -> list[str]:
    return [body for kind, body in FENCE.findall(page.read_text()) if kind == language]


def test_the_readme_has_code_for_both_planes() -> None:
    code = blocks("python")
    assert any("rlmesh" in block for block in code)
    assert any("from rleaas import" in block for block in code)


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_the_python_block_runs(number: int, rleaas_server: Platform, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", blocks("python")[number]],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=tmp_path,
        env={**os.environ, **rleaas_server.environ},
        check=False,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.timeout(120)
def test_the_commands_of_the_documents_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for block in [block for page in PAGES for block in blocks("sh", page)]:
        for line in block.splitlines():
            if words := re.match(r"make (\w+)", line):
                assert f"\n{words[1]}:" in makefile, line
            elif words := re.match(r"rleaas ([a-z]+(?: [a-z]+)?)", line):
                help_of = [sys.executable, "-m", "rleaas.cli.main", *words[1].split(), "--help"]
                assert subprocess.run(help_of, capture_output=True, check=False).returncode == 0, (
                    line
                )


def test_the_table_of_commands_has_each_noun_with_its_verbs() -> None:
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", COMMAND_LINE.read_text(), re.MULTILINE)
    told = {
        noun: set(re.findall(r"[\w-]+", " ".join(re.findall(r"`([^`]*)`", verbs))))
        for nouns, verbs in rows
        for noun in re.findall(r"`([\w-]+)`", nouns)
    }
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    context = root.make_context("rleaas", [], resilient_parsing=True)

    assert set(told) == set(root.list_commands(context))
    for noun, verbs in told.items():
        group = root.get_command(context, noun)
        if isinstance(group, TyperGroup):
            # `get` and `status` of a job are the same.
            assert set(group.list_commands(context)) - {"status"} <= verbs, noun


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_and_heading_that_a_document_links_to_is_there(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:]*)#?([^):]*)\)", page.read_text()):
        file = page.parent / target if target else page
        assert file.exists(), target
        if anchor:
            assert anchor in headings(file), anchor


def test_every_room_that_the_architecture_names_is_there() -> None:
    places = ("packages", "integration_tests", "scripts")
    rooms = {f"/{path}" for place in places for path in (ROOT / place).rglob("*.py")}
    named = set(re.findall(r"`([\w/-]+\.py)`", ARCHITECTURE.read_text()))

    assert named
    assert [one for one in named if not any(room.endswith(f"/{one}") for room in rooms)] == []


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}

"""The notebooks run as they are committed, and what they show is what came out then."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples" / "notebooks").glob("*.ipynb"))

# What differs from one execution to the next: times, and which machine and versions there are.
_CHANGING = re.compile(
    r"made with(</th><td[^>]*>)?[^<\n]*"
    r"| · \d+:\d\d"
    r"|<details><summary>(Telemetry|\d+ episodes)</summary>(?s:.*?)</details>"
)

Notebook = Any  # nbformat has no types


def read(path: Path) -> Notebook:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call] # it has no types


def shown(notebook: Notebook) -> list[list[str]]:
    """The texts that each cell of code shows, without what changes."""
    return [
        [_CHANGING.sub("", text) for output in cell.outputs for text in texts(output)]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def texts(output: Notebook) -> list[str]:
    if output.output_type == "stream":
        return [output.text]
    return [output.data[kind] for kind in ("text/plain", "text/html") if kind in output.data]


def test_there_is_a_notebook() -> None:
    assert [path.name for path in NOTEBOOKS] == ["platform_and_local.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_committed_notebook_was_executed_in_order_and_names_no_machine(path: Path) -> None:
    cells = [cell for cell in read(path).cells if cell.cell_type == "code"]

    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    text = json.dumps(cells)
    assert "Traceback" not in text
    assert not re.search(r"/(home|root|tmp|work|Users)/", text)


@pytest.mark.slow
@pytest.mark.timeout(150)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_shows_again_what_it_shows(path: Path) -> None:
    notebook = read(path)
    before = shown(notebook)

    nbclient.NotebookClient(notebook, timeout=100, kernel_name="python3").execute()

    assert shown(notebook) == before

"""Reports as pages are read by a parser, as a browser would."""

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rleaas import EvaluationReport
from rleaas.reports import as_csv, fragment, page

# Any: JSON.
EPISODES: list[dict[str, Any]] = [
    {
        "index": number,
        "seed": number,
        "outcome": "success" if number % 2 else "failure",
        "reward": number / 10,
        "success": number % 2 == 1,
        "steps": 6,
    }
    for number in range(60)
]
REPORT: dict[str, Any] = {
    "id": "eval_1",
    "name": "nightly",
    "status": "completed",
    "environment_name": "FinSim-Prod-v1",
    "environment_version": 2,
    "agent_checkpoint_id": "ckpt_1",
    "overall_score": 0.9712,
    "score_interval": [0.93, 0.99],
    "pass_rate": 0.5,
    "pass_interval": [0.377, 0.623],
    "asked": 62,
    "scored": 60,
    "failed": 2,
    "tier_results": [
        {"tier": 1, "scored": 30, "pass_rate": 0.9, "pass_interval": [0.74, 0.97]},
        {"tier": 2, "scored": 0, "pass_rate": None, "pass_interval": None},
    ],
    "scenario_results": [
        {"scenario_id": "finsim_wire_003", "name": None, "tier": 1, "pass_rate": 1.0}
    ],
    "verifier_breakdown": {
        "ver_1": {"name": "AML", "version": 3, "audited": False, "mean_score": 0.8, "errors": 1}
    },
    "costs": {"steps": 360, "wall_seconds": 12.5},
    "provenance": {"seeds": [1, 2]},
    "warnings": ["verifier AML was never audited"],
    "episodes": EPISODES,
}
VOID = {"meta", "rect", "line", "path", "br"}


class Reader(HTMLParser):
    """Keeps the texts, the tags and what lies outside of the page; wrong nesting fails."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.outside += [value or "" for name, value in attrs if name in ("src", "href", "action")]
        assert not [name for name, _ in attrs if name.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    assert not {"script", "link", "img", "iframe", "object"}.intersection(reader.tags)
    assert reader.outside == []
    assert "http" not in text.replace("http-equiv", "")
    return reader


def test_a_page_has_every_part_of_a_report_and_needs_nothing_else() -> None:
    reader = read(page([REPORT], made="2026-12-01"))

    told = " ".join(reader.texts)
    for text in (
        "Evaluation nightly",
        "FinSim-Prod-v1@2",
        "0.9712 [0.93, 0.99]",
        "50.0 % [37.7 %, 62.3 %]",
        "60 of 62 episodes have a score, 2 failed",
        "verifier AML was never audited",
        "90.0 % [74.0 %, 97.0 %]",
        "no score",
        "finsim_wire_003",
        "AML",
        "wall seconds",
        "made 2026-12-01",
    ):
        assert text in told, text
    assert reader.tags.count("svg") == 4
    # A line for each episode, beside those of the head.
    assert told.count("success") == 1 + 30


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", "\"'><img src=x onerror=y>"])
def test_no_name_becomes_markup(hostile: str) -> None:
    report = {
        **REPORT,
        "name": hostile,
        "error": hostile,
        "environment_name": hostile,
        "warnings": [hostile],
        "scenario_results": [{"name": hostile, "pass_rate": 0.5}],
        "verifier_breakdown": {hostile: {"name": hostile, "mean_score": 0.1}},
        "costs": {hostile: hostile},
        "provenance": {hostile: hostile},
        "episodes": [{"index": 0, "outcome": hostile, "error": hostile}],
    }

    assert hostile in "".join(read(page([report], made=hostile)).texts)
    assert hostile in "".join(read(fragment(report)).texts)


@pytest.mark.parametrize(
    "report",
    [
        {},
        {"id": "eval_1", "overall_score": None, "tier_results": None, "episodes": None},
        {"overall_score": float("nan"), "episodes": [{"reward": float("inf")}, 3, None]},
        {"tier_results": [{"tier": 1, "pass_rate": 10**400}], "verifier_breakdown": [1]},
        {"episodes": [{"reward": 1e308}, {"reward": -1e308}], "score_interval": ["a"]},
    ],
)
def test_what_is_not_known_has_no_number(report: dict[str, Any]) -> None:
    text = page([report], made="now")
    read(text)
    assert re.search(r"\b(nan|inf|None)\b", text) is None
    assert as_csv([report]).startswith("evaluation_id,")


def test_no_reports_make_a_page_that_says_so() -> None:
    assert "no evaluations" in " ".join(read(page([], made="now")).texts)


def test_a_notebook_shows_the_first_episodes_and_how_many_more_there_are() -> None:
    report = EvaluationReport.model_validate(REPORT)

    reader = read(report._repr_html_())  # pyright: ignore[reportPrivateUsage]  # as a notebook

    assert "10 more episodes are in the report's episodes." in reader.texts


def test_a_page_and_its_values_are_written_where_they_are_asked_for(tmp_path: Path) -> None:
    report = EvaluationReport.model_validate(REPORT)
    told = report.to_html(tmp_path / "report.html")
    report.to_csv(tmp_path / "report.csv")

    assert (tmp_path / "report.html").read_text("utf-8") == told
    lines = list(csv.DictReader(io.StringIO((tmp_path / "report.csv").read_text())))
    assert len(lines) == 60
    assert (lines[3]["reward"], lines[3]["checkpoint"]) == ("0.3", "ckpt_1")


def test_no_cell_is_a_formula_and_what_verifiers_said_is_json() -> None:
    episode = {"index": 0, "error": "=1+1", "verifier_results": [{"score": 1.0}]}
    (line,) = csv.DictReader(io.StringIO(as_csv([{"id": "@a", "episodes": [episode]}])))

    assert (line["evaluation_id"], line["error"]) == ("'@a", "'=1+1")
    assert json.loads(line["verifiers"]) == [{"score": 1.0}]
    told = {**REPORT, "mean_return": 3.5}
    (whole,) = csv.DictReader(io.StringIO(as_csv([told], episodes=False)))
    assert (whole["score"], whole["reward"], whole["index"]) == ("0.9712", "3.5", "")

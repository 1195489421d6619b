"""Reports about evaluations as PDF, for people who sign and file them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, cast

from rleaas.reports import told
from rleaas.server.rules.json_values import items, number
from rleaas.server.store.tables import JsonObject

if TYPE_CHECKING:
    from fpdf import FPDF

_FONT: Final = "helvetica"
_LABEL_WIDTH: Final = 42
_LINE: Final = 5
_COLUMNS: Final = (
    ("episode", "index", 18),
    ("seed", "seed", 26),
    ("outcome", "outcome", 32),
    ("return", "reward", 30),
    ("steps", "steps", 20),
    ("success", "success", 20),
    ("error", "error", 40),
)
_SCORES: Final = (
    ("overall score", "overall_score", "score_interval"),
    ("pass rate", "pass_rate", "pass_interval"),
)
_LONGEST_CELL: Final = 24
_LONGEST_FACT: Final = 2000


def as_pdf(reports: Sequence[JsonObject], *, made: datetime, episodes: bool) -> bytes:
    r"""The reports, each on pages of its own; each episode is a line where they are wanted.

    What the font has no letter for stands as its escape, such as `\u4e2d`.
    """
    # Takes a while to import, and servers that write no PDF have no use for it.
    from fpdf import FPDF

    document = FPDF()
    document.set_title("Evaluation report")
    document.set_creator("rleaas")
    document.set_creation_date(made)
    document.set_auto_page_break(True, margin=15)
    if not reports:
        document.add_page()
        _heading(document, "Evaluation report")
        _fact(document, "made", made.isoformat(timespec="seconds"))
        _fact(document, "evaluations", 0)
    for report in reports:
        document.add_page()
        _heading(document, "Evaluation report")
        _facts(document, report, made)
        if episodes:
            _episodes(document, report)
    return bytes(document.output())


def _facts(document: FPDF, report: JsonObject, made: datetime) -> None:
    _fact(document, "made", made.isoformat(timespec="seconds"))
    _fact(document, "evaluation", report["id"])
    _fact(document, "name", report.get("name"))
    _fact(document, "status", report["status"])
    cut_short = told.partial(report)
    if cut_short:
        _heading(document, cut_short, 11)
    _fact(document, "error", report.get("error"))
    version = report.get("environment_version")
    _fact(document, "environment", f"{report['environment']}@{version}")
    _fact(document, "contract digest", report.get("contract_digest"))
    _fact(document, "checkpoint", report.get("agent_checkpoint_id"))
    _fact(document, "checkpoint SHA-256", report.get("checkpoint_sha256"))
    suite, of = report.get("scenario_suite_id"), report.get("scenario_suite_version")
    _fact(document, "scenario suite", None if suite is None else f"{suite}@{of}")
    _fact(document, "left out", told.in_words(report.get("left_out")))
    asked, scored, failed = (report.get(name) for name in ("asked", "scored", "failed"))
    _fact(document, "episodes", f"{asked} asked, {scored} scored, {failed} failed")
    rate = _interval(report, "success_rate", "success_interval")
    _fact(document, "success rate", rate)
    _fact(document, "mean return", _interval(report, "mean_return", "return_interval"))
    _fact(document, "success threshold", report.get("success_threshold"))
    _fact(document, "started", report.get("started_at"))
    _fact(document, "ended", report.get("completed_at"))
    versions = report.get("package_versions")
    if isinstance(versions, dict):
        known = cast("JsonObject", versions)
        _fact(document, "packages", ", ".join(f"{name} {known[name]}" for name in sorted(known)))
    for title, name, bounds in _SCORES:
        measured = told.measured(report, name, bounds)
        _fact(document, title, None if measured is None else told.in_words(measured))
    for one in items(report.get("warnings")):
        _fact(document, "warning", one)
    for kind in ("tier", "scenario", "verifier"):
        _group(document, kind, told.groups(report, kind))
    for name in ("costs", "provenance"):
        found = told.facts(report.get(name))
        if found:
            _heading(document, name.capitalize(), 11)
        for key, value in found.items():
            _fact(document, key.replace("_", " "), told.in_words(value))


def _episodes(document: FPDF, report: JsonObject) -> None:
    document.ln(_LINE)
    document.set_font(_FONT, "B", 9)
    for title, _, width in _COLUMNS:
        document.cell(width, _LINE, title)
    document.ln()
    document.set_font(_FONT, "", 9)
    for one in items(report.get("episodes")):
        episode = cast("JsonObject", one) if isinstance(one, dict) else {}
        for _, name, width in _COLUMNS:
            document.cell(width, _LINE, _letters(_told(episode.get(name)), _LONGEST_CELL))
        document.ln()


def _group(document: FPDF, kind: str, found: Sequence[told.Facts]) -> None:
    if not found:
        return
    _heading(document, f"{kind.capitalize()}s", 11)
    for one in found:
        score = told.in_words(told.measured(one, "mean_score", "interval"))
        rate = told.in_words(told.measured(one, "pass_rate", "pass_interval"), percent=True)
        count = one.get("judged" if kind == "verifier" else "scored")
        said = f"score {score}, pass rate {rate}, of {told.in_words(count)}"
        if kind == "verifier":
            said += f"; version {told.in_words(one.get('version'))}"
            said += f", audited: {told.in_words(one.get('audited'))}"
            if one.get("audit"):
                said += f" ({told.in_words(one.get('audit'))})"
            said += f", errors: {told.in_words(one.get('errors'))}"
        _fact(document, told.in_words(one.get("label")), said)


def _heading(document: FPDF, text: str, size: int = 16) -> None:
    document.ln(0 if size > 11 else 3)
    document.set_font(_FONT, "B", size)
    document.cell(0, 10 if size > 11 else 6, text)
    document.ln(12 if size > 11 else 7)


def _fact(document: FPDF, label: str, value: object) -> None:
    if value is None or value == "":
        return
    document.set_font(_FONT, "B", 9)
    document.cell(_LABEL_WIDTH, _LINE, _letters(label, 40))
    document.set_font(_FONT, "", 9)
    document.multi_cell(
        0, _LINE, _letters(_told(value), _LONGEST_FACT), new_x="LMARGIN", new_y="NEXT"
    )


def _interval(report: JsonObject, name: str, bounds: str) -> str | None:
    value = number(report.get(name))
    if value is None:
        return None
    ends = [number(one) for one in items(report.get(bounds))]
    if len(ends) == 2 and None not in ends:
        return f"{value:.4g} [{ends[0]:.4g}, {ends[1]:.4g}] (95 %)"
    return f"{value:.4g}"


def _told(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def _letters(text: str, most: int) -> str:
    """A text in letters that the font has, on one line."""
    shown = "".join(one if one.isprintable() else " " for one in text)
    known = shown.encode("latin-1", "backslashreplace").decode("latin-1")
    return known if len(known) <= most else f"{known[: most - 3]}..."

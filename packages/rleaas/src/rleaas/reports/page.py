"""A report as a page: it stands alone, runs nothing, and asks nobody for anything."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Sequence
from typing import Final

from rleaas.reports.drawing import Bar, bars, histogram
from rleaas.reports.told import (
    Facts,
    facts,
    groups,
    headline,
    in_words,
    items,
    measured,
    number,
    partial,
    rows,
)

_MOST_IN_NOTEBOOK: Final = 50
_LONGEST_CELL: Final = 300
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE: Final = """
.rleaas-report{font:14px/1.5 system-ui,sans-serif;max-width:960px;margin:auto;color:#111827}
.rleaas-report h1{font-size:22px}.rleaas-report h2{font-size:17px;margin-top:28px}
.rleaas-report table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
.rleaas-report th,.rleaas-report td{text-align:left;padding:3px 10px 3px 0;vertical-align:top;
border-bottom:1px solid #e5e7eb;overflow-wrap:anywhere}
.rleaas-report .warning{background:#fef3c7;padding:6px 10px;margin:4px 0}
.rleaas-report figure{margin:12px 0}.rleaas-report figcaption{font-weight:600}
.rleaas-report svg{max-width:100%;height:auto;font:11px system-ui,sans-serif}
.rleaas-report .bar{fill:#2563eb}.rleaas-report .axis{stroke:#64748b}
.rleaas-report .interval{stroke:#111827;fill:none}.rleaas-report .nothing{fill:#64748b}
.rleaas-report pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f3f4f6;padding:8px}
"""
Column = tuple[str, Callable[[Facts], object]]


def page(reports: Sequence[Facts], *, made: str) -> str:
    """The reports as one page of HTML with their charts.

    Args:
        reports: as `rleaas.models.EvaluationReport` has them as JSON.
        made: when, for whoever reads it.
    """
    told = "".join(f"<article>{_content(one, most=None)}</article>" for one in reports)
    title = _title(reports[0]) if len(reports) == 1 else f"{len(reports)} evaluation reports"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(_POLICY)}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>"
        f'<body class="rleaas-report">{told or "<p>no evaluations</p>"}'
        f"<footer><p>made {html.escape(made)}</p></footer></body></html>\n"
    )


def fragment(report: Facts) -> str:
    """A report as a notebook shows it, with the first of its episodes."""
    content = _content(report, most=_MOST_IN_NOTEBOOK)
    return f'<style>{_STYLE}</style><div class="rleaas-report">{content}</div>'


def _content(report: Facts, *, most: int | None) -> str:
    parts = [f"<h1>{_cell(_title(report))}</h1>", _table_of(_identity(report))]
    cut_short = partial(report)
    if cut_short:
        parts.append(f'<p class="warning">{_cell(cut_short)}</p>')
    if report.get("error"):
        parts.append(f'<p class="warning">{_cell(report["error"], most=None)}</p>')
    parts += [
        f'<p class="warning">{_cell(one, most=None)}</p>' for one in items(report.get("warnings"))
    ]
    parts += ["<h2>Result</h2>", _table_of(headline(report)), _charts(report)]
    for title, kind, columns in (
        ("Tiers", "tier", _GROUP),
        ("Scenarios", "scenario", _SCENARIO),
        ("Verifiers", "verifier", _VERIFIER),
    ):
        parts.append(_section(title, groups(report, kind), columns))
    parts.append(_facts_section("Costs", facts(report.get("costs"))))
    parts.append(_facts_section("pass@k", facts(report.get("pass_at_k"))))
    episodes = rows(report.get("episodes"))
    parts.append(_section("Episodes", episodes[:most], _EPISODE))
    if most is not None and len(episodes) > most:
        parts.append(f"<p>{len(episodes) - most} more episodes are in the report's episodes.</p>")
    known = report.get("provenance") or report.get("package_versions")
    if known:
        shown = json.dumps(known, indent=2, default=str, ensure_ascii=False)
        parts += ["<h2>Provenance</h2>", f"<pre>{html.escape(shown)}</pre>"]
    return "".join(parts)


def _title(report: Facts) -> str:
    return f"Evaluation {report.get('name') or report.get('id') or ''}".strip()


def _identity(report: Facts) -> list[tuple[str, str]]:
    environment = report.get("environment_name") or report.get("environment")
    version = report.get("environment_version")
    played_by = report.get("agent_checkpoint_id") or report.get("agent")
    suite, of = report.get("scenario_suite_id"), report.get("scenario_suite_version")
    told = (
        ("evaluation", report.get("id")),
        ("status", report.get("status")),
        ("environment", environment if version is None else f"{environment}@{version}"),
        ("played by", played_by),
        ("checkpoint SHA-256", report.get("checkpoint_sha256")),
        ("scenario suite", suite if suite is None else f"{suite}@{of}"),
        ("started", report.get("started_at")),
        ("ended", report.get("completed_at")),
    )
    return [(name, in_words(value)) for name, value in told if value is not None]


def _charts(report: Facts) -> str:
    tiers, scenarios, verifiers = (
        groups(report, kind) for kind in ("tier", "scenario", "verifier")
    )
    episodes = rows(report.get("episodes"))
    scores = [number(one.get("score")) for one in episodes]
    returns = [number(one.get("reward")) for one in episodes]
    return "".join(
        (
            bars("Pass rate by tier", [_passed(one) for one in tiers], percent=True),
            bars("Pass rate by scenario", [_passed(one) for one in scenarios], percent=True),
            bars("Mean score by verifier", [_scored(one) for one in verifiers]),
            histogram("Scores of episodes", [one for one in scores if one is not None]),
            histogram("Returns of episodes", [one for one in returns if one is not None]),
        )
    )


def _passed(one: Facts) -> Bar:
    return Bar(in_words(one.get("label")), measured(one, "pass_rate", "pass_interval"))


def _scored(one: Facts) -> Bar:
    return Bar(in_words(one.get("label")), measured(one, "mean_score", "interval"))


def _section(title: str, found: Sequence[Facts], columns: Sequence[Column]) -> str:
    if not found:
        return ""
    shown = [column for column in columns if any(column[1](one) is not None for one in found)]
    head = "".join(f"<th>{html.escape(name)}</th>" for name, _ in shown)
    body = "".join(
        f"<tr>{''.join(f'<td>{_cell(value(one))}</td>' for _, value in shown)}</tr>"
        for one in found
    )
    return f"<h2>{html.escape(title)}</h2><table><tr>{head}</tr>{body}</table>"


def _facts_section(title: str, told: Facts) -> str:
    if not told:
        return ""
    lines = [(name.replace("_", " "), in_words(value)) for name, value in told.items()]
    return f"<h2>{html.escape(title)}</h2>{_table_of(lines)}"


def _table_of(lines: Sequence[tuple[str, str]]) -> str:
    body = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{_cell(value)}</td></tr>" for name, value in lines
    )
    return f"<table>{body}</table>"


def _cell(value: object, *, most: int | None = _LONGEST_CELL) -> str:
    text = value if isinstance(value, str) else in_words(value)
    shown = text if most is None or len(text) <= most else f"{text[:most]}…"
    # Isolated, so that no name turns the text around it.
    return f"<bdi>{html.escape(shown)}</bdi>"


def _rate(one: Facts) -> object:
    found = measured(one, "pass_rate", "pass_interval")
    return None if found is None else in_words(found, percent=True)


_GROUP: Final[Sequence[Column]] = (
    ("name", lambda one: one.get("label")),
    ("episodes", lambda one: one.get("episodes")),
    ("scored", lambda one: one.get("scored")),
    ("failed", lambda one: one.get("failed")),
    ("mean score", lambda one: measured(one, "mean_score", "interval")),
    ("pass rate", _rate),
)
_TIER: Final[Column] = ("tier", lambda one: one.get("tier"))
_SCENARIO: Final[Sequence[Column]] = (_GROUP[0], _TIER, *_GROUP[1:])
_VERIFIER: Final[Sequence[Column]] = (
    ("name", lambda one: one.get("label")),
    ("version", lambda one: one.get("version")),
    ("audited", lambda one: one.get("audited")),
    ("judged", lambda one: one.get("judged")),
    ("errors", lambda one: one.get("errors")),
    ("mean score", lambda one: measured(one, "mean_score", "interval")),
    ("pass rate", _rate),
)
_EPISODE: Final[Sequence[Column]] = (
    ("episode", lambda one: one.get("index")),
    ("scenario", lambda one: one.get("scenario_id")),
    ("seed", lambda one: one.get("seed")),
    ("outcome", lambda one: one.get("outcome")),
    ("score", lambda one: one.get("score")),
    ("passed", lambda one: one.get("passed")),
    ("return", lambda one: one.get("reward")),
    ("steps", lambda one: one.get("steps")),
    ("error", lambda one: one.get("error")),
)

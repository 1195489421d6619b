"""An evaluation's report on a terminal, or in a file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rlcore import ConfigurationError

from rleaas.cli.console import print_facts, print_json, print_table, say
from rleaas.reports.told import Facts, facts, groups, in_words, items, measured, partial

if TYPE_CHECKING:
    from rleaas import Client
    from rleaas.models import EvaluationReport

FORMATS: Final = ("table", "json", "csv", "html", "pdf")


def print_report(report: EvaluationReport, as_json: bool) -> None:
    """Print a report: what was found before each part of it, and each episode at last."""
    if as_json:
        print_json(report)
        return
    told = report.to_dict()
    print_facts(
        {
            "evaluation": report.id,
            "status": report.status,
            "partial": partial(told),
            "error": report.error,
            "environment": f"{report.environment_name}@{report.environment_version}",
            "digest": report.contract_digest,
            "checkpoint": report.agent_checkpoint_id,
            "episodes": f"{report.asked} asked, {report.scored} scored, {report.failed} failed",
            "mean return": _interval(told, "mean_return", "return_interval"),
            "success rate": _interval(told, "success_rate", "success_interval"),
            "overall score": _interval(told, "overall_score", "score_interval"),
            "pass rate": _interval(told, "pass_rate", "pass_interval"),
            **{f"warning {at}": one for at, one in enumerate(_warnings(told), 1)},
        }
    )
    for kind in ("tier", "scenario", "verifier"):
        _print_groups(kind, groups(told, kind))
    costs = facts(told.get("costs"))
    if costs:
        say("")
        print_facts({name.replace("_", " "): in_words(one) for name, one in costs.items()})
    say("")
    print_table(
        ("episode", "seed", "outcome", "return", "steps", "error"),
        [(e.index, e.seed, e.outcome, e.reward, e.steps, e.error) for e in report.episodes],
        empty="No episodes yet.",
    )


def write_report(
    client: Client, report: EvaluationReport, format: str, path: Path | None
) -> str | Path:
    """Give a report in a form for others: the text itself, or where it was written.

    Raises:
        ConfigurationError: a PDF has no place to go to.
    """
    if format == "pdf":
        if path is None:
            raise ConfigurationError(
                "a PDF is not text that a terminal shows", hint="Say where to: --output report.pdf"
            )
        made = client.Evaluation.export_audit_report(report.id, "pdf")
        return client.Evaluation.download_report(made, path)
    made_text = report.to_html() if format == "html" else report.to_csv()
    if path is None:
        return made_text
    path.write_text(made_text, "utf-8", newline="")
    return path.absolute()


def print_text(text: str) -> None:
    """Print a text as it is, for a pipe or a file."""
    sys.stdout.write(text)


def _print_groups(kind: str, found: Sequence[Facts]) -> None:
    if not found:
        return
    say("")
    audited = kind == "verifier"
    print_table(
        (kind, *(("audited",) if audited else ()), "scored", "failed", "mean score", "pass rate"),
        [
            (
                one.get("label"),
                *((in_words(one.get("audited")),) if audited else ()),
                one.get("judged" if audited else "scored"),
                one.get("errors" if audited else "failed"),
                in_words(measured(one, "mean_score", "interval")),
                in_words(measured(one, "pass_rate", "pass_interval"), percent=True),
            )
            for one in found
        ],
        empty="",
    )


def _interval(told: Facts, name: str, bounds: str) -> str | None:
    found = measured(told, name, bounds)
    if found is None:
        return None
    return in_words(found) + (" (95 %)" if found.low is not None else "")


def _warnings(told: Facts) -> list[str]:
    return [str(one) for one in items(told.get("warnings"))]

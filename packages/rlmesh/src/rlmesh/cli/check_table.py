"""A report of `rlmesh check` as people read it."""

import os
import shutil
import textwrap
from dataclasses import dataclass
from typing import TextIO

from rlcore.printable import printable

from rlmesh.conformance.verdicts import Finding, Report, Verdict

MARKS = {
    Verdict.PASSED: ("✓", "ok  ", "32"),
    Verdict.FAILED: ("✗", "FAIL", "31"),
    Verdict.NOTED: ("!", "note", "33"),
    Verdict.SKIPPED: ("-", "skip", "2"),
}
NARROW, WIDE = 60, 120
LEAD = 4


@dataclass(frozen=True, slots=True)
class Look:
    """What a stream can show.

    Attributes:
        colour: whether it is a terminal.
        marks: whether it can write ✓.
        width: how many columns it has.
    """

    colour: bool
    marks: bool
    width: int

    @classmethod
    def of(cls, stream: TextIO) -> "Look":
        """Return what a stream can show."""
        try:
            "✓✗→".encode(stream.encoding or "ascii")
            marks = True
        except (LookupError, UnicodeEncodeError):
            marks = False
        terminal = stream.isatty()
        columns = shutil.get_terminal_size((100, 24)).columns if terminal else WIDE
        colour = terminal and os.name != "nt"
        return cls(colour, marks, max(NARROW, min(columns, WIDE)))


def table(report: Report, look: Look) -> str:
    """Return a report as a table: one line for each check, more where there is more to do."""
    width = max((len(finding.name) for finding in report), default=0)
    rows = [_row(finding, width, look) for finding in report]
    return "\n".join([_head(report), *rows, _foot(report, look)])


def _head(report: Report) -> str:
    digest = "no contract" if report.digest is None else f"{report.digest[:19]}…"
    name = report.environment
    named = name if name == report.target else f"{name} at {report.target}"
    seeds = ", ".join(map(str, report.seeds))
    return f"{printable(named)} ({digest}): seeds {seeds}; {report.steps} steps each"


def _row(finding: Finding, width: int, look: Look) -> str:
    mark, word, colour = MARKS[finding.verdict]
    lead = f"  {mark if look.marks else word} "
    margin = " " * (len(lead) + width + 2)
    lines = _wrapped(finding.seen, look.width - len(margin))
    if finding.verdict in (Verdict.FAILED, Verdict.NOTED):
        if finding.place is not None:
            lines += _wrapped(f"at {finding.place}", look.width - len(margin))
        if finding.fix:
            arrow = "→" if look.marks else "->"
            lines += _wrapped(f"{arrow} {finding.fix}", look.width - len(margin))
    first = f"{lead}{finding.name.ljust(width)}  {lines[0]}"
    if look.colour:
        first = f"\x1b[{colour}m{lead}{finding.name.ljust(width)}\x1b[0m  {lines[0]}"
    return "\n".join([first, *(margin + line for line in lines[1:])])


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(printable(" ".join(text.split())), width, break_on_hyphens=False) or [""]


def _foot(report: Report, look: Look) -> str:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in report.counts().items())
    text = f"{counts}, in {report.seconds:.1f} s"
    if not look.colour:
        return text
    return f"\x1b[1;{'31' if report.failed else '32'}m{text}\x1b[0m"

"""Results as HTML for notebooks: escaped, without scripts and without anything from outside."""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from rlmesh.runs.export import column_names, rows

if TYPE_CHECKING:
    from rlmesh.runs.compare import Comparison
    from rlmesh.runs.results import RunResult
    from rlmesh.runs.summary import Summary

MOST_EPISODES = 200
"""So many episodes are listed; a notebook is no place for all of a long run."""

_CELL = "text-align:left;vertical-align:top;padding:2px 12px 2px 0"
_WIDTH, _HEIGHT = 480, 60


def result_html(result: "RunResult") -> str:
    """Return a run: its summary, its rewards in a strip, and its episodes."""
    parts = [summary_html(result.summary(), heading=str(result.environment or "Run"))]
    parts.append(rewards_svg([episode.reward for episode in result.episodes]))
    parts.append(_episodes(result))
    return "".join(parts)


def summary_html(summary: "Summary", *, heading: str | None) -> str:
    """Return a summary as tables."""
    parts = [] if heading is None else [f"<h4>{escape(heading)}</h4>"]
    parts.append(facts_html(summary.facts()))
    if summary.tasks:
        parts.append(table_html(summary.task_rows()))
    if summary.telemetry:
        titles = ("op", "component", "metric", "unit", "count", "avg", "p50", "p95", "p99")
        lines = [
            (
                *(row.op, row.component, row.metric, row.unit, str(row.count)),
                *(f"{number:.4g}" for number in (row.avg, row.p50, row.p95, row.p99)),
            )
            for row in summary.telemetry
        ]
        parts.append(_folded("Telemetry", table_html([titles, *lines])))
    parts.append(f"<p>In brackets: {summary.confidence:.0%} intervals.</p>")
    return "".join(parts)


def comparison_html(comparison: "Comparison") -> str:
    """Return a comparison as a table under its verdict."""
    heading = f"<h4>{escape(comparison.headline)}</h4>"
    return heading + facts_html(comparison.facts())


def facts_html(facts: Mapping[str, str]) -> str:
    """Return names and what they stand for."""
    lines = "".join(
        f'<tr><th style="{_CELL}">{escape(name)}</th>'
        f'<td style="{_CELL}">{escape(text).replace(chr(10), "<br>")}</td></tr>'
        for name, text in facts.items()
    )
    return f"<table>{lines}</table>"


def table_html(lines: Sequence[Iterable[str]]) -> str:
    """Return a table whose first line holds the titles."""
    titles, *others = lines
    head = "".join(f'<th style="{_CELL}">{escape(title)}</th>' for title in titles)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in line) + "</tr>"
        for line in others
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def rewards_svg(rewards: Sequence[float | None]) -> str:
    """Return a strip with a dot for each episode's reward, and a cross at the foot for no score."""
    numbers = [reward for reward in rewards if reward is not None and math.isfinite(reward)]
    if len(numbers) < 2:
        return ""
    low, high = min(numbers), max(numbers)
    dots: list[str] = []
    for index, reward in enumerate(rewards):
        x = 4 + (_WIDTH - 8) * index / max(len(rewards) - 1, 1)
        if reward is None or not math.isfinite(reward):
            dots.append(f'<text x="{x:.1f}" y="{_HEIGHT}" font-size="9" fill="#c33">x</text>')
            continue
        share = 0.5 if high == low else (reward - low) / (high - low)
        y = 4 + (_HEIGHT - 16) * (1 - share)
        title = f"episode {index}: {reward:g}"
        dots.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2"><title>{title}</title></circle>')
    label = f"rewards of {len(rewards)} episodes, {low:g} to {high:g}"
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    return (
        f'<figure style="margin:0"><svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'aria-label="{label}" {size} fill="currentColor">{"".join(dots)}</svg>'
        f"<figcaption>{label}</figcaption></figure>"
    )


def _episodes(result: "RunResult") -> str:
    shown = [
        [
            "" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else str(cell)
            for cell in line[:-2]
        ]
        for line, _ in zip(rows(result), range(MOST_EPISODES), strict=False)
    ]
    count = result.num_episodes
    title = (
        f"{count} episodes" if count <= MOST_EPISODES else f"{MOST_EPISODES} of {count} episodes"
    )
    return _folded(title, table_html([column_names(result)[:-2], *shown]))


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{content}</details>"

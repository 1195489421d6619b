"""The HTML report of a bundle: one file that needs nothing else, safe against what labels say."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from html import escape
from importlib.resources import files as resources
from pathlib import Path
from typing import Any, Final

from rlcore import RecordingError

from rlmesh.recorder.charts import MOST_POINTS, interval_bar, returns_plot, ticks, window_of
from rlmesh.recorder.files import FolderFiles
from rlmesh.recorder.loading import load
from rlmesh.recorder.records import ResultSet
from rlmesh.recorder.report_episodes import episode_table, videos
from rlmesh.recorder.report_facts import Facts, facts_of, text

EMBED: Final = 32 * 2**20
"""Bytes of videos that a report holds by itself; the others are links to files beside it."""


def write_report(
    bundle: ResultSet | str | Path,
    path: str | Path,
    *,
    embed: int = EMBED,
    title: str | None = None,
) -> Path:
    """Write the report of a bundle, and return where it is.

    Args:
        bundle: a loaded one, or its path.
        path: of the file.
        embed: bytes of videos to put into it. The others become links to a bundle that is a
            folder; of one that is a zip file they are named only.
        title: its headline.

    Raises:
        BundleError: the bundle is damaged.
        RecordingError: the file cannot be written.
    """
    target = Path(path)
    if not isinstance(bundle, ResultSet):
        with closing(load(bundle)) as found:
            return write_report(found, path, embed=embed, title=title)
    page = html_report(bundle, embed=embed, title=title, links=_links(bundle, target))
    try:
        target.write_text(page, encoding="utf-8")
    except OSError as error:
        raise RecordingError(
            f"the report {str(target)!r} cannot be written: {error.strerror}"
        ) from error
    return target


def html_report(
    bundle: ResultSet | str | Path,
    *,
    embed: int = EMBED,
    title: str | None = None,
    recorded_at: str | None = None,
    links: str | None = None,
) -> str:
    """Return the report of a bundle as HTML.

    Coverage comes before averages; averages come with 95 % intervals.

    Args:
        bundle: a loaded one, or its path.
        embed: bytes of videos to put into the page.
        title: its headline.
        recorded_at: the time that it says, by default the bundle's.
        links: where the bundle's folder is, seen from the page: for the other videos. By default
            these are named only.

    Raises:
        BundleError: the bundle is damaged.
    """
    if not isinstance(bundle, ResultSet):
        with closing(load(bundle)) as found:
            return html_report(
                found, embed=embed, title=title, recorded_at=recorded_at, links=links
            )
    facts = [facts_of(number, one) for number, one in enumerate(bundle.workloads)]
    headline = title or "Evaluation report"
    parts = (
        _header(bundle, facts, headline, recorded_at or bundle.recorded_at),
        _comparison(facts),
        *(_workload(one) for one in facts),
        episode_table(facts),
        videos(bundle, facts, embed, links),
    )
    # A lone surrogate, as file names can have them, is in no encoding.
    return _page("".join(parts), headline).encode(errors="replace").decode()


def _links(found: ResultSet, page: Path) -> str | None:
    if not isinstance(found.files, FolderFiles):
        return None
    return Path(os.path.relpath(found.files.folder, page.resolve().parent)).as_posix()


def _page(body: str, title: str) -> str:
    assets = resources("rlmesh.recorder") / "page"
    style = (assets / "report.css").read_text(encoding="utf-8")
    script = (assets / "report.js").read_text(encoding="utf-8")
    # Even if a label found its way around the escaping, the browser would run this script only.
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'; "
        "media-src data: 'self' file:; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-src 'none'; object-src 'none'; connect-src 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy, quote=True)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        f"{body}\n<footer>Made with rlmesh. Intervals are 95 %: bootstrap for means, Wilson for "
        "rates. Episodes without a score count in coverage and in no average.</footer>\n"
        f"</main>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _header(found: ResultSet, facts: Sequence[Facts], title: str, recorded_at: str | None) -> str:
    asked, scored = sum(one.asked for one in facts), sum(one.scored for one in facts)
    failed = sum(one.failed for one in facts)
    steps = sum(one.workload.total_steps for one in facts)
    sound = (
        '<span class="badge good">files verified</span>'
        if found.verified
        else '<span class="badge none">files not verified</span>'
    )
    when = "" if recorded_at is None else f" · recorded {text(recorded_at)}"
    tiles = "".join(
        (
            _tile(f"{scored} of {asked}", "episodes scored", _failures(failed, asked - scored)),
            _tile(f"{len(facts)}", "workload" if len(facts) == 1 else "workloads"),
            _tile(f"{steps:,}", "steps"),
        )
    )
    return (
        f"<header><div><h1>{text(title)}</h1>"
        f'<div class="soft small">result set <code>{text(found.result_set_id)}</code>{when}</div>'
        f'</div><div>{sound} <button id="theme" type="button" title="Dark or light">◐</button>'
        f'</div></header>\n<section class="card"><div class="tiles" style="margin:0">{tiles}</div>'
        "</section>\n"
    )


def _failures(failed: int, missing: int) -> str:
    left = missing - failed
    parts = [f"{failed} failed without a score"] if failed else []
    parts += [f"{left} never played"] if left > 0 else []
    return ", ".join(parts) or "none failed"


def _comparison(facts: Sequence[Facts]) -> str:
    bars = [one for one in facts if one.counted.rewards]
    if not bars:
        return ""
    ends: list[float] = []
    for one in bars:
        interval = one.counted.mean_reward_interval
        ends += [one.counted.mean_reward, *(interval or ())]
    marks = ticks(min(ends), max(ends))
    rows = "".join(
        _bar_row(
            one.label,
            interval_bar(
                one.counted.mean_reward,
                one.counted.mean_reward_interval,
                marks[0],
                marks[-1],
                _estimate(one.counted.mean_reward, one.counted.mean_reward_interval),
            ),
        )
        for one in bars
    )
    rates = "".join(
        _bar_row(one.label, interval_bar(rate, one.counted.success_interval, 0, 1, _rate(one)))
        for one in bars
        if (rate := one.counted.success_rate) is not None
    )
    shares = f'<h2>Success rate</h2><section class="card">{rates}</section>' if rates else ""
    return f'<h2>Mean return</h2><section class="card">{rows}</section>{shares}\n'


def _bar_row(label: str, bar: str) -> str:
    return f'<div class="bar-row"><span>{text(label)}</span>{bar}</div>'


def _workload(one: Facts) -> str:
    counted = one.counted
    mean = f"{counted.mean_reward:.4g}" if counted.rewards else "none"
    interval = counted.mean_reward_interval
    rate = counted.success_rate
    bounds = counted.success_interval
    excluded = one.scored - len(one.workload.counted)
    tiles = [
        _tile(
            f"{one.scored} of {one.asked}",
            "episodes scored",
            _failures(one.failed, one.asked - one.scored),
        ),
        _tile(
            mean,
            "mean return",
            f"n = {counted.num_episodes}" if interval is None else _bounds(interval),
        ),
    ]
    if rate is not None and bounds is not None:
        tiles.append(_tile(f"{rate:.1%}", "success", f"{bounds.low:.1%} to {bounds.high:.1%}"))
    tiles.append(_tile(f"{one.workload.total_steps:,}", "steps"))
    note = (
        f'<p class="soft small">{excluded} scored episodes are not counted in metrics.</p>'
        if (excluded)
        else ""
    )
    return (
        f'<h2 id="w{one.number}">{text(one.label)}</h2><section class="card">'
        f'<div class="tiles" style="margin-top:0">{"".join(tiles)}</div>{note}'
        f"{_plot(one)}{_provenance(one)}</section>\n"
    )


def _plot(one: Facts) -> str:
    episodes = one.workload.episodes
    if not episodes:
        return '<p class="soft">No episode was recorded.</p>'
    window = window_of(len(episodes))
    said = "their mean" if window == 1 else f"the running mean over {window} episodes"
    points = "" if len(episodes) <= MOST_POINTS else f"; more than {MOST_POINTS} dots are left out"
    return (
        f"<figure>{returns_plot(episodes, one.label)}<figcaption>Returns by episode; "
        f"the line is {said}{points}. Crosses ended without a score.</figcaption></figure>"
    )


def _provenance(one: Facts) -> str:
    run: Mapping[str, Any] = one.workload.details.get("run") or {}  # Any: JSON, as below
    rows: list[tuple[str, str]] = []
    environment: Mapping[str, Any] = run.get("environment") or {}
    if environment:
        version = environment.get("version")
        name = str(environment.get("name")) + ("" if version is None else f"@{version}")
        rows += [("environment", name), ("contract", str(environment.get("contract_digest")))]
    for key, label in (
        ("model", "model"),
        ("model_digest", "model digest"),
        ("stopped", "stopped"),
    ):
        if run.get(key):
            rows.append((label, str(run[key])))
    for key, label in (("started_at", "started"), ("finished_at", "finished")):
        if run.get(key):
            rows.append((label, str(run[key])))
    for key, label in (("package_versions", "versions"), ("machine", "machine")):
        facts: Mapping[str, Any] = run.get(key) or {}
        if facts:
            rows.append((label, ", ".join(f"{name} {value}" for name, value in facts.items())))
    seeds = [episode.seed for episode in one.workload.episodes]
    rows.append(("seeds", _seeds(seeds)))
    if one.workload.config:
        rows.append(("config", json.dumps(one.workload.config, ensure_ascii=False)))
    rows += [("advisory", str(text)) for text in run.get("advisories") or ()]
    rows += [("telemetry", text) for text in _telemetry(run)]
    listed = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in rows)
    return f"<details><summary>Provenance</summary><dl>{listed}</dl></details>"


def _telemetry(run: Mapping[str, Any]) -> Iterator[str]:  # Any: JSON
    for row in run.get("telemetry") or ():
        yield (
            f"{row['op']} {row['metric']}: p50 {row['p50']:.4g}, p95 {row['p95']:.4g}, "
            f"p99 {row['p99']:.4g} {row['unit']} (n = {row['count']})"
        )


def _seeds(seeds: Sequence[int | None]) -> str:
    known = [seed for seed in seeds if seed is not None]
    if len(known) > 2 and known == list(range(known[0], known[0] + len(known))):
        return f"{known[0]} to {known[-1]}"
    text = ", ".join("none" if seed is None else str(seed) for seed in seeds[:200])
    return text + (", …" if len(seeds) > 200 else "") if seeds else "none"


def _tile(value: str, label: str, more: str = "") -> str:
    extra = f"<i>{text(more)}</i>" if more else ""
    return f'<div class="tile"><b>{text(value)}</b><span>{text(label)}</span>{extra}</div>'


def _estimate(mean: float, interval: tuple[float, float] | None) -> str:
    return (
        f"{mean:.4g}" if interval is None else f"{mean:.4g}  [{interval[0]:.4g}, {interval[1]:.4g}]"
    )


def _bounds(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.4g} to {interval[1]:.4g}"


def _rate(one: Facts) -> str:
    rate, bounds = one.counted.success_rate, one.counted.success_interval
    assert rate is not None  # the caller has looked
    between = "" if bounds is None else f"  [{bounds.low:.0%}, {bounds.high:.0%}]"
    return f"{rate:.1%}{between}  n = {one.counted.num_episodes}"

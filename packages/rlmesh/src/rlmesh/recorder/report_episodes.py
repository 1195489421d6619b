"""The episodes of a report: a table to sort and filter, and their videos."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from rlmesh.recorder.records import EpisodeRecord, MediaRef, ResultSet
from rlmesh.recorder.report_facts import Facts, text
from rlmesh.runs.outcomes import Outcome

_MIME: Final = {"mp4": "video/mp4", "webm": "video/webm", "m4v": "video/mp4", "mov": "video/mp4"}
_COLUMNS: Final = (
    ("Workload", ""),
    ("Episode", "number"),
    ("Seed", "number"),
    ("Outcome", ""),
    ("Return", "number"),
    ("Steps", "number"),
    ("Seconds", "number"),
    ("Predict ms", "number"),
    ("Step ms", "number"),
    ("Trial", "number"),
    ("Note", ""),
)


def episode_table(facts: Sequence[Facts]) -> str:
    """Return the table of all episodes, with what filters it."""
    rows = "".join(_row(one, episode) for one in facts for episode in one.workload.episodes)
    if not rows:
        return ""
    heads = "".join(
        f'<th scope="col" class="{kind}"><button type="button">{name}</button></th>'
        for name, kind in _COLUMNS
    )
    there = {episode.outcome for one in facts for episode in one.workload.episodes}
    outcomes = "".join(
        f'<option value="{outcome.value}">{outcome.value}</option>'
        for outcome in Outcome
        if outcome in there
    )
    workloads = "".join(
        f'<option value="{one.number}">{one.number}: {text(one.label)}</option>' for one in facts
    )
    return (
        '<h2>Episodes</h2><div class="tools">'
        '<input id="filter" type="search" placeholder="Filter: seed, label, error …" '
        'aria-label="Filter episodes">'
        '<select id="outcome" aria-label="Outcome"><option value="">every outcome</option>'
        f"{outcomes}"
        '</select><select id="workload" aria-label="Workload" style="max-width:280px">'
        f'<option value="">every workload</option>{workloads}</select>'
        '<span id="shown" class="soft small" role="status"></span></div>'
        f'<div class="scroll"><table id="episodes"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>\n"
    )


def _row(one: Facts, episode: EpisodeRecord) -> str:
    kind = episode.outcome.value
    reward = f"{episode.reward:.4g}" if episode.outcome.scored else ""
    exact = repr(episode.reward) if episode.outcome.scored else ""
    note = episode.error or (
        "" if episode.included_in_metrics or not episode.outcome.scored else "not counted"
    )
    words = f"{one.label} {episode.index} {episode.seed} {kind} {note}".lower()
    label = text(one.label)
    cells = (
        f'<td class="name" title="{label}" data-value="{one.number}">{label}</td>',
        _cell(episode.index),
        _cell(episode.seed),
        f'<td data-value="{kind}"><span class="badge {kind}">{kind}</span></td>',
        f'<td class="number" data-value="{text(exact)}">{text(reward)}</td>',
        _cell(episode.steps),
        _cell(episode.duration_s, ".3g"),
        _cell(episode.predict_ms, ".3g"),
        _cell(episode.step_ms, ".3g"),
        _cell(episode.trial),
        f'<td class="wide">{text(note)}</td>',
    )
    return (
        f'<tr id="{_row_id(one, episode)}" data-workload="{one.number}" data-outcome="{kind}" '
        f'data-text="{text(words)}">{"".join(cells)}</tr>'
    )


def _row_id(one: Facts, episode: EpisodeRecord) -> str:
    return text(f"e{one.number}-{episode.index}")


def _cell(value: float | None, form: str = "") -> str:
    if value is None:
        return '<td class="number" data-value=""></td>'
    return f'<td class="number" data-value="{text(repr(value))}">{text(format(value, form))}</td>'


def videos(found: ResultSet, facts: Sequence[Facts], embed: int, links: str | None) -> str:
    """Return the videos: the first `embed` bytes of them in the page, links for the others."""
    left = embed
    cards: list[str] = []
    for one in facts:
        for episode in one.workload.episodes:
            for media in episode.media:
                source = None if links is None else _link(links, media.path)
                mime = _MIME.get(media.format.lower())
                if found.files is not None and mime is not None:
                    size = found.files.size(media.path)
                    if size <= left:
                        left -= size
                        content = base64.b64encode(media.read()).decode()
                        source = f"data:{mime};base64,{content}"
                cards.append(_video(one, episode, media, source, plays=mime is not None))
    return f'<h2>Videos</h2><section class="videos">{"".join(cards)}</section>\n' if cards else ""


def _link(folder: str, path: str) -> str:
    # Quoted, so that no part of it is the scheme of an address or ends the attribute.
    return quote(path if folder == "." else f"{folder}/{path}", errors="replace")


def _video(
    one: Facts, episode: EpisodeRecord, media: MediaRef, source: str | None, *, plays: bool
) -> str:
    reward = f"return {episode.reward:.4g}" if episode.outcome.scored else "no score"
    told = (
        f'<p><span class="badge {episode.outcome.value}">{episode.outcome.value}</span> '
        f"episode {text(episode.index)}, seed {text(episode.seed)}, {text(reward)}<br>"
        f'<span class="soft">{text(one.label)} · {text(media.camera)}</span></p>'
    )
    if source is None:
        picture = f"<p>in the bundle: <code>{text(media.path)}</code></p>"
    elif plays:
        picture = f'<video controls muted playsinline preload="metadata" src="{source}"></video>'
    else:
        picture = f'<p><a href="{source}">{text(media.path)}</a></p>'
    return f'<article data-row="{_row_id(one, episode)}">{picture}{told}</article>'

"""Plots of a report as SVG text: drawn here, so that the page needs no library and no network."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import Final

from rlmesh.recorder.records import EpisodeRecord
from rlmesh.runs.statistics import Interval

MOST_POINTS: Final = 2000
_FAR: Final = 1e300
"""Numbers beyond this are drawn there: their differences would not be finite."""

_WIDTH, _HEIGHT = 720, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 8, 10, 26


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers that cover a range, about `count` of them."""
    low, high = max(low, -_FAR), min(high, _FAR)
    least = max(abs(low), abs(high)) * 1e-9
    if not high - low > max(least, 1e-300):  # there are no numbers between them to write
        room = max(0.5, least)
        high, low = high + room, low - room
    rough = (high - low) / max(1, count - 1)
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * times for times in (1, 2, 2.5, 5, 10) if size * times >= rough)
    first = math.floor(low / step)
    return [at * step for at in range(first, math.ceil(high / step) + 1)]


def returns_plot(episodes: Sequence[EpisodeRecord], label: str) -> str:
    """Return a plot of the returns in order, with their mean so far; failures are crosses."""
    scored = [one for one in episodes if one.outcome.scored]
    rewards = [one.reward for one in scored] or [0.0]
    marks = ticks(min(rewards), max(rewards))
    low, high = marks[0], marks[-1]
    last = max(1, len(episodes) - 1)

    def x(index: int) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * index / last

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - value) / (high - low)

    parts = [
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(m):.1f}" y2="{y(m):.1f}"/>'
        f'<text x="{_LEFT - 8}" y="{y(m) + 4:.1f}" text-anchor="end">{m:g}</text>'
        for m in marks
    ]
    for index in sorted({0, last // 2, last} if len(episodes) > 2 else {0, len(episodes) - 1}):
        anchor = "start" if index == 0 else "end" if index == last else "middle"
        at = f'x="{x(index):.1f}" y="{_HEIGHT - 8}" text-anchor="{anchor}"'
        parts.append(f"<text {at}>episode {index}</text>")
    if len(episodes) <= MOST_POINTS:
        parts += [_mark(one, x(at), y(one.reward), y(low)) for at, one in enumerate(episodes)]
    parts.append(_running_mean(episodes, x, y))
    name = escape(f"returns of {label}", quote=True)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{name}">'
        f"{''.join(parts)}</svg>"
    )


def window_of(count: int) -> int:
    """Return over how many episodes the running mean of a plot goes."""
    return 1 if count < 20 else min(100, count // 10)


def interval_bar(
    centre: float, interval: Interval | None, low: float, high: float, text: str
) -> str:
    """Return a dot with its interval, on a scale that several bars share."""
    width, height = 520, 34
    span = high - low or 1.0

    def x(value: float) -> float:
        return 6 + (width - 12) * (min(max(value, low), high) - low) / span

    middle = height - 10
    parts = [f'<line class="axis" x1="6" x2="{width - 6}" y1="{middle}" y2="{middle}"/>']
    if interval is not None:
        left, right = x(interval.low), x(interval.high)
        parts.append(
            f'<rect class="band" x="{left:.1f}" y="{middle - 6}" '
            f'width="{max(1.0, right - left):.1f}" height="12" rx="6"/>'
            f'<line class="whisker" x1="{left:.1f}" x2="{right:.1f}" y1="{middle}" y2="{middle}"/>'
        )
    parts.append(f'<circle class="centre" cx="{x(centre):.1f}" cy="{middle}" r="4.5"/>')
    anchor = (
        "start" if x(centre) < width * 0.25 else "end" if x(centre) > width * 0.75 else "middle"
    )
    place = f'x="{x(centre):.1f}" y="11" text-anchor="{anchor}"'
    parts.append(f'<text class="value" {place}>{escape(text)}</text>')
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(text, quote=True)}">'
        f"{''.join(parts)}</svg>"
    )


def _mark(episode: EpisodeRecord, x: float, y: float, floor: float) -> str:
    kind = episode.outcome.value
    told = escape(f"episode {episode.index}: {kind}")
    if episode.outcome.scored:
        title = f"<title>{told}, return {episode.reward:g}</title>"
        return f'<circle class="point {kind}" cx="{x:.1f}" cy="{y:.1f}" r="3">{title}</circle>'
    cross = f"M{x - 3:.1f} {floor - 3:.1f}l6 6m0 -6l-6 6"
    return f'<path class="cross {kind}" d="{cross}"><title>{told}</title></path>'


def _running_mean(
    episodes: Sequence[EpisodeRecord], x: Callable[[int], float], y: Callable[[float], float]
) -> str:
    window = window_of(len(episodes))
    if window == 1:  # too few for a trend: a line between them would draw one
        rewards = [episode.reward for episode in episodes if episode.outcome.scored]
        if not rewards:
            return ""
        mean = f"{y(math.fsum(rewards) / len(rewards)):.1f}"
        return (
            f'<polyline class="mean" points="{x(0):.1f} {mean} {x(len(episodes) - 1):.1f} {mean}"/>'
        )
    recent: list[float] = []
    points: list[str] = []
    every = max(1, len(episodes) // MOST_POINTS)
    for at, episode in enumerate(episodes):
        if episode.outcome.scored:
            recent = [*recent[-(window - 1) :], episode.reward]
        if recent and at % every == 0:
            points.append(f"{x(at):.1f} {y(math.fsum(recent) / len(recent)):.1f}")
    return f'<polyline class="mean" points="{" ".join(points)}"/>' if len(points) > 1 else ""

"""Charts as SVG within a page, which need neither a network nor a library."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from rleaas.reports.told import Measured, in_words

_WIDTH: Final = 720
_LABEL: Final = 230
_ROW: Final = 22
_LONGEST_LABEL: Final = 34
_BINS: Final = 20


class Bar(NamedTuple):
    """A labelled number; None where nobody knows it."""

    label: str
    value: Measured | None


def bars(title: str, told: Sequence[Bar], *, percent: bool = False) -> str:
    """A chart of horizontal bars with their intervals; empty where there is nothing to draw."""
    known = [one for one in told if one.value is not None]
    if not known:
        return ""
    ends = [end for one in known if one.value for end in one.value if end is not None]
    low, high = min(0.0, *ends), max(0.0, *ends)
    if percent:
        low, high = 0.0, max(1.0, high)
    if not math.isfinite(high - low):
        return ""
    scale = (_WIDTH - _LABEL - 150) / ((high - low) or 1.0)
    parts: list[str] = []
    for row, one in enumerate(told):
        parts.append(_bar(one, 24 + row * _ROW, low, scale, percent=percent))
    axis = _LABEL + (0.0 - low) * scale
    height = 30 + len(told) * _ROW
    line = f'<line x1="{axis:.1f}" y1="20" x2="{axis:.1f}" y2="{height - 6}" class="axis"/>'
    return _chart(title, height, line + "".join(parts))


def histogram(title: str, values: Sequence[float]) -> str:
    """How often values lie where; empty where there are fewer than two."""
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    width = (high - low) / _BINS
    if not math.isfinite(high - low):
        return ""
    counts = [0] * _BINS
    for value in values:
        place = int((value - low) / width) if width > 0 else 0
        counts[min(_BINS - 1, place)] += 1
    most = max(counts)
    column = (_WIDTH - 60) / _BINS
    parts = [
        f'<rect x="{30 + place * column:.1f}" y="{150 - 120 * count / most:.1f}" '
        f'width="{column - 2:.1f}" height="{120 * count / most:.1f}" class="bar">'
        f"<title>{count} of {len(values)} from {low + place * width:.4g}</title></rect>"
        for place, count in enumerate(counts)
        if count
    ]
    parts.append(f'<text x="30" y="168">{low:.4g}</text>')
    parts.append(f'<text x="{_WIDTH - 30}" y="168" text-anchor="end">{high:.4g}</text>')
    return _chart(title, 178, "".join(parts))


def _bar(one: Bar, top: int, low: float, scale: float, *, percent: bool) -> str:
    label = one.label if len(one.label) <= _LONGEST_LABEL else f"{one.label[:_LONGEST_LABEL]}…"
    text = (
        f'<text x="{_LABEL - 8}" y="{top + 12}" text-anchor="end">{html.escape(label)}'
        f"<title>{html.escape(one.label)}</title></text>"
    )
    if one.value is None:
        return f'{text}<text x="{_LABEL + 6}" y="{top + 12}" class="nothing">no score</text>'
    begin = _LABEL + (min(0.0, one.value.value) - low) * scale
    length = abs(one.value.value) * scale
    drawn = f'<rect x="{begin:.1f}" y="{top}" width="{length:.1f}" height="15" class="bar"/>'
    edge = begin + length
    if one.value.low is not None and one.value.high is not None:
        first, last = (_LABEL + (end - low) * scale for end in one.value[1:] if end is not None)
        middle = top + 7.5
        drawn += (
            f'<path d="M{first:.1f} {middle}H{last:.1f}M{first:.1f} {top + 3}v9'
            f'M{last:.1f} {top + 3}v9" class="interval"/>'
        )
        edge = max(edge, last)
    shown = html.escape(in_words(one.value, percent=percent))
    return f'{text}{drawn}<text x="{edge + 6:.1f}" y="{top + 12}">{shown}</text>'


def _chart(title: str, height: int, content: str) -> str:
    name = html.escape(title)
    return (
        f'<figure><figcaption>{name}</figcaption><svg viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" role="img" aria-label="{name}">{content}</svg>'
        "</figure>"
    )

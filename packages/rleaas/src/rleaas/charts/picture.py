"""The learning curve as a picture, by matplotlib, with neither a display nor pyplot's state."""

# matplotlib leaves its keyword arguments open.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import io
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rlcore import ConfigurationError, MissingDependencyError

from rleaas.charts.learning_curve import AXES, Axis, LearningCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS: Final = ("png", "svg", "pdf")

_BLUE, _GREEN, _GREY = "#2563eb", "#16a34a", "#64748b"


def require_matplotlib() -> None:
    """Refuse to draw where nothing draws.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise MissingDependencyError(
            "a plot needs 'matplotlib', which is not installed",
            hint="Install the extra: pip install 'rleaas[plot]'",
        )


def format_of(path: str | Path) -> str:
    """Return the format that a file's name asks for.

    Raises:
        ConfigurationError: it is none of those that can be written.
    """
    kind = Path(path).suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise ConfigurationError(
            f"{str(path)!r} has no ending of a picture that can be written",
            hint=f"End it in {', '.join('.' + one for one in FORMATS)}.",
        )
    return kind


def draw(curve: LearningCurve, title: str, *, window: int | None = None, over: Axis) -> Figure:
    """Return a figure of the curve; a notebook shows it as a picture.

    It has every episode's reward as a dot, the running mean over `window` episodes as a line, and
    one standard deviation around it as a band; the running success rate below, and a line where a
    tier begins, if the training tells them.
    """
    figure = _figure()
    rated = any(one.success_rate is not None for one in curve.episodes)
    if rated:
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
        _draw_success(lower, curve, over)
        lower.set_xlabel(AXES[over])
    else:
        upper = figure.add_subplot()
        upper.set_xlabel(AXES[over])
    _draw_rewards(upper, curve, curve.window() if window is None else window, over)
    for episode, tier in curve.tiers():
        upper.axvline(episode.at(over), color=_GREY, linestyle=":", linewidth=1)
        upper.annotate(
            f"tier {tier}",
            (episode.at(over), 1),
            xycoords=("data", "axes fraction"),
            fontsize=8,
            rotation=90,
            va="top",
            ha="right",
        )
    # A name is a name, whatever is between its dollars.
    upper.set_title(title, parse_math=False)
    return figure


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure; the ending of the file's name says as what."""
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        # A letter of a name that the font has not is drawn as a box.
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        figure.savefig(place, format=format_of(place))


def png_of(figure: Figure) -> bytes:
    """Return a figure as the bytes of a PNG."""
    with warnings.catch_warnings(), io.BytesIO() as file:
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        figure.savefig(file, format="png")
        return file.getvalue()


def _figure() -> Figure:
    # Not pyplot, which would look for a display and keep the figure alive.
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that a notebook shows whatever its backend is."""

        def _repr_png_(self) -> bytes:
            return png_of(self)

    return Picture(figsize=(8, 4.5), dpi=120, layout="constrained")


def _draw_rewards(axes: Axes, curve: LearningCurve, window: int, over: Axis) -> None:
    places = [one.at(over) for one in curve.episodes]
    band = curve.band(window)
    rewards = [one.reward for one in curve.episodes]
    axes.plot(places, rewards, ".", color=_BLUE, alpha=0.25, markersize=3, label="episode")
    axes.plot(places, band.mean, color=_BLUE, linewidth=1.8, label=f"mean of {window}")
    label = "± one standard deviation"
    axes.fill_between(places, band.low, band.high, color=_BLUE, alpha=0.15, lw=0, label=label)
    _finish(axes, "reward of an episode")
    axes.legend(loc="best", fontsize=8)


def _draw_success(axes: Axes, curve: LearningCurve, over: Axis) -> None:
    rated = [(one.at(over), one.success_rate) for one in curve.episodes]
    told: list[Any] = [pair for pair in rated if pair[1] is not None]
    axes.plot([x for x, _ in told], [y for _, y in told], color=_GREEN, linewidth=1.5)
    axes.set_ylim(-0.05, 1.05)
    _finish(axes, "success rate")


def _finish(axes: Axes, label: str) -> None:
    axes.set_ylabel(label)
    axes.grid(alpha=0.25)

"""The learning curve, in the terminal and as a picture."""

# plotext has no types, matplotlib leaves its keyword arguments open.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Where training stood: steps taken so far, and the running mean return."""

    timestep: int
    mean_return: float


@dataclass(frozen=True, slots=True)
class Curve:
    """How the mean return rose with the steps, and what counts as good, where that is known."""

    title: str
    points: Sequence[CurvePoint]
    good: float | None = None

    def in_terminal(self, *, width: int, height: int = 18, colour: bool = True) -> str:
        """Return the curve as lines of characters.

        Raises:
            ValueError: there are fewer than two points, which make no curve.
        """
        from plotext import figure  # type: ignore[import-untyped]  # it has none

        steps, returns = self._axes()
        figure.clear()
        figure.plot_size(width, height)
        figure.theme("default" if colour else "colorless")
        figure.canvas("default")
        thousands = [step / 1000 for step in steps]
        figure.draw(figure.signal(thousands, returns, marker="braille").lines())
        figure.title(self.title)
        figure.label("thousand environment steps")
        drawn = str(figure.build())
        figure.clear()
        return drawn if colour else _without_escapes(drawn)

    def save_png(self, path: Path) -> Path:
        """Write the curve as a picture and return where it is.

        Raises:
            ValueError: there are fewer than two points, which make no curve.
        """
        # Without pyplot, which would look for a display and keep the figure alive.
        from matplotlib.figure import Figure

        steps, returns = self._axes()
        figure = Figure(figsize=(8, 4.5), dpi=120, layout="constrained")
        axes = figure.add_subplot()
        axes.plot(steps, returns, color="#2563eb", linewidth=1.8, label="running mean")
        if self.good is not None:
            axes.axhline(self.good, color="#16a34a", linestyle="--", linewidth=1, label="good")
        axes.set(title=self.title, xlabel="environment steps", ylabel="mean return")
        axes.grid(alpha=0.25)
        axes.legend(loc="lower right")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="png")
        return path

    def _axes(self) -> tuple[list[int], list[float]]:
        if len(self.points) < 2:
            raise ValueError(f"{len(self.points)} points make no curve")
        return [p.timestep for p in self.points], [p.mean_return for p in self.points]


def _without_escapes(drawn: str) -> str:
    from rich.text import Text

    return "\n".join(line.rstrip() for line in Text.from_ansi(drawn).plain.splitlines())

"""Which pictures of a run are recorded, lane by lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlmesh.runs.frames import FrameSource
from rlmesh.runs.hooks import RunContext, StepEvent
from rlmesh.runs.pictures import Picture


@dataclass(frozen=True, slots=True)
class Camera:
    """One thing to film: its name in the bundle, and where a step's picture comes from."""

    name: str
    take: Callable[[StepEvent], Picture | None]


class Cameras:
    """The cameras of a run.

    Args:
        context: where pictures come from.
        wanted: names of cameras; None for all that there are.
    """

    def __init__(self, context: RunContext, wanted: Sequence[str] | None) -> None:
        self._context = context
        self._wanted = wanted
        self._of_lane: dict[int, tuple[Camera, ...]] = {}
        self._off: set[str] = set()
        self.fruitful: set[str] = set()

    def of(self, lane: int) -> tuple[Camera, ...]:
        """Return the cameras that film a lane."""
        known = self._of_lane.get(lane)
        if known is None:
            known = self._of_lane[lane] = self._found(lane)
        return known

    def switch_off(self, name: str) -> None:
        """Film no more with a camera, on no lane."""
        self._off.add(name)
        self._of_lane = {
            lane: tuple(one for one in cameras if one.name != name)
            for lane, cameras in self._of_lane.items()
        }

    def fruitless(self) -> tuple[str, ...]:
        """Return the names of cameras that were asked for and gave no picture at all."""
        wanted = () if self._wanted is None else self._wanted
        return tuple(name for name in wanted if name not in self.fruitful and name not in self._off)

    def names(self) -> tuple[str, ...]:
        """Return what the run has to film."""
        return tuple(dict.fromkeys(_name(source) for source in self._context.frame_sources()))

    def _found(self, lane: int) -> tuple[Camera, ...]:
        several = self._context.num_envs > 1
        cameras: dict[str, Camera] = {}
        for source in self._context.frame_sources():
            # Of several lanes, a source without one is a grid of all: nobody's episode.
            if source.lane != (lane if several else None) and not (
                not several and source.lane == 0
            ):
                continue
            name = _name(source)
            asked = self._wanted is None or name in self._wanted
            if asked and name not in self._off and name not in cameras:
                cameras[name] = Camera(name, _taker(source))
        return tuple(cameras.values())


def _name(source: FrameSource) -> str:
    return source.label if source.lane is None else source.label.removesuffix(f"[{source.lane}]")


def _taker(source: FrameSource) -> Callable[[StepEvent], Picture | None]:
    capture, pick = source.capture, source.pick
    if capture is not None:
        return lambda _: capture()
    assert pick is not None  # a source has one of them

    def seen(event: StepEvent) -> Picture | None:
        # What the step led to, as a drawing shows it.
        after = event.next_observation
        return pick(event.observation if after is None else after)

    return seen

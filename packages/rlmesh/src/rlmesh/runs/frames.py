"""Where a run has pictures from: what the environment draws, and images in its observations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from rlmesh.runs.local_env import LocalEnv
from rlmesh.runs.local_lanes import LocalLanes
from rlmesh.runs.pictures import Picture, PictureForm, picture, picture_form, tiled
from rlmesh.spaces import Dict, Space, Tuple
from rlmesh.specs import EnvContract

RENDER = "render"


@dataclass(frozen=True, slots=True)
class FrameSource:
    """One thing to look at during a run.

    Exactly one of `capture` and `pick` is there. Neither keeps what it is given.

    Attributes:
        label: what it is called; unique within a run.
        kind: `render` for what the environment draws, `observation` for a part of what it observes.
        capture: draws now, on the thread that steps the environment and between its steps; a
            uint8 (H, W, 3) array of its own, or None where nothing is drawn. What the environment
            raises comes out.
        lane: which lane it shows. None in a run of several lanes means all: `capture` gives a grid
            of them, `pick` fits any lane's observation.
        pick: the picture in ONE lane's observation, likewise; None where it has none.
    """

    label: str
    kind: Literal["render", "observation"]
    capture: Callable[[], Picture | None] | None = None
    lane: int | None = None
    pick: Callable[[object], Picture | None] | None = None


def frame_sources_of(
    env: object, contract: EnvContract | None, *, num_envs: int | None = None
) -> tuple[FrameSource, ...]:
    """Return what can be looked at while an environment is stepped, the best first.

    What it renders comes first, where its render mode gives arrays, then every part of its
    observations that looks like an image. Of several lanes all as a grid come first, then each.

    Args:
        env: what is stepped: a local environment, or a handle to a remote one; of any lanes.
        contract: its contract; without one there are no observations to look at.
        num_envs: how many lanes there are, by default as the contract or the environment says.
    """
    stepped = env.env if isinstance(env, LocalEnv | LocalLanes) else env
    lanes = num_envs if num_envs is not None else _lanes(stepped, contract)
    images = [] if contract is None else list(_images(contract.observation_space))
    mode: object = getattr(stepped, "render_mode", None)
    if mode is None and contract is not None:
        mode = contract.render_mode
    draws = isinstance(mode, str) and "rgb" in mode and callable(getattr(stepped, "render", None))
    taken = {label for label, _, _ in images}
    name = f"{RENDER}()" if RENDER in taken else RENDER
    found: list[FrameSource] = []
    if draws:
        found.append(FrameSource(name, "render", capture=_drawing(stepped, lanes, None)))
    found += [
        FrameSource(label, "observation", pick=_picking(path, form)) for label, path, form in images
    ]
    if lanes > 1:
        for lane in range(lanes):
            mark = f"[{lane}]"
            if draws:
                capture = _drawing(stepped, lanes, lane)
                found.append(FrameSource(name + mark, "render", capture=capture, lane=lane))
            found += [
                FrameSource(label + mark, "observation", lane=lane, pick=_picking(path, form))
                for label, path, form in images
            ]
    return tuple(found)


def _lanes(env: object, contract: EnvContract | None) -> int:
    lanes: object = getattr(env, "num_envs", None)
    if isinstance(lanes, int):
        return lanes
    return 1 if contract is None else contract.num_envs


def _images(
    space: Space, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[str, tuple[str | int, ...], PictureForm]]:
    if isinstance(space, Dict):
        for key, part in space.items():
            yield from _images(part, (*path, key))
    elif isinstance(space, Tuple):
        for index, part in enumerate(space):
            yield from _images(part, (*path, index))
    else:
        form = picture_form(space)
        if form is not None:
            yield ".".join(map(str, path)) or "observation", path, form


def _picking(path: tuple[str | int, ...], form: PictureForm) -> Callable[[object], Picture | None]:
    def pick(observation: object) -> Picture | None:
        part = observation
        for step in path:
            if isinstance(step, str):
                part = cast("Mapping[str, object]", part)[step]
            else:
                part = cast("Sequence[object]", part)[step]
        return picture(part, form)

    return pick


def _drawing(
    env: Any,  # whatever has render()
    lanes: int,
    lane: int | None,
) -> Callable[[], Picture | None]:
    def one() -> Picture | None:
        return _last(env.render())

    def every() -> Picture | None:
        drawn: object = env.render()
        if not isinstance(drawn, list | tuple):
            return _last(drawn)
        return tiled([_last(part) for part in cast("Sequence[object]", drawn)])

    def of_lane() -> Picture | None:
        assert lane is not None
        single = getattr(getattr(env, "unwrapped", env), "envs", None)
        if isinstance(single, list | tuple):  # gymnasium's SyncVectorEnv: nobody else is drawn
            return _last(cast("Sequence[Any]", single)[lane].render())
        if hasattr(env, "env_contract"):  # ours: one lane's frame crosses the wire
            return _last(env.render(env_index=lane))
        drawn: object = env.render()
        if not isinstance(drawn, list | tuple):
            return None
        return _last(cast("Sequence[object]", drawn)[lane])

    if lanes == 1:
        return one
    return every if lane is None else of_lane


def _last(drawn: object) -> Picture | None:
    if isinstance(drawn, list | tuple):  # `rgb_array_list` keeps frames: the newest is now
        frames = cast("Sequence[object]", drawn)
        drawn = frames[-1] if frames else None
    if drawn is None or isinstance(drawn, str):
        return None
    return picture(drawn)

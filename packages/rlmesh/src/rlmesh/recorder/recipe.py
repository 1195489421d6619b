"""What gymnasium made an environment from, where it can be made again exactly like that."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, Final, cast

from rlmesh.recorder.tagged import to_tagged
from rlmesh.runs.failing import Failing

Json = dict[str, Any]  # Any: JSON

_LOOKS: Final = ("render_mode",)
"""What an environment is made with that changes nothing about its steps."""

_IDLE: Final = frozenset(
    (
        "HumanRendering",
        "OrderEnforcing",
        "PassiveEnvChecker",
        "RecordEpisodeStatistics",
        "RecordVideo",
        "RenderCollection",
    )
)
"""Gymnasium's wrappers that look on, and change nothing about steps."""

REMADE: Final = frozenset(
    (
        "AtariPreprocessing",
        "ClipAction",
        "ClipReward",
        "DelayObservation",
        "DiscretizeAction",
        "DiscretizeObservation",
        "FilterObservation",
        "FlattenObservation",
        "FrameStackObservation",
        "GrayscaleObservation",
        "MaxAndSkipObservation",
        "RepeatAction",
        "RescaleAction",
        "RescaleObservation",
        "ReshapeObservation",
        "ResizeObservation",
        "StickyAction",
        "TimeAwareObservation",
        "TimeLimit",
    )
)
"""Gymnasium's wrappers that begin every episode afresh: a new one does what the old one did.

Those that normalise have seen earlier episodes, and nobody can make that again.
"""


def recipe_of(context: object) -> Json:
    """Return the gymnasium id of what a run steps, what it was made with, and its wrappers.

    Nothing where that does not say everything: it was not made by gymnasium, or elsewhere; it has
    a wrapper of somebody else's, or one that remembers earlier episodes; its arguments are more
    than numbers, texts and containers; its lanes are stepped together or are not alike.

    Args:
        context: the run's or a session's.
    """
    stepped: tuple[object, ...] = getattr(context, "environments", ())
    if not stepped or not isinstance(stepped[0], Failing) or "gymnasium" not in sys.modules:
        return {}
    import gymnasium

    env: object = stepped[0].env
    recipes: list[Json | None] = []
    if isinstance(env, gymnasium.Env):
        recipes = [_recipe(env)]
    elif type(env) is gymnasium.vector.SyncVectorEnv:
        recipes = [_recipe(lane) for lane in env.envs]
    if not recipes or recipes[0] is None or any(one != recipes[0] for one in recipes):
        return {}
    return {"gymnasium": recipes[0]}


def wrappers_of(env: Any) -> list[list[Any]] | None:  # Any: gymnasium's own, which are generic
    """Return name and arguments of each wrapper that shapes steps, the innermost first.

    None where one of them cannot be made again.
    """
    import gymnasium

    found: list[Any] = []
    while isinstance(env, gymnasium.Wrapper):
        kind = type(cast("object", env))
        name = kind.__name__
        if name not in REMADE | _IDLE or getattr(gymnasium.wrappers, name) is not kind:
            return None
        if name in REMADE:
            found.append(env)
        env = cast("Any", env).env
    wrappers: list[list[Any]] = []
    for wrapper in reversed(found):
        arguments = _plain(_arguments(wrapper))
        if arguments is None:
            return None
        wrappers.append([type(wrapper).__name__, arguments])
    return wrappers


def _recipe(env: Any) -> Json | None:
    spec = env.unwrapped.spec
    if spec is None:
        return None
    made_with = {key: value for key, value in spec.kwargs.items() if key not in _LOOKS}
    kwargs, wrappers = _plain(made_with), wrappers_of(env)
    if kwargs is None or wrappers is None:
        return None
    return {"id": str(spec.id), "kwargs": kwargs, "wrappers": wrappers}


def _arguments(wrapper: Any) -> Mapping[str, object] | None:
    spec = wrapper.spec
    if spec is None:
        return None
    if type(wrapper).__name__ == "TimeLimit":  # which has a place of its own there
        return {"max_episode_steps": spec.max_episode_steps}
    arguments: Mapping[str, object] | None = spec.additional_wrappers[-1].kwargs
    return arguments


def _plain(arguments: Mapping[str, object] | None) -> Json | None:
    """Return arguments as JSON from which they come back; None where they would not."""
    if arguments is None or not _is_plain(arguments):
        return None
    return {key: json.loads(json.dumps(to_tagged(value))) for key, value in arguments.items()}


def _is_plain(value: object) -> bool:
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        return all(type(key) is str and _is_plain(item) for key, item in entries.items())
    if isinstance(value, list | tuple):
        return all(map(_is_plain, cast("list[object]", value)))
    return value is None or type(value) in (bool, int, float, str)

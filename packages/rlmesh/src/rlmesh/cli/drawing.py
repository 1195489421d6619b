"""How a command has gymnasium's environments drawn, where somebody wants to see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

ARRAYS: Final = "rgb_array"


def drawing_arguments(source: str) -> Mapping[str, object]:
    """Return with what `load_factory` makes an environment that draws; nothing for others.

    Only gymnasium's own ids have a render mode that can be chosen from outside, and not all of
    them draw arrays. One that cannot be looked at here is told as such where it is made.
    """
    from rlmesh.server.sources import is_gymnasium_id

    if not is_gymnasium_id(source):
        return {}
    try:
        import gymnasium
        from gymnasium.envs.registration import load_env_creator

        entry = gymnasium.spec(source.removeprefix("gym://")).entry_point
        made_by: Any = load_env_creator(entry) if isinstance(entry, str) else entry
        metadata: object = getattr(made_by, "metadata", None)
    except Exception:  # whatever is wrong is told where the environment is made
        return {}
    if not isinstance(metadata, Mapping):
        return {}
    modes = cast("Mapping[str, object]", metadata).get("render_modes")
    draws = isinstance(modes, list | tuple) and ARRAYS in cast("list[object]", modes)
    return {"render_mode": ARRAYS} if draws else {}

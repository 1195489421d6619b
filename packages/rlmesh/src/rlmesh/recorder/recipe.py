"""What an environment was made from, as far as it says so itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from rlmesh.runs.failing import Failing

Json = dict[str, Any]  # Any: JSON

_LOOKS = ("render_mode",)
"""What an environment is made with that changes nothing about its steps."""


def recipe_of(context: object) -> Json:
    """Return the gymnasium id of what a run steps, and what it was made with.

    Nothing where it was not made by gymnasium, with something that JSON cannot hold, or elsewhere.

    Args:
        context: the run's or a session's.
    """
    stepped: tuple[object, ...] = getattr(context, "environments", ())
    if not stepped or not isinstance(stepped[0], Failing):
        return {}
    spec: object = getattr(stepped[0].env, "spec", None)
    name, given = getattr(spec, "id", None), getattr(spec, "kwargs", None)
    if not isinstance(name, str) or not isinstance(given, Mapping):
        return {}
    made_with = cast("Mapping[str, object]", given)
    kwargs = {key: value for key, value in made_with.items() if key not in _LOOKS}
    try:
        json.dumps(kwargs, allow_nan=False)
    except (TypeError, ValueError):
        return {}
    return {"source": f"gym://{name}", "kwargs": kwargs}

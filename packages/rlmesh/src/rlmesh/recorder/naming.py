"""Names of files in a bundle, as published."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

_ODD: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST: Final = 160
"""Characters that a name keeps, so that file systems take it with its number and ending."""


def safe_name(label: str) -> str:
    """Return a label as a part of a path: odd characters become `_`, an empty one `unnamed`."""
    return _ODD.sub("_", label).strip("._-")[:_LONGEST].rstrip("._-") or "unnamed"


def episode_folder(workload: int, model: str, task: str, episode: int) -> str:
    """Return where the files of an episode go, below `media/` or `trajectories/`."""
    return f"w{workload:03d}-{safe_name(model)}/{safe_name(task)}/ep{episode:05d}"


def unique(folder: str, name: str, ending: str, taken: Container[str]) -> str:
    """Return `folder/name.ending`, with -2, -3 and so on where that is taken."""
    path = f"{folder}/{name}.{ending}"
    number = 2
    while path in taken:
        path = f"{folder}/{name}-{number}.{ending}"
        number += 1
    return path

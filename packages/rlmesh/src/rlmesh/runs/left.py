"""How the sittings of this process left what they used: models count, draw and remember.

The same objects in the next sitting are then known again, and whatever else changed is seen.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from rlmesh.backends.content import Content

_left: Final[dict[tuple[str, str, str], str]] = {}


def known_again(
    path: str | os.PathLike[str], contents: Mapping[str, Content]
) -> dict[str, Content]:
    """Return contents as they were when the journal's run began, where they are as it left them."""
    place = os.path.realpath(path)
    return {
        name: replace(content, digest=_left.get((place, name, content.digest), content.digest))
        for name, content in contents.items()
    }


def left_as(path: Path, begun: Mapping[str, Content], contents: Mapping[str, Content]) -> None:
    """Note what became of contents in a run with a journal."""
    place = os.path.realpath(path)
    for name, content in contents.items():
        if name in begun and content.digest != begun[name].digest:
            _left[place, name, content.digest] = begun[name].digest

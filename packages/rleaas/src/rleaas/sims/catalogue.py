"""The verticals that there are, and `make`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, cast

from rlcore import ConfigurationError

from rleaas.sims.state import Json
from rleaas.sims.tool import Tool
from rleaas.sims.vertical import Vertical

if TYPE_CHECKING:
    from rleaas.sims.discrete import DiscreteWorld
    from rleaas.sims.text import TextWorld

_ROOMS: Mapping[str, str] = {
    "FinSim": "rleaas.sims.finsim",
    "DevSim": "rleaas.sims.devsim",
    "HRSim": "rleaas.sims.hrsim",
    "MedSim": "rleaas.sims.medsim",
}
"""Where each vertical is: a module with a `VERTICAL`, imported when it is asked for."""
FACES = ("discrete", "text")


class _Verticals(Mapping[str, Vertical]):
    """The verticals by name, in whatever case."""

    def __getitem__(self, name: str) -> Vertical:
        known = {one.lower(): room for one, room in _ROOMS.items()}
        room = known[name.lower()]
        return cast("Vertical", import_module(room).VERTICAL)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in {one.lower() for one in _ROOMS}

    def __iter__(self) -> Iterator[str]:
        return iter(_ROOMS)

    def __len__(self) -> int:
        return len(_ROOMS)


VERTICALS: Mapping[str, Vertical] = _Verticals()


def vertical_of(name: str) -> Vertical:
    """The vertical with this name, in whatever case.

    Raises:
        ConfigurationError: there is none; the hint has the nearest, or all.
    """
    if name in VERTICALS:
        return VERTICALS[name]
    near = difflib.get_close_matches(name.lower(), [one.lower() for one in _ROOMS], n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(_ROOMS)}"
    raise ConfigurationError(f"there is no vertical {name!r}", code="unknown_vertical", hint=hint)


def make(
    vertical: str, face: str = "discrete", *, tools: Sequence[Tool] = (), **config: Json
) -> DiscreteWorld | TextWorld:
    """A world of a vertical as a Gymnasium environment: `discrete` or `text`.

    Args:
        vertical: its name, in whatever case.
        face: of the world.
        tools: tools of one's own beside the vertical's (see `user_tools.read_tools`).
        config: what the vertical's options say.

    Raises:
        ConfigurationError: there is no such vertical or face, or the configuration is wrong.
    """
    from rleaas.sims.discrete import DiscreteWorld
    from rleaas.sims.text import TextWorld

    found = vertical_of(vertical)
    if face == "discrete":
        return DiscreteWorld(found, config, tools=tools)
    if face == "text":
        return TextWorld(found, config, tools=tools)
    raise ConfigurationError(
        f"a world has no face {face!r}", code="invalid_config", hint=f"It has {', '.join(FACES)}"
    )

"""A world as the control plane has it served: told by a file that a variable names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from rlcore.environ import variable

from rleaas.sims.access import ToolAccess
from rleaas.sims.catalogue import make
from rleaas.sims.discrete import DiscreteWorld
from rleaas.sims.state import Json
from rleaas.sims.text import TextWorld
from rleaas.sims.user_tools import read_tools

VARIABLE = "RLEAAS_ENVIRONMENT_FILE"


def world(vertical: str) -> DiscreteWorld | TextWorld:
    """The vertical's world with the face, configuration, tools and access of its environment.

    Raises:
        ConfigurationError: there is no such vertical, or its configuration or a tool is wrong.
    """
    told = _told()
    config = dict(cast("Mapping[str, Json]", told.get("config") or {}))
    records = cast("Sequence[Mapping[str, Json]]", told.get("tools") or ())
    face = config.pop("face", "discrete")
    made = make(vertical, face, tools=read_tools(records), **config)
    made.world.restrict(ToolAccess.of(told.get("tool_access") or {}))
    return made


def _told() -> Mapping[str, Json]:
    place = variable(VARIABLE)
    if place is None:
        return {}
    return cast("Mapping[str, Json]", json.loads(Path(place).read_text("utf-8")))

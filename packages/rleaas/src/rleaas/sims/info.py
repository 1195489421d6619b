"""What the faces of a world say in a reset's and a step's info."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from rlcore import ConfigurationError

from rleaas.sims.scenario import Scenario
from rleaas.sims.state import Json
from rleaas.sims.world import Result, World

Done = Sequence[tuple[str, Json, Result]]
"""The calls of a step: tool, arguments, what came of it."""


def begun(
    world: World,
    seed: int | None,
    generator: np.random.Generator,
    options: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Reset the world as a face's reset asks for, and say what it is.

    Raises:
        ConfigurationError: the options name no scenario that there is.
    """
    asked = options or {}
    scenario, tier = asked.get("scenario"), asked.get("tier")
    if scenario is not None and not isinstance(scenario, str | Mapping | Scenario):
        raise ConfigurationError(
            f"options['scenario'] is an id or an object, not {type(scenario).__name__}",
            code="unknown_scenario",
        )
    number = int(generator.integers(2**31)) if seed is None else seed
    start = cast("str | Mapping[str, object] | Scenario | None", scenario)
    world.reset(number, start, tier if start is None else None)
    return {
        "tool_calls": [],
        "refused_calls": [],
        "state": world.state.to_json(),
        "scenario_id": world.scenario.id,
        "tier": world.scenario.tier,
        "prompt": world.prompt,
    }


def stepped(world: World, done: Done) -> dict[str, Any]:
    """The info of a step: calls that ran apart from those that were refused."""
    ran: list[dict[str, Json]] = []
    refused: list[dict[str, Json]] = []
    for tool, arguments, result in done:
        if result.ok:
            ran.append({"tool": tool, "arguments": arguments, "result": result.value})
        else:
            refused.append({"tool": tool, "arguments": arguments, "error": result.error})
    return {
        "tool_calls": ran,
        "refused_calls": refused,
        "state": world.state.to_json(),
        "scenario_id": world.scenario.id,
    }


def ended(world: World, info: dict[str, Any]) -> tuple[bool, bool]:
    """Whether the episode terminated or was truncated; at its end, its success joins the info."""
    terminated = world.ended
    truncated = world.over and not terminated
    if terminated or truncated:
        info["success"] = world.succeeded()
    return terminated, truncated
